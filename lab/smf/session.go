// SPDX-License-Identifier: Apache-2.0

package smf

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"isthmus/controlplane/pfcp"
)

// Session is one PFCP session that a user plane accepted.
type Session struct {
	Association *Association
	CP          pfcp.FSEID
	Tag         any // the caller's own value, for its handlers

	mu      sync.Mutex
	up      pfcp.FSEID
	created map[uint16]pfcp.CreatedPDR
	usage   map[uint32]Usage
}

// Usage is what the reports of one URR add up to.
type Usage struct {
	Reports                  uint64
	Total, Uplink, Downlink  uint64 // bytes
	UplinkPkts, DownlinkPkts uint64
}

// Establish makes a session. The request's node and CP F-SEID are filled in.
func (a *Association) Establish(ctx context.Context, req *pfcp.SessionEstablishmentRequest, tag any) (*Session, error) {
	c := a.client
	seid := c.seid.Add(1)
	req.Node, req.CP = c.opt.Node, c.fseid(seid)
	s := &Session{Association: a, CP: req.CP, Tag: tag, created: map[uint16]pfcp.CreatedPDR{},
		usage: map[uint32]Usage{}}
	c.hold(s) // a report may overtake the response
	m, err := c.request(ctx, a.Peer, pfcp.Header{HasSEID: true}, req)
	if err != nil {
		c.drop(s)
		return nil, err
	}
	r, ok := m.(*pfcp.SessionEstablishmentResponse)
	if !ok {
		c.drop(s)
		return nil, errors.New("no Session Establishment Response")
	}
	if r.Cause != pfcp.CauseAccepted {
		c.drop(s)
		return nil, &Refusal{"session establishment", r.Cause, r.Offending, r.Failed}
	}
	s.mu.Lock()
	s.up = r.UP
	s.mu.Unlock()
	s.note(r.Created)
	return s, nil
}

func (c *Client) hold(s *Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions[s.CP.SEID] = s
}

func (c *Client) drop(s *Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sessions, s.CP.SEID)
}

// UP is the user plane's F-SEID.
func (s *Session) UP() pfcp.FSEID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.up
}

// request sends a message about the session.
func (s *Session) request(ctx context.Context, m pfcp.Message) (pfcp.Message, error) {
	return s.Association.client.request(ctx, s.Association.Peer, pfcp.Header{HasSEID: true, SEID: s.UP().SEID}, m)
}

// Modify changes a session, whole or not at all.
func (s *Session) Modify(ctx context.Context, req *pfcp.SessionModificationRequest) (*pfcp.SessionModificationResponse,
	error) {
	m, err := s.request(ctx, req)
	if err != nil {
		return nil, err
	}
	r, ok := m.(*pfcp.SessionModificationResponse)
	if !ok {
		return nil, errors.New("no Session Modification Response")
	}
	if r.Cause != pfcp.CauseAccepted {
		return r, &Refusal{"session modification", r.Cause, r.Offending, r.Failed}
	}
	s.note(r.Created)
	s.account(r.Usage)
	return r, nil
}

// Delete ends a session; the answer has the last usage reports.
func (s *Session) Delete(ctx context.Context) (*pfcp.SessionDeletionResponse, error) {
	m, err := s.request(ctx, &pfcp.SessionDeletionRequest{})
	if err != nil {
		return nil, err
	}
	r, ok := m.(*pfcp.SessionDeletionResponse)
	if !ok {
		return nil, errors.New("no Session Deletion Response")
	}
	if r.Cause == pfcp.CauseContextNotFound {
		s.Association.client.drop(s)
	}
	if r.Cause != pfcp.CauseAccepted {
		return r, &Refusal{What: "session deletion", Cause: r.Cause, Offending: r.Offending}
	}
	s.account(r.Usage)
	s.Association.client.drop(s)
	return r, nil
}

func (s *Session) note(created []pfcp.CreatedPDR) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range created {
		s.created[p.ID] = p
	}
}

// FTEID is what the user plane chose for a PDR.
func (s *Session) FTEID(pdr uint16) (pfcp.FTEID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, found := s.created[pdr]
	if !found || p.LocalFTEID == nil {
		return pfcp.FTEID{}, fmt.Errorf("%s chose no F-TEID for PDR %d", s.Association.ID, pdr)
	}
	return *p.LocalFTEID, nil
}

// account adds usage reports up.
func (s *Session) account(list []pfcp.UsageReport) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range list {
		u := s.usage[list[i].URR]
		u.Reports++
		if v := list[i].Volume; v != nil {
			u.Total, u.Uplink, u.Downlink = u.Total+v[0], u.Uplink+v[1], u.Downlink+v[2]
		}
		if p := list[i].Packets; p != nil {
			u.UplinkPkts, u.DownlinkPkts = u.UplinkPkts+p[1], u.DownlinkPkts+p[2]
		}
		s.usage[list[i].URR] = u
	}
}

// Usage is the sum of all reports so far, by URR.
func (s *Session) Usage() map[uint32]Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.usage)
}

// causeOf is the cause in a response, 0 when it has none.
func causeOf(m pfcp.Message) pfcp.Cause {
	switch r := m.(type) {
	case *pfcp.AssociationSetupResponse:
		return r.Cause
	case *pfcp.AssociationReleaseResponse:
		return r.Cause
	case *pfcp.PFDManagementResponse:
		return r.Cause
	case *pfcp.SessionReportResponse:
		return r.Cause
	}
	return 0
}
