// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"errors"
	"net/netip"

	"isthmus/controlplane/pfcp"
)

// gtpuPeer is a RemotePeer as a key.
type gtpuPeer struct {
	addr     netip.Addr
	instance string
}

func peerOf(p pfcp.RemotePeer) gtpuPeer { return gtpuPeer{p.Addr, p.NetworkInstance} }

// NodeReport notifies all CP functions (TS 29.244 §6.2.9), for example that the path to a GTP-U peer failed. Who does
// not answer is notified again, as long as its association lives and nothing newer is known of that GTP-U peer.
func (s *Server) NodeReport(req *pfcp.NodeReportRequest) {
	req.Node = s.cfg.Node
	s.post(func() {
		for _, a := range s.table.associations {
			s.notifyNode(a, req)
		}
	})
}

// notifyNode notes what the association is to be notified of, in the place of what it has not answered, and notifies
// it.
func (s *Server) notifyNode(a *association, req *pfcp.NodeReportRequest) {
	if a.pending == nil {
		a.pending = make(map[gtpuPeer]*pfcp.NodeReportRequest)
	}
	for _, list := range [][]pfcp.RemotePeer{req.Failed, req.Restored} {
		for _, p := range list {
			a.pending[peerOf(p)] = req
		}
	}
	s.sendNodeReport(a, req)
}

// sendNodeReport sends what is still true of a report. While the association's own path is down it waits.
func (s *Server) sendNodeReport(a *association, r *pfcp.NodeReportRequest) {
	id, counts := a.ID, a.associationCounts
	again := func() {
		s.later(max(s.cfg.HeartbeatInterval, s.cfg.Timeout), func() {
			if a := s.current(id, counts); a != nil {
				s.sendNodeReport(a, r)
			}
		})
	}
	req := &pfcp.NodeReportRequest{Node: r.Node, Failed: a.stillPending(r, r.Failed),
		Restored: a.stillPending(r, r.Restored)}
	switch {
	case len(req.Failed)+len(req.Restored) == 0:
		return
	case a.failed():
		again()
		return
	}
	s.requests.send(a.k, a.Addr, pfcp.Header{}, req, func(m pfcp.Message, err error) {
		s.post(func() {
			switch answer, ok := m.(*pfcp.NodeReportResponse); {
			case errors.Is(err, ErrTimeout):
				s.log.Warn("PFCP node report not answered", "association", id, "error", err)
				again()
				return
			case err != nil:
				s.log.Warn("PFCP node report not answered", "association", id, "error", err)
			case ok && answer.Cause != pfcp.CauseAccepted:
				s.log.Warn("PFCP node report refused", "association", id, "cause", answer.Cause)
			}
			if a := s.current(id, counts); a != nil {
				for p, of := range a.pending {
					if of == r {
						delete(a.pending, p)
					}
				}
			}
		})
	})
}

// stillPending returns the peers of which nothing newer is known.
func (a *association) stillPending(r *pfcp.NodeReportRequest, of []pfcp.RemotePeer) (out []pfcp.RemotePeer) {
	for _, p := range of {
		if a.pending[peerOf(p)] == r {
			out = append(out, p)
		}
	}
	return out
}
