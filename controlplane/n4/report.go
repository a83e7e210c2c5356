// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"cmp"
	"errors"
	"net/netip"
	"slices"
	"sync"

	"isthmus/controlplane/pfcp"
)

// report is a session report that is sent, or waits for its turn.
type report struct {
	k    *socket
	to   netip.AddrPort
	seid uint64
	req  *pfcp.SessionReportRequest
	done func(*pfcp.SessionReportResponse, error)
}

// reports finds the recipient of a session's report. It has no state.
type reports struct {
	*peers
	cfg     *Config
	sockets []*socket
}

// window bounds the unanswered reports to one CP function: ten thousand at once would flood it, and its answers us.
// lock guards the rest.
type window struct {
	requests *requests
	lock     sync.Mutex
	open     int
	waiting  []report
	head     int
}

// waitingPerSlot bounds the queue behind the window.
const waitingPerSlot = 64

// Find returns an association, nil without one.
func (s *reports) Find(id string) *Association {
	if a := s.association(id); a != nil {
		return &a.Association
	}
	return nil
}

// Reachable is Reporter's.
func (s *reports) Reachable(id string) bool {
	x := s.index.Load()
	a := x.byID[id]
	return a != nil && len(x.members(a)) > 0
}

// Report is Reporter's.
func (s *reports) Report(to Recipient, req *pfcp.SessionReportRequest,
	done func(*pfcp.SessionReportResponse, *Association, error)) {
	x := s.index.Load()
	a := x.byID[to.Association]
	if a == nil {
		done(nil, nil, ErrNoAssociation)
		return
	}
	if !a.failed() && !to.Moved {
		k, addr := s.placeOf(x, a, to.CP)
		a.window.report(report{k: k, to: addr, seid: to.CP.SEID, req: req,
			done: func(r *pfcp.SessionReportResponse, err error) {
				done(r, nil, err)
			}})
		return
	}
	members := x.members(a)
	if len(members) == 0 {
		done(nil, nil, ErrPathFailed)
		return
	}
	// TS 29.244 §5.22, table 7.5.8.1-1: another member's CP F-SEID is in an IE, and the header has SEID 0.
	asked := *req
	asked.OldCP = &to.CP
	s.askMembers(members, &asked, done)
}

// askMembers reports to the members of an SMF set in turn until one takes the session. A member that does not know it
// does not end the search.
func (s *reports) askMembers(members []*association, req *pfcp.SessionReportRequest,
	done func(*pfcp.SessionReportResponse, *Association, error)) {
	a, rest := members[0], members[1:]
	a.window.report(report{k: a.k, to: a.Addr, req: req, done: func(r *pfcp.SessionReportResponse, err error) {
		if err != nil || r.Cause != pfcp.CauseContextNotFound && r.Cause != pfcp.CauseRedirectionRequested {
			done(r, &a.Association, err)
			return
		}
		if r.Cause == pfcp.CauseRedirectionRequested { // the member that it names first
			rest = slices.Clone(rest)
			slices.SortStableFunc(rest, func(b, c *association) int { return cmp.Compare(named(r, c), named(r, b)) })
		}
		if len(rest) == 0 {
			done(nil, &a.Association, ErrNotKnown)
			return
		}
		s.askMembers(rest, req, done)
	}})
}

// named is 1 when a redirection names an address of the association, else 0.
func named(r *pfcp.SessionReportResponse, a *association) int {
	if slices.ContainsFunc(r.Alternative, a.owns) {
		return 1
	}
	return 0
}

// placeOf returns the destination of a session's reports if the CP F-SEID is the association's: its address (TS 29.244
// §6.3), unless it belongs to another peer, the session's former owner.
func (s *reports) placeOf(x *index, a *association, cp pfcp.FSEID) (*socket, netip.AddrPort) {
	to := cp.IPv4
	if !to.IsValid() {
		to = cp.IPv6
	}
	i := s.cfg.listenerOf(to)
	if src := x.byAddr[to]; !to.IsValid() || i < 0 || src != nil && !slices.Contains(src.associations, a) {
		return a.k, a.Addr
	}
	k := a.k
	if to.Is4() != k.local.Addr().Is4() {
		k = s.sockets[i]
	}
	return k, netip.AddrPortFrom(to, a.Addr.Port())
}

// report sends one, or has it wait for its turn.
func (w *window) report(r report) {
	most := w.requests.cfg.Window
	w.lock.Lock()
	switch {
	case w.open < most:
		w.open++
		w.lock.Unlock()
		w.send(r)
	case len(w.waiting)-w.head < most*waitingPerSlot:
		w.waiting = append(w.waiting, r)
		w.lock.Unlock()
	default:
		w.lock.Unlock()
		r.done(nil, ErrBusy)
	}
}

func (w *window) send(r report) {
	w.requests.send(r.k, r.to, pfcp.Header{HasSEID: true, SEID: r.seid}, r.req, func(m pfcp.Message, err error) {
		answer, ok := m.(*pfcp.SessionReportResponse)
		if err == nil && !ok {
			err = errors.New("not a session report response")
		}
		if next, more := w.next(); more {
			w.send(next)
		}
		r.done(answer, err)
	})
}

// next gives the slot of an answered report to the report that waits longest.
func (w *window) next() (r report, more bool) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.head == len(w.waiting) {
		w.open--
		return r, false
	}
	r, w.waiting[w.head] = w.waiting[w.head], report{}
	w.head++
	if w.head == len(w.waiting) || w.head > 1024 && w.head*2 > len(w.waiting) {
		w.waiting = append(w.waiting[:0], w.waiting[w.head:]...)
		w.head = 0
	}
	return r, true
}

// fail ends the reports that have not been sent yet; those that were end by themselves.
func (w *window) fail(why error) {
	w.lock.Lock()
	waiting := w.waiting[w.head:]
	w.waiting, w.head = nil, 0
	w.lock.Unlock()
	for _, r := range waiting {
		r.done(nil, why)
	}
}
