// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"isthmus/controlplane/measure"
	"isthmus/controlplane/pfcp"
)

// Snapshot is what `isthmus show n4` and `show associations` show. The names in JSON are stable.
type Snapshot struct {
	NodeID       string                    `json:"node_id"`
	Listen       []string                  `json:"listen"`
	Peers        []string                  `json:"peers"`    // addresses of pfcp.peers
	PeerIDs      []string                  `json:"peer_ids"` // their Node IDs; empty: any
	Recovery     time.Time                 `json:"recovery"` // our recovery time stamp
	Features     []string                  `json:"features"`
	Sessions     int                       `json:"sessions"`
	InFlight     int64                     `json:"in_flight"` // session requests that are being carried out
	Queued       int                       `json:"queued"`    // messages that wait
	Requests     int                       `json:"requests"`  // of ours, unanswered
	Answers      int64                     `json:"answers"`   // kept for retransmissions
	AnswerBytes  int64                     `json:"answer_bytes"`
	Lost         uint64                    `json:"lost"`     // datagrams that the kernel dropped for want of room
	Received     map[string]uint64         `json:"received"` // by message, without zeros; so are the next three
	Sent         map[string]uint64         `json:"sent"`
	Rejected     map[string]uint64         `json:"rejected"`
	Events       map[string]uint64         `json:"events"`
	Took         map[string]measure.Timing `json:"took"`     // peers' session requests, by message
	Refusals     []Refusal                 `json:"refusals"` // the last ones, the newest first
	Associations []AssociationRow          `json:"associations"`
}

// AssociationRow is one association.
type AssociationRow struct {
	ID         string    `json:"id"`
	Address    string    `json:"address"`
	Set        string    `json:"set"`
	State      string    `json:"state"` // up, failed, releasing
	Configured bool      `json:"configured"`
	Since      time.Time `json:"since"`
	Recovery   time.Time `json:"recovery"` // of the peer
	FailedAt   time.Time `json:"failed_at,omitzero"`
	Expires    time.Time `json:"expires,omitzero"` // when the sessions of a failed association end
	Features   []string  `json:"features"`
	Sessions   int       `json:"sessions"`
	Requests   uint64    `json:"requests"`
	Refused    uint64    `json:"refused"`
	Heartbeats uint64    `json:"heartbeats"` // of ours that were answered
	Unanswered uint64    `json:"unanswered"` // that were not
	RoundTrip  float64   `json:"round_trip_ms"`
	Reports    int       `json:"reports"` // session reports sent or waiting
}

