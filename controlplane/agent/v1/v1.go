// SPDX-License-Identifier: Apache-2.0

// Package v1 has the bodies of requests and answers below /v1/, except the tables'.
package v1

import (
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
	AppliedFile string    `json:"applied_file"` // where the text is kept that `config apply` brought; empty: File runs
	Started     time.Time `json:"started"`
	Applied     time.Time `json:"applied"` // when the running configuration was accepted
	Objects     int       `json:"objects"`
	DataPlane   string    `json:"data_plane"`
	DPSocket    string    `json:"dp_socket"`
	DPPID       uint32    `json:"dp_pid"`
	DPVersion   string    `json:"dp_version"`
	DPBootID    uint64    `json:"dp_boot_id"`
	DPHuge      bool      `json:"dp_huge_pages"`
	Reconciled  time.Time `json:"reconciled"` // last time that held and intended state were equal
	LastError   string    `json:"last_error" private:"words"`
	Connects    uint64    `json:"connects"`
	Changes     uint64    `json:"changes"` // sent since start

	Kernel        []kernel.Status `json:"kernel"`                     // namespaces with clones
	KernelRefused int             `json:"kernel_refused"`             // of its objects, by the data plane
	KernelWhy     string          `json:"kernel_why" private:"words"` // one of them
	RoutesIgnored map[string]int  `json:"routes_ignored"`             // of the kernel's, by reason

	RefusedRequests  uint64 `json:"refused_requests"`  // of the API by TCP: bad tokens, foreign pages
	Events           uint64 `json:"events"`            // since start
	Followers        int    `json:"followers"`         // of events
	DroppedFollowers uint64 `json:"dropped_followers"` // that were too slow
}

// Result describes what a change did.
type Result struct {
	Objects int    `json:"objects"`
	Put     int    `json:"put"`
	Deleted int    `json:"deleted"`
	Note    string `json:"note,omitempty"`
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

// Drained is what a drain ended, and which accounting records are not sent yet.
type Drained struct {
	Ended      int    `json:"ended"`
	Accounting int    `json:"accounting"`     // records that wait for a RADIUS server
	File       string `json:"file,omitempty"` // where they are kept
}

// Failure is the body of every answer that is not 200.
type Failure struct {
	Error string `json:"error"`
}

// NextAfter is the header of answers that are a part: `after` of the next part.
const NextAfter = "Next-After"
