// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"isthmus/controlplane/access"
)

// Phases of signing in, as metrics call them.
const (
	phaseQueue   = "queue"          // until its turn came
	phaseAuth    = "authentication" // of the method that decided
	phaseAddress = "address"        // from pools
	phaseSession = "session"        // until the data plane has it
	phaseTotal   = "total"          // from SignIn until packets pass
)

const (
	framePPPoE = iota
	frameIPoE
	frameNoPort    // no sign-in is configured there
	frameNotServed // not by this protocol
	frameKinds
)

// stats are counted by the loop.
type stats struct {
	frames      [frameKinds]uint64
	signedIn    uint64
	failures    map[string]uint64 // by reason
	ended       map[access.Cause]uint64
	replaced    uint64
	reportsLost uint64
}

func newStats() stats { return stats{failures: map[string]uint64{}, ended: map[access.Cause]uint64{}} }

func (s *stats) failed(reason string) { s.failures[reason]++ }
