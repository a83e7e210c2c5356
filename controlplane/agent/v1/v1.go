// SPDX-License-Identifier: Apache-2.0

// Package v1 has the bodies of requests and answers below /v1/, except the tables'.
package v1

import (
	"fmt"
	"strings"
	"time"

	"isthmus/controlplane/kernel"
)

// State of the data plane as the control plane sees it.
const (
	StateAway    = "away"    // no connection
	StateReady   = "ready"   // holds the intent
	StateRefused = "refused" // connected, but refused the intent
)

// Status is the control plane's own state.
type Status struct {
	Version     string    `json:"version"`
	PID         int       `json:"pid"`
	File        string    `json:"file"`
	DropIns     []string  `json:"drop_ins"`     // of File, in their order
	AppliedFile string    `json:"applied_file"` // where the text is kept that `config apply` brought; empty: File runs
	Started     time.Time `json:"started"`
	Applied     time.Time `json:"applied"` // when the running configuration was accepted
	Objects     int       `json:"objects"`
	CPUs        string    `json:"cpus"` // where engine.cpus auto put the workers; empty: the file names them
	DataPlane   string    `json:"data_plane"`
	DPSocket    string    `json:"dp_socket"`
	DPPID       uint32    `json:"dp_pid"`
	DPVersion   string    `json:"dp_version"`
	DPBootID    uint64    `json:"dp_boot_id"`
	DPHuge      bool      `json:"dp_huge_pages"`
	DPRestart   string    `json:"dp_restart"` // who starts it: always, never (we, once), external
	DPEnded     Ended     `json:"dp_ended"`   // the data plane that we started
	Reconciled  time.Time `json:"reconciled"` // last time that held and intended state were equal
	LastError   string    `json:"last_error" private:"words"`
	Why         string    `json:"why" private:"words"` // it does not forward, and what to do; empty: it does
	Connects    uint64    `json:"connects"`
	Changes     uint64    `json:"changes"` // sent since start

	Kernel        []kernel.Status `json:"kernel"`                     // namespaces with clones
	KernelRefused int             `json:"kernel_refused"`             // of its objects, by the data plane
	KernelWhy     string          `json:"kernel_why" private:"words"` // one of them
	RoutesIgnored map[string]int  `json:"routes_ignored"`             // of the kernel's, by reason

	Drain        Drain `json:"drain"`
	Associations int   `json:"associations"` // over PFCP

	RefusedRequests  uint64 `json:"refused_requests"`  // of the API by TCP: bad tokens, foreign pages
	Events           uint64 `json:"events"`            // since start
	Followers        int    `json:"followers"`         // of events
	DroppedFollowers uint64 `json:"dropped_followers"` // that were too slow
}

// Kept is what outlives a control plane, and where its machine has it.
type Kept struct {
	Version string     `json:"version"`
	Node    string     `json:"node"` // Node ID of PFCP, else the machine's name
	DUID    string     `json:"duid"` // of DHCPv6, if the machine's id makes it; else empty
	Files   []KeptFile `json:"files"`
}

// KeptFile is a file that is there, or may be.
type KeptFile struct {
	Role string `json:"role"` // config, drop-in/NAME, state/NAME, named/KEY or applied/KEY of the configuration
	Path string `json:"path"`
}

// Ended is how the data plane ended last that the control plane starts.
type Ended struct {
	How   string    `json:"how"`   // ended by signal 6 (SIGABRT), ended with exit status 1, does not start: why
	PID   int       `json:"pid"`   // 0: it did not start
	Times uint64    `json:"times"` // in a row: it did not run for ten seconds between; 0: it never ended
	Total uint64    `json:"total"`
	Since time.Time `json:"since"` // the first of the row
	Last  time.Time `json:"last"`
	Words []string  `json:"words" private:"words"` // its last lines
}

