// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"isthmus/lab/bench"
	"isthmus/lab/l3fwd"
)

// l3fwdOptions are those of the comparison of routers.
func l3fwdOptions(e *env, opt bench.Options, words *benchWords) l3fwd.Options {
	o := l3fwd.Options{
		Bench: opt, Ports: words.ports, Peers: words.peers, Rounds: words.rounds,
		Say: func(format string, args ...any) { fmt.Fprintf(e.Err, format+"\n", args...) },
	}
	if words.linkGiven {
		o.Link = opt.Link
	}
	return o
}

// benchL3fwd compares routers. What was measured is printed and written also when it ended early.
func benchL3fwd(ctx context.Context, e *env, opt bench.Options, words *benchWords) error {
	r, err := l3fwd.Run(ctx, l3fwdOptions(e, opt, words))
	if r == nil || len(r.Points) == 0 {
		return err
	}
	if err := r.Print(e.Out); err != nil {
		return err
	}
	return conclude(r, r.Interrupted, words.json, err)
}
