// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"

	"isthmus/lab/tester"
)

// End is what is known of the process at the other end of the tester's links.
type End struct {
	Name   string
	Exited <-chan struct{} // closed when it has ended; nil: not watched
	Words  func() string   // its last words, asked for after Exited was closed; may be nil
}

// RunAgainst runs the tester with a profile for the ports of a running device: a search, a fixed rate or steps, as its
// Run section says. It returns the result.
//
// A result is returned whenever the tester wrote one, also beside an error. When ctx ends, the run is interrupted, and
// its result comes back without an error: see Complete and Interrupted. An error means that the tester failed, the run
// is incomplete for another reason, or the device ended (with its last output). Wrong packets, or loss above the goal,
// are no error: Result.Status is 1 then.
//
// It starts one process only, and may be called repeatedly for the same device; calls for different devices may run at
// the same time when their CPUs differ.
func RunAgainst(ctx context.Context, end End, profile *tester.Profile, opt tester.Options) (*tester.Result, error) {
	watched, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-end.Exited: // never, for a nil channel
			cancel()
		case <-watched.Done():
		}
	}()
	r, err := tester.Run(watched, profile, opt)
	select {
	case <-end.Exited:
		words := ""
		if end.Words != nil {
			words = "\n" + end.Words()
		}
		return r, errors.Join(fmt.Errorf("%s ended while it was measured%s", end.Name, words), err)
	default:
		return r, err
	}
}