// Snapshot may be called from any goroutine.
func (s *Server) Snapshot() *Snapshot {
	out := &Snapshot{
		NodeID: s.cfg.Node.String(), Recovery: s.recovery.UTC(), Features: nameBits(s.cfg.Features, featureNames),
		Sessions: s.sessions.Count(""), InFlight: s.calls.inFlight.Load(), Queued: len(s.nodes),
		Requests: s.requests.size(),
		Answers:  s.answers.size.Load(), AnswerBytes: s.answers.bytes.Load(),
		Received: map[string]uint64{}, Sent: map[string]uint64{}, Rejected: map[string]uint64{},
		Events: map[string]uint64{},
		Peers:  []string{}, PeerIDs: []string{},
		Associations: []AssociationRow{}, Refusals: s.count.refusals.newestFirst(),
		Took: s.cfg.Measures.Requests(),
	}
	for _, k := range s.sockets {
		out.Listen = append(out.Listen, k.local.String())
		out.Lost += k.lost()
	}
	for _, w := range s.workers {
		out.Queued += len(w)
	}
	for i := range s.cfg.Peers {
		out.Peers = append(out.Peers, s.cfg.Peers[i].Address.String())
		out.PeerIDs = append(out.PeerIDs, s.cfg.Peers[i].NodeID)
	}
	for t := range s.count.received {
		put(out.Received, messageName(t), s.count.received[t].Load())
		put(out.Sent, messageName(t), s.count.sent[t].Load())
	}
	for r := range s.count.rejected {
		if n := s.count.rejected[r].Load(); n > 0 {
			out.Rejected[reject(r).String()] = n
		}
	}
	for e := range s.count.events {
		put(out.Events, eventNames[e], s.count.events[e].Load())
	}
	for _, a := range s.index.Load().byID {
		out.Associations = append(out.Associations, s.row(a))
	}
	slices.SortFunc(out.Associations, func(a, b AssociationRow) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

func put(m map[string]uint64, name string, n uint64) {
	if n > 0 {
		m[name] = n
	}
}

func (s *Server) row(a *association) AssociationRow {
	r := AssociationRow{
		ID: a.ID, Address: a.Addr.String(), Set: a.Set, State: "up", Configured: a.configured != nil,
		Since:    a.since.UTC(),
		Recovery: time.Unix(a.recovery.Load(), 0).UTC(), Features: nameBits(a.Features, cpFeatureNames),
		Sessions: s.sessions.Count(a.ID), Requests: a.requests.Load(), Refused: a.refused.Load(),
		Heartbeats: a.heartbeats.Load(), Unanswered: a.lost.Load(),
		RoundTrip: float64(a.roundTrip.Load()) / float64(time.Millisecond),
	}
	a.window.lock.Lock()
	r.Reports = a.window.open + len(a.window.waiting) - a.window.head
	a.window.lock.Unlock()
	if a.releasing.Load() {
		r.State = "releasing"
	}
	if f := a.failedAt.Load(); f != 0 {
		r.State, r.FailedAt = "failed", time.Unix(f, 0).UTC()
		r.Expires = r.FailedAt.Add(s.cfg.Headless)
	}
	return r
}

var messageNames = map[pfcp.MessageType]string{
	pfcp.HeartbeatRequestType: "heartbeat-request", pfcp.HeartbeatResponseType: "heartbeat-response",
	pfcp.PFDManagementRequestType: "pfd-management-request", pfcp.PFDManagementResponseType: "pfd-management-response",
	pfcp.AssociationSetupRequestType:    "association-setup-request",
	pfcp.AssociationSetupResponseType:   "association-setup-response",
	pfcp.AssociationUpdateRequestType:   "association-update-request",
	pfcp.AssociationUpdateResponseType:  "association-update-response",
	pfcp.AssociationReleaseRequestType:  "association-release-request",
	pfcp.AssociationReleaseResponseType: "association-release-response",
	pfcp.NodeReportRequestType:          "node-report-request", pfcp.NodeReportResponseType: "node-report-response",
	pfcp.VersionNotSupportedResponseType:  "version-not-supported-response",
	pfcp.SessionSetDeletionRequestType:    "session-set-deletion-request",
	pfcp.SessionSetDeletionResponseType:   "session-set-deletion-response",
	pfcp.SessionEstablishmentRequestType:  "session-establishment-request",
	pfcp.SessionEstablishmentResponseType: "session-establishment-response",
	pfcp.SessionModificationRequestType:   "session-modification-request",
	pfcp.SessionModificationResponseType:  "session-modification-response",
	pfcp.SessionDeletionRequestType:       "session-deletion-request",
	pfcp.SessionDeletionResponseType:      "session-deletion-response",
	pfcp.SessionReportRequestType:         "session-report-request",
	pfcp.SessionReportResponseType:        "session-report-response",
}

func messageName(t int) string {
	if n, ok := messageNames[pfcp.MessageType(t)]; ok {
		return n
	}
	return fmt.Sprintf("message-%d", t)
}

// Stats are Prometheus' figures, zeros included. Names are fixed ones of messages, reasons and events, never a peer's.
type Stats struct {
	Associations, Failed int // Failed: of those, whose path has failed
	Sessions             int
	InFlight, Queued     int
	Received, Sent       []Count // messages by type
	Rejected             []Count // messages dropped or refused, by reason
	Events               []Count // what happened to associations and transactions
	Answers              []AnswerCount
	Lost                 uint64 // datagrams that the kernel dropped for want of room
	Retransmissions      uint64 // requests of ours that were sent again
	Repeats              uint64 // requests of peers that came again
	Timeouts             uint64 // requests of ours that were given up
}

// Count is a name's figure.
type Count struct {
	Name  string
	Value uint64
}

// AnswerCount counts answers of one type and cause.
type AnswerCount struct {
	Message string
	Cause   uint8
	Value   uint64
}

// Stats may be called from any goroutine.
func (s *Server) Stats() *Stats {
	c := &s.count
	happened := func(e event) uint64 { return c.events[e].Load() }
	out := &Stats{
		Sessions: s.sessions.Count(""), InFlight: int(s.calls.inFlight.Load()), Queued: len(s.nodes),
		Retransmissions: happened(eventRetransmitted), Timeouts: happened(eventTimedOut),
		Repeats: happened(eventCached) + happened(eventInProgress),
	}
	for _, w := range s.workers {
		out.Queued += len(w)
	}
	for _, k := range s.sockets {
		out.Lost += k.lost()
	}
	for _, a := range s.index.Load().byID {
		out.Associations++
		if a.failed() {
			out.Failed++
		}
	}
	for t := range messageTypes {
		name, known := messageNames[pfcp.MessageType(t)]
		if !known {
			continue
		}
		out.Received = append(out.Received, Count{name, c.received[t].Load()})
		out.Sent = append(out.Sent, Count{name, c.sent[t].Load()})
		for cause := range causes {
			if n := c.answers[t][cause].Load(); n > 0 {
				out.Answers = append(out.Answers, AnswerCount{name, uint8(cause), n})
			}
		}
	}
	for r := range c.rejected {
		why := reject(r)
		if why == accepted {
			continue
		}
		if why >= rejectCause {
			if _, known := causeNames[pfcp.Cause(why-rejectCause)]; !known {
				continue
			}
		}
		out.Rejected = append(out.Rejected, Count{why.String(), c.rejected[r].Load()})
	}
	for e, name := range eventNames {
		out.Events = append(out.Events, Count{name, c.events[e].Load()})
	}
	return out
}
