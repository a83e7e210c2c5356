// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"net/netip"
	"time"

	"isthmus/controlplane/pfcp"
)

// Association is the session layer's view of a CP function. ID, the node id, is its identity; Set is its SMF set or "".
// A value never changes after it was handed over.
type Association struct {
	ID, Set  string
	Addr     netip.AddrPort // destination of our requests, unless the CP F-SEID names another
	Features uint64         // CP* bits of package pfcp
}

// StoredAssociation is what outlives a restart of the control plane.
type StoredAssociation struct {
	ID       string         `json:"id"`
	Set      string         `json:"set,omitempty"`
	Addr     netip.AddrPort `json:"addr"`             // where requests of ours go
	Others   []netip.Addr   `json:"others,omitempty"` // its other addresses
	Local    netip.AddrPort `json:"local"`            // the listen address that it spoke to
	Features uint64         `json:"features"`
	Recovery time.Time      `json:"recovery"` // the peer's last recovery time stamp
	Since    time.Time      `json:"since"`    // when it was set up
	FailedAt time.Time      `json:"failed_at,omitzero"`
}

// Sessions is the session layer as the server sees it. Calls come from any goroutine of the server.
type Sessions struct {
	Requests
	Groups
	Store
}

// Requests are the requests for one session. reply is called exactly once, from any goroutine, possibly before the call
// returns.
//
// The session layer binds a session to the association that made it. Modify and Delete answer cause 65 when `from` is
// neither that association nor in its SMF set (rows A4, P31). CP functions may share an address, and these messages
// name no node id. So `from` is all associations of the sender's address, at least one; it is read only. The session
// layer also enforces quotas, since it knows existing and pending sessions (cause 75, row A6). No method may wait for
// other requests: its worker has more behind it.
type Requests interface {
	Establish(from *Association, req *pfcp.SessionEstablishmentRequest, reply func(*pfcp.SessionEstablishmentResponse))
	// cpSEID is the CP F-SEID of the session, for the header of the answer; 0 for an unknown session.
	Modify(from []*Association, seid uint64, req *pfcp.SessionModificationRequest,
		reply func(r *pfcp.SessionModificationResponse, cpSEID uint64))
	Delete(from []*Association, seid uint64, reply func(r *pfcp.SessionDeletionResponse, cpSEID uint64))
	// Locate returns, in its turn, the CP F-SEID of a session for a request that is refused unread.
	Locate(from []*Association, seid uint64, reply func(cpSEID uint64))
}

// Groups are sessions of one association, or of an application.
type Groups interface {
	// Release deletes, at a bounded pace, the current sessions of an association, or those of them with one of the
	// FQ-CSIDs. Later sessions stay. done is called once, after the last; not if an equal release is in progress, which
	// then serves both. Only a release by FQ-CSIDs is ever refused: when many are in progress.
	Release(association string, fqcsid [][]byte, done func(deleted int)) *pfcp.Error
	// Retain is Release of the sessions whose CP F-SEID has none of the addresses (TS 29.244 §5.22, Session
	// Retention).
	Retain(association string, keep []netip.Addr, done func(deleted int))
	// Adopt gives the sessions of one member of an SMF set to another (TS 29.244 §5.22), paced; to reports and
	// deletions they are the other's at once. It returns how many.
	Adopt(from, to string) int
	// SetPFDs replies once, after having looked at all sessions that use the applications.
	SetPFDs(r *pfcp.PFDManagementRequest, reply func(*pfcp.Error))
	// Count returns how many sessions an association has; "" for all.
	Count(association string) int
}

// Store is what outlives a restart of the control plane.
type Store interface {
	// Associations returns the stored ones at our start. The session layer deletes sessions of all others: their
	// association ended while we were away.
	Associations() []StoredAssociation
	KeepAssociation(a StoredAssociation) error
	ForgetAssociation(id string) error
	// Recovery is our recovery time stamp (TS 23.527 §4.2): the moment since when no session was lost. It is kept
	// with the sessions, so that a restart of the control plane alone does not move it.
	Recovery() time.Time
}

// Recipient is the CP function that the reports of a session are for.
type Recipient struct {
	Association string
	CP          pfcp.FSEID // of the session
	// the CP F-SEID is not the association's: it inherited the session from a member of its SMF set
	Moved bool
}

// Reporter is the server as the session layer sees it.
type Reporter interface {
	// Report sends a session report. If the recipient's path has failed, or its CP F-SEID is another's, the living
	// members of its SMF set are asked in turn (TS 29.244 §5.22). done is called once. An error means no answer, no
	// association, or that no member knows the session. It does not end the session. by is the member that
	// answered; nil: the one with the session's CP F-SEID.
	Report(to Recipient, req *pfcp.SessionReportRequest,
		done func(r *pfcp.SessionReportResponse, by *Association, err error))
	// Reachable: a report to the association would be sent, since its path or that of a member of its SMF set
	// works.
	Reachable(association string) bool
	NodeReport(req *pfcp.NodeReportRequest)
	// Address is where CP functions find us, for the UP F-SEID: the listen addresses.
	Address() (v4, v6 netip.Addr)
	// Find returns the association, nil without one.
	Find(association string) *Association
}
