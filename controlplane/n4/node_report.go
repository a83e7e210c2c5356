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

// NodeReport notifies all CP functions (TS 29.244 §6.2.9), for example of a failed path to a GTP-U peer. It is repeated
// without an answer, while the association lives and no newer state of that peer is known.
func (o *owner) NodeReport(req *pfcp.NodeReportRequest) {
	req.Node = o.cfg.Node
	o.post(func() {
		for _, a := range o.table.associations {
			o.notifyNode(a, req)
		}
	})
}

// notifyNode replaces the association's unanswered notification, and sends it.
func (o *owner) notifyNode(a *association, req *pfcp.NodeReportRequest) {
	if a.pending == nil {
		a.pending = make(map[gtpuPeer]*pfcp.NodeReportRequest)
	}
	for _, list := range [][]pfcp.RemotePeer{req.Failed, req.Restored} {
		for _, p := range list {
			a.pending[peerOf(p)] = req
		}
	}
	o.sendNodeReport(a, req)
}

// sendNodeReport sends what is still true of a report. While the association's own path is down it waits.
func (o *owner) sendNodeReport(a *association, r *pfcp.NodeReportRequest) {
	id, counts := a.ID, a.associationCounts
	again := func() {
		o.later(max(o.cfg.Heartbeat.Interval, o.cfg.Heartbeat.Timeout), func() {
			if a := o.current(id, counts); a != nil {
				o.sendNodeReport(a, r)
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
	o.requests.send(a.k, a.Addr, pfcp.Header{}, req, func(m pfcp.Message, err error) {
		o.post(func() {
			switch answer, ok := m.(*pfcp.NodeReportResponse); {
			case errors.Is(err, ErrTimeout):
				o.log.Warn("PFCP node report not answered", "association", id, "error", err)
				again()
				return
			case err != nil:
				o.log.Warn("PFCP node report not answered", "association", id, "error", err)
			case ok && answer.Cause != pfcp.CauseAccepted:
				o.log.Warn("PFCP node report refused", "association", id, "cause", answer.Cause)
			}
			if a := o.current(id, counts); a != nil {
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
