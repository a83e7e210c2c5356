// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"slices"
	"time"

	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
)

// pendingNotification is a downlink data report that could not be sent: without it the CP function never pages the UE,
// for the data plane notifies once while packets wait. One for each session is enough: its CP function learns which
// PDRs have packets.
type pendingNotification struct {
	req  *pfcp.SessionReportRequest
	sent bool // no answer yet
	wait time.Duration
	next time.Time
}

// notifyLater puts a downlink data report by. It ends with the session, or when nothing of it is buffered any more.
func (p *Manager) notifyLater(seid uint64, req *pfcp.SessionReportRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.x.session[seid] == 0 {
		p.count.ReportsLost++
		return
	}
	p.count.ReportsDeferred++
	o := p.pending[seid]
	if o == nil {
		p.pending[seid] = &pendingNotification{req: req}
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

// takePending returns the reports whose CP function can be reached now. The caller holds mu.
func (p *Manager) takePending(reporter n4.Reporter, now time.Time) (list []attempt) {
	for seid, o := range p.pending {
		if len(list) == attemptsAtOnce {
			break
		}
		if o.sent || now.Before(o.next) {
			continue
		}
		var s *rules.Session
		e, there := p.x.at(seid)
		if there {
			s, _ = rules.Decode(e.data)
		}
		if s == nil || !slices.ContainsFunc(o.req.DownlinkPDR, s.Buffers) {
			delete(p.pending, seid)
			continue
		}
		if !reporter.Reachable(e.owner.current().id) {
			continue
		}
		req := *o.req
		req.DownlinkPDR = slices.DeleteFunc(slices.Clone(req.DownlinkPDR), func(id uint16) bool { return !s.Buffers(id) })
		o.sent = true
		list = append(list, attempt{seid: seid, to: e.recipient(s), req: &req})
	}
	return list
}

// sendPending tries again what is pending.
func (p *Manager) sendPending() {
	reporter := p.reporter()
	if reporter == nil {
		return
	}
	p.mu.Lock()
	list := p.takePending(reporter, p.x.now())
	p.mu.Unlock()
	for _, t := range list {
		reporter.Report(t.to, t.req, func(r *pfcp.SessionReportResponse, by *n4.Association, err error) {
			p.mu.Lock()
			if o := p.pending[t.seid]; o != nil {
				o.sent = false
				if err == nil || errors.Is(err, n4.ErrNoAssociation) {
					delete(p.pending, t.seid)
				} else if !errors.Is(err, n4.ErrPathFailed) {
					o.wait = min(max(2*o.wait, firstRetry), lastRetry)
					o.next = p.x.now().Add(o.wait)
				}
			}
			if err == nil {
				p.count.Reports++
			}
			p.mu.Unlock()
			if err == nil {
				p.reported(t.seid, r, by, nil)
			}
		})
	}
}
