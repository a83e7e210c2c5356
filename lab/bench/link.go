// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"isthmus/lab/tester"
	"isthmus/lab/tester/office"
)

// End is what is known of the process at the other end of the tester's links.
type End struct {
	Name   string
	Exited <-chan struct{} // closed when it has ended; nil: not watched
	Words  func() string   // its last words, asked for after Exited was closed; may be nil
}

// TesterOptions of RunAgainst.
type TesterOptions struct {
	Engine   string          // isthmus-traffic-engine; empty: found by office.Find
	Dir      string          // keeps profile.yaml and result.json; empty: they are not kept
	NoHuge   bool            // overrules the profile
	Progress office.Progress // may be nil; no trial begins before it has returned
}

// RunAgainst runs a profile whose ports are connected to a running device, and returns what it measured: a search, a
// fixed rate or steps, as its Run section says.
//
// A result is returned whenever something was measured, also beside an error. Look at its Complete and Interrupted:
// when ctx ends, the run is interrupted, and what it measured by then comes back without an error. The error is not nil
// when the tester failed, when the run is not complete for another reason, or when the device ended (with its last
// words). Packets that were wrong, or lost above the goal, are no error here: Result.Status is 1 then.
//
// It starts one engine and nothing else. Calls for different devices may run at the same time when their CPUs differ.
func RunAgainst(ctx context.Context, end End, profile *tester.Profile, opt TesterOptions) (*tester.Result, error) {
	watched, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-end.Exited: // never, for a nil channel
			cancel()
		case <-watched.Done():
		}
	}()
	r, err := runTester(watched, profile, opt)
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

func runTester(ctx context.Context, profile *tester.Profile, opt TesterOptions) (*tester.Result, error) {
	wanted := *profile
	wanted.HugePages = wanted.HugePages && !opt.NoHuge
	text, err := wanted.YAML()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(opt.Dir, "profile.yaml")
	if opt.Dir != "" {
		if err := errors.Join(os.MkdirAll(opt.Dir, 0o755), os.WriteFile(file, text, 0o644)); err != nil {
			return nil, err
		}
	}
	checked, err := tester.Parse(file, text)
	if err != nil {
		return nil, err
	}
	var words bytes.Buffer
	r, err := office.Profile(ctx, checked, office.Options{Engine: opt.Engine, Log: &words,
		Command: []string{"isthmus-traffic", file}, Progress: opt.Progress})
	if err != nil {
		return nil, fmt.Errorf("isthmus-traffic: %w\n%s", err, lastLines(words.String()))
	}
	if opt.Dir != "" {
		if err := office.WriteJSON(filepath.Join(opt.Dir, "result.json"), r); err != nil {
			return nil, err
		}
	}
	r = office.Short(r)
	for i := range r.Trials {
		if t := &r.Trials[i]; math.IsInf(t.RatePPS, 1) {
			t.RatePPS = 0 // as in the JSON: nothing is to be compared with it
		}
	}
	switch {
	case r.Complete || r.Interrupted && ctx.Err() != nil:
		return r, nil
	case len(r.Trials) == 0:
		return nil, fmt.Errorf("isthmus-traffic: %s\n%s", r.Error, lastLines(words.String()))
	}
	return r, fmt.Errorf("isthmus-traffic: %s", r.Error)
}
