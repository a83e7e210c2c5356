// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"slices"
	"time"

	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
)

// pendingNotification is a downlink data report that could not be sent. Without it the CP function never pages the UE,
// since the data plane notifies once while packets wait. One for each session suffices: it has the PDRs with packets.
type pendingNotification struct {
	req  *pfcp.SessionReportRequest
	sent bool // no answer yet
	pause
}

// notifyLater puts a downlink data report by. It ends with the session, or when nothing of it is buffered any more.
func (r *reporting) notifyLater(seid uint64, req *pfcp.SessionReportRequest) {
	there := r.sessions.there(seid) // when it ends now, sendPending finds that out
	r.lock.Lock()
	defer r.lock.Unlock()
	if !there {
		r.count.ReportsLost++
		return
	}
	r.count.ReportsDeferred++
	o := r.pending[seid]
	if o == nil {
		r.pending[seid] = &pendingNotification{req: req}
		return
	}
	for _, id := range req.DownlinkPDR {
		if !slices.Contains(o.req.DownlinkPDR, id) {
			again := *o.req
			again.DownlinkPDR = append(slices.Clone(o.req.DownlinkPDR), id)
			o.req = &again
		}
	}
}

// duePending are the sessions whose notification is to be tried now.
func (r *reporting) duePending(now time.Time) (seids []uint64) {
	r.lock.Lock()
	defer r.lock.Unlock()
	for seid, o := range r.pending {
		if !o.sent && !now.Before(o.next) {
			seids = append(seids, seid)
		}
	}
	return seids
}

// notification is what to send for a session of duePending; nil: nothing, now or any more.
func (r *reporting) notification(s subject, reachable bool) *pfcp.SessionReportRequest {
	r.lock.Lock()
	defer r.lock.Unlock()
	o := r.pending[s.seid]
	switch {
	case o == nil:
		return nil
	case s.session == nil || !slices.ContainsFunc(o.req.DownlinkPDR, s.session.Buffers):
		delete(r.pending, s.seid)
		return nil
	case !reachable:
		return nil
	}
	req := *o.req
	empty := func(id uint16) bool { return !s.session.Buffers(id) }
	req.DownlinkPDR = slices.DeleteFunc(slices.Clone(req.DownlinkPDR), empty)
	o.sent = true
	return &req
}

// sendPending tries again what is pending, where the CP function can be reached now.
func (r *reporting) sendPending(to n4.Reporter) {
	left := attemptsAtOnce
	for s := range r.eachOf(r.duePending(time.Now())) {
		req := r.notification(s, s.session != nil && to.Reachable(s.to.Association))
		if req == nil {
			continue
		}
		to.Report(s.to, req, func(answer *pfcp.SessionReportResponse, by *n4.Association, err error) {
			r.notified(s.seid, err)
			if err == nil {
				r.reported(s.seid, answer, by, nil)
			}
		})
		if left--; left == 0 {
			break
		}
	}
}

// notified ends a try.
func (r *reporting) notified(seid uint64, err error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if err == nil {
		r.count.Reports++
	}
	switch o := r.pending[seid]; {
	case o == nil:
	case err == nil || errors.Is(err, n4.ErrNoAssociation):
		delete(r.pending, seid)
	default:
		o.sent = false
		o.after(err)
	}
}