// String is for people; empty when it never ended.
func (e *Ended) String() string {
	switch {
	case e.Times == 0:
		return ""
	case e.Times == 1:
		return "it " + e.How + ", at " + e.Last.Format(time.RFC3339)
	}
	return fmt.Sprintf("it %s, %d times in a row since %s", e.How, e.Times, e.Since.Format(time.RFC3339))
}

// Away is why there is no data plane, or what to do to learn it; empty while there is one.
func (s *Status) Away() string {
	ended := s.DPEnded.String()
	switch {
	case s.DataPlane != StateAway:
		return ""
	case s.DPRestart == "external":
		return "something else starts it; see systemctl status isthmus-dp, journalctl -u isthmus-dp"
	case ended == "":
		return "it is being started; isthmus status --wait 10s waits for it"
	case s.DPRestart == "never":
		return ended + "; by control.restart.policy it is not started again"
	}
	return ended
}

// Explain fills Why with all that is known.
func (s *Status) Explain() {
	var parts []string
	if away := s.Away(); away != "" {
		parts = append(parts, away)
		if len(s.DPEnded.Words) > 0 {
			parts = append(parts, "last words: "+strings.Join(s.DPEnded.Words, " | "))
		}
	}
	if s.LastError != "" {
		parts = append(parts, s.LastError)
	}
	s.Why = strings.Join(parts, "; ")
}

// Result describes what a change did.
type Result struct {
	Objects int    `json:"objects"`
	Put     int    `json:"put"`
	Deleted int    `json:"deleted"`
	Note    string `json:"note,omitempty"`

	// Of a dry run: what a change would do.
	DryRun  bool     `json:"dry_run,omitempty"`
	Keys    []string `json:"keys,omitempty"`    // "~ path: old -> new", "+ path: new", "- path: old"
	Changes []string `json:"changes,omitempty"` // objects of the data plane: add, change or delete, kind and name
	More    int      `json:"more,omitempty"`    // changes that are not named
	Here    []string `json:"here,omitempty"`    // what this machine lacks for ports
}

// Checked is what a file would be in place of the running configuration.
type Checked struct {
	Objects int      `json:"objects"`
	Fixed   []string `json:"fixed"` // what the running data plane cannot change
}

// Stream is one synth stream to add, or to remove when Body is empty. Streams are test traffic, not intent: they are
// sent as they come, and not again after the data plane restarted.
type Stream struct {
	Name string `json:"name"`
	Body []byte `json:"body"` // struct api_synth
}

// Cleared is how many subscribers were ended.
type Cleared struct {
	Ended int `json:"ended"`
}

// Drained is what a drain did, part by part, in its order.
type Drained struct {
	Announced    int                  `json:"announced"`      // prefixes that routing daemons had from us
	Kept         bool                 `json:"kept"`           // they still have them
	SignIn       bool                 `json:"sign_in"`        // subscribers sign in here
	Ended        int                  `json:"ended"`          // sessions of subscribers
	Accounting   int                  `json:"accounting"`     // records that wait for a RADIUS server
	File         string               `json:"file,omitempty"` // where they are kept
	Associations []DrainedAssociation `json:"associations"`   // over PFCP
	Sessions     int                  `json:"sessions"`       // over PFCP, that are left
}

// DrainedAssociation is one whose CP function was asked to release it.
type DrainedAssociation struct {
	ID    string `json:"id"`
	State string `json:"state"`         // released, refused, left: agreed, and not released in time
	Why   string `json:"why,omitempty"` // refused
}

// Drain is which parts are drained. Undone by a resume, or a start.
type Drain struct {
	Since        time.Time `json:"since,omitzero"` // absent: none
	Announced    bool      `json:"announced"`      // announcements stay
	SignIns      bool      `json:"sign_ins"`       // sign-ins are refused
	Associations bool      `json:"associations"`   // associations over PFCP are refused
}

// Failure is the body of every answer that is not 200.
type Failure struct {
	Error string `json:"error"`
}

// NextAfter is the header of answers that are a part: `after` of the next part.
const NextAfter = "Next-After"
