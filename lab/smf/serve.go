// SPDX-License-Identifier: Apache-2.0

package smf

import (
	"context"
	"errors"
	"net/netip"

	"isthmus/controlplane/pfcp"
)

// serve answers a request of a user plane. A repeated one gets the answer of the first (TS 29.244 §6.4).
func (c *Client) serve(from netip.AddrPort, h pfcp.Header, m pfcp.Message) {
	if c.cached(from, h.Sequence) {
		return
	}
	c.Counters.Served.Add(1)
	switch r := m.(type) {
	case *pfcp.HeartbeatRequest:
		c.respond(from, h, 0, &pfcp.HeartbeatResponse{Recovery: c.recovery})
	case *pfcp.AssociationSetupRequest:
		c.respond(from, h, 0, &pfcp.AssociationSetupResponse{Node: c.opt.Node, Cause: pfcp.CauseAccepted,
			Recovery: c.recovery})
		a := c.associated(from, r.Node.String(), r.Features, r.Recovery)
		if f := c.opt.Handlers.Associated; f != nil {
			go f(a)
		}
	case *pfcp.AssociationUpdateRequest:
		c.serveUpdate(from, h, r)
	case *pfcp.NodeReportRequest:
		a := c.find(r.Node.String())
		c.respond(from, h, 0, &pfcp.NodeReportResponse{Node: c.opt.Node, Cause: c.known(a)})
		if f := c.opt.Handlers.Node; f != nil && a != nil {
			go f(a, r)
		}
	case *pfcp.SessionReportRequest:
		c.serveReport(from, h, r)
	default:
		c.Counters.Refused.Add(1)
		c.opt.Log.Warn("a request that a CP function does not serve", "type", h.Type, "from", from)
	}
}

func (c *Client) find(id string) *Association {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.associations[id]
}

// known is the cause that an association or its absence leads to.
func (c *Client) known(a *Association) pfcp.Cause {
	if a == nil {
		c.Counters.Refused.Add(1)
		return pfcp.CauseNoAssociation
	}
	return pfcp.CauseAccepted
}

// serveUpdate takes changed features, and releases the association when the user plane asks for it (TS 29.244 §6.2.7).
func (c *Client) serveUpdate(from netip.AddrPort, h pfcp.Header, r *pfcp.AssociationUpdateRequest) {
	a := c.find(r.Node.String())
	c.respond(from, h, 0, &pfcp.AssociationUpdateResponse{Node: c.opt.Node, Cause: c.known(a)})
	if a == nil {
		return
	}
	a.mu.Lock()
	if r.Features != nil {
		a.features = *r.Features
	}
	release := r.ReleaseRequest && !a.leaving
	a.leaving = a.leaving || release
	a.mu.Unlock()
	if release {
		go func() {
			if err := a.Release(context.Background()); err != nil {
				c.opt.Log.Warn("release failed", "node", a.ID, "error", err)
			}
			c.lose(a, errors.New("the user plane asked for the release"))
		}()
	}
}

// serveReport answers a Session Report Request and passes its parts on. The header has our SEID.
func (c *Client) serveReport(from netip.AddrPort, h pfcp.Header, r *pfcp.SessionReportRequest) {
	c.mu.Lock()
	s := c.sessions[h.SEID]
	c.mu.Unlock()
	if s == nil || s.Association.Peer.Addr() != from.Addr() {
		c.Counters.Refused.Add(1)
		c.respond(from, h, 0, &pfcp.SessionReportResponse{Cause: pfcp.CauseContextNotFound})
		return
	}
	c.respond(from, h, s.UP().SEID, &pfcp.SessionReportResponse{Cause: pfcp.CauseAccepted})
	s.account(r.Usage)
	f := &c.opt.Handlers
	go func() {
		if len(r.Usage) > 0 && f.Usage != nil {
			f.Usage(s, r.Usage)
		}
		if len(r.DownlinkPDR) > 0 && f.Downlink != nil {
			f.Downlink(s, r)
		}
		if len(r.Errors) > 0 && f.ErrorIndication != nil {
			f.ErrorIndication(s, r.Errors)
		}
		if r.Inactive && f.Inactive != nil {
			f.Inactive(s)
		}
	}()
}
