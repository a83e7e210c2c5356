// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"errors"
	"net/netip"
	"sync"

	"isthmus/controlplane/internal/pfcp"
)

// report is a session report that is sent, or waits for its turn.
type report struct {
	k    *socket
	to   netip.AddrPort
	seid uint64
	req  *pfcp.SessionReportRequest
	done func(*pfcp.SessionReportResponse, error)
}

// window bounds how many reports to one CP function are unanswered: ten thousand at once would drown it, and its answers
// us. Lock guards the rest.
type window struct {
	lock    sync.Mutex
	open    int
	waiting []report
	head    int
}

// waitingPerSlot bounds the queue behind the window.
const waitingPerSlot = 64

// Find returns an association, nil when there is none.
func (s *Server) Find(id string) *Association {
	if a := s.index.Load().byID[id]; a != nil {
		return &a.Association
	}
	return nil
}

// Reachable is Reporter's.
func (s *Server) Reachable(id string) bool {
	x := s.index.Load()
	a := x.byID[id]
	return a != nil && (!a.failed() || x.heir(a) != nil)
}

// Report sends a session report. When the association's path has failed, a living member of its SMF set gets it
// (TS 29.244 §5.22).
func (s *Server) Report(id string, to netip.Addr, cpSEID uint64, req *pfcp.SessionReportRequest,
	done func(*pfcp.SessionReportResponse, error)) {
	x := s.index.Load()
	a := x.byID[id]
	if a == nil {
		done(nil, ErrNoAssociation)
		return
	}
	if a.failed() {
		if a = x.heir(a); a == nil {
			done(nil, ErrPathFailed)
			return
		}
		to = netip.Addr{} // the session's own CP F-SEID is of the member that failed
	}
	r := report{k: a.k, to: a.Addr, seid: cpSEID, req: req, done: done}
	if to.IsValid() && to != a.Addr.Addr() {
		if i := s.cfg.listenerOf(to); i >= 0 {
			r.to = netip.AddrPortFrom(to, a.Addr.Port())
			if to.Is4() != a.k.local.Addr().Is4() {
				r.k = s.sockets[i]
			}
		}
	}
	w := &a.window
	w.lock.Lock()
	switch {
	case w.open < s.cfg.Window:
		w.open++
		w.lock.Unlock()
		s.sendReport(w, r)
	case len(w.waiting)-w.head < s.cfg.Window*waitingPerSlot:
		w.waiting = append(w.waiting, r)
		w.lock.Unlock()
	default:
		w.lock.Unlock()
		done(nil, ErrBusy)
	}
}

func (s *Server) sendReport(w *window, r report) {
	s.request(r.k, r.to, pfcp.Header{HasSEID: true, SEID: r.seid}, r.req, func(m pfcp.Message, err error) {
		answer, ok := m.(*pfcp.SessionReportResponse)
		if err == nil && !ok {
			err = errors.New("not a session report response")
		}
		if next, more := w.next(); more {
			s.sendReport(w, next)
		}
		r.done(answer, err)
	})
}

// next gives the slot of an answered report to the one that waits longest.
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

// failWaiting ends the reports that have not been sent yet; those that were end by themselves.
func (s *Server) failWaiting(w *window, why error) {
	w.lock.Lock()
	waiting := w.waiting[w.head:]
	w.waiting, w.head = nil, 0
	w.lock.Unlock()
	for _, r := range waiting {
		r.done(nil, why)
	}
}
