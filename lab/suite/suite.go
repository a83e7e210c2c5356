// SPDX-License-Identifier: Apache-2.0

// Package suite measures everything in the report, part by part, within an announced time. A failed part does not stop
// the others; an interrupt ends the run and keeps the results. The report is written after each part, so that nothing
// is lost.
package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"isthmus/lab/bench"
	"isthmus/lab/l3fwd"
	"isthmus/lab/peer"
	"isthmus/lab/report"
)

// Title of the report.
const Title = "Isthmus access gateway: measured performance"

// Options of a suite.
type Options struct {
	Base     bench.Options // binaries, huge pages, workers, subscribers, goal, link; CPUs for one gateway
	Sections []string      // of the report, nil: all
	Quick    bool          // about a fifth of the time, with rougher figures
	Dir      string        // of the report
	Progress io.Writer     // lines about what is going on
	Tools    Tools
}

// Tools measure. They are what the rest of the program has; tests give others.
type Tools struct {
	Link  func(ctx context.Context, opt bench.Options) (*bench.LinkResult, error)
	Synth func(ctx context.Context, opt bench.Options) (*bench.Result, error)
	Peers func(ctx context.Context, opt bench.Options, rounds int) ([]peer.Row, error)
	Place func(opt *bench.Options) (fits bool, err error) // assigns CPUs to the instances
	// Routers compares routers of several ports; nil: that part is left out.
	Routers func(ctx context.Context, opt bench.Options) (*l3fwd.Result, error)
}

// part is a step of the suite.
type part struct {
	section string // of the report, which mentions its absence
	name    string
	seconds float64 // expected
	run     func(ctx context.Context) error
}

// suite is a run under way.
type suite struct {
	opt   Options
	r     *report.Report
	began time.Time
	bad   []error // wrong packets, missed goals: the figures exist, and are void

	unfinished int // parts at the end of the list of what is missing that an interrupt ended
}

// Run measures everything and writes the report, which is returned if written, also beside an error. The error reports
// an interrupt, a failed part, or wrong packets.
func Run(ctx context.Context, opt Options) (*report.Report, error) {
	s := &suite{opt: opt, began: time.Now()}
	s.r = &report.Report{
		Schema: report.Schema, Title: Title, Started: s.began.UTC().Format(time.RFC3339), Quick: opt.Quick,
		LossTarget: opt.Base.Goal,
		Missing:    []report.Missing{}, Notes: []report.Note{}, Machine: machine(), Versions: []report.Version{},
		Paper:    published(),
		Commands: []report.Command{{What: "this report", Line: opt.Base.Command}}, Runs: []report.Run{},
		Floors:    []report.Floor{},
		Instances: []report.Instances{}, Costs: []report.Cost{}, Subscribers: []report.Population{},
		Flows: []report.FlowCurve{}, Peers: []report.PeerGroup{},
		Routers: []report.PeerGroup{},
	}
	s.r.Versions = append(s.r.Versions, report.Version{Name: "isthmus", Version: opt.Base.Version})
	parts := slices.DeleteFunc(s.parts(), func(p part) bool {
		return opt.Sections != nil &&
			!slices.Contains(opt.Sections, p.section)
	})
	if len(parts) == 0 {
		return nil, fmt.Errorf("no part of the report is measured for %s", strings.Join(opt.Sections, ", "))
	}
	for i := range parts {
		s.r.BudgetSeconds += parts[i].seconds
	}
	// A folder that cannot be written to is found out now, not after ten minutes.
	if err := s.write(parts); err != nil {
		return nil, err
	}
	s.say("%d parts, about %s; the report will be in %s", len(parts), clock(s.r.BudgetSeconds), opt.Dir)
	for i := range parts {
		p := &parts[i]
		s.say("%s  [%d/%d] %s, about %s", clock(time.Since(s.began).Seconds()), i+1, len(parts), p.name,
			clock(p.seconds))
		before := s.found()
		err := p.run(ctx)
		here := ""
		if s.found() > before {
			here = "; what it had found by then is here"
		}
		if ctx.Err() != nil {
			s.interrupted(parts[i:], here)
			break
		}
		if err != nil {
			s.say("       failed: %v", err)
			list := each(err)
			for _, one := range list {
				s.miss(p, oneLine(one))
			}
			if list == nil {
				s.miss(p, oneLine(err)+here)
			}
		}
		if err := s.write(parts[i+1:]); err != nil {
			return s.r, err
		}
	}
	if ctx.Err() == nil {
		s.r.Complete = true
		if err := s.write(nil); err != nil {
			return s.r, err
		}
	}
	return s.r, s.verdict(ctx)
}

// interrupted writes the results so far. The first of the rest was in progress; `here` reports its partial results.
func (s *suite) interrupted(rest []part, here string) {
	s.r.Interrupted = true
	s.say("interrupted: the report keeps what was measured, and says so")
	s.unfinished = len(rest)
	for i := range rest {
		if i == 0 && here != "" {
			s.miss(&rest[0], "interrupted while it was measured"+here)
		} else {
			s.miss(&rest[i], "not measured, because the run was interrupted")
		}
	}
	if err := s.write(nil); err != nil {
		s.bad = append(s.bad, err)
	}
}

// found counts what the report holds, to see whether a part has added to it.
func (s *suite) found() int {
	n := len(s.r.Runs) + len(s.r.Costs) + len(s.r.Subscribers) + len(s.r.Flows) + len(s.r.Peers) +
		len(s.r.Instances) + len(s.r.Routers)
	for i := range s.r.Runs {
		n += len(s.r.Runs[i].Steps)
	}
	return n
}

// write writes the report as it is now. What is yet to come counts as missing in it.
func (s *suite) write(rest []part) error {
	s.r.Seconds = math.Round(time.Since(s.began).Seconds()*10) / 10
	missing := s.r.Missing
	for i := range rest {
		s.miss(&rest[i], "not measured yet: the run was under way when this was written")
	}
	err := s.r.Write(s.opt.Dir)
	s.r.Missing = missing
	return err
}

func (s *suite) miss(p *part, why string) {
	// A copy, so that write can go back to the list as it was.
	s.r.Missing = append(append([]report.Missing{}, s.r.Missing...),
		report.Missing{Section: p.section, Part: p.name, Why: why})
}

// verdict is why the run was not good, nil when it was.
func (s *suite) verdict(ctx context.Context) error {
	list := s.bad
	for _, m := range s.r.Missing[:len(s.r.Missing)-s.unfinished] {
		list = append(list, fmt.Errorf("%s: %s", m.Part, m.Why))
	}
	if ctx.Err() != nil {
		list = append([]error{fmt.Errorf("interrupted: the report in %s is partial: %w", s.opt.Dir, ctx.Err())},
			list...)
	}
	return errors.Join(list...)
}

func (s *suite) say(format string, args ...any) {
	if s.opt.Progress != nil {
		fmt.Fprintf(s.opt.Progress, format+"\n", args...)
	}
}

// clock prints seconds as 4:05.
func clock(seconds float64) string {
	n := int(math.Round(seconds))
	return fmt.Sprintf("%d:%02d", n/60, n%60)
}

// each takes joined errors apart, nil when it is a single one.
func each(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return nil
}

// oneLine is an error's first line, and that there is more.
func oneLine(err error) string {
	text, rest, more := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	if more {
		lines := strings.Split(strings.TrimSpace(rest), "\n")
		return text + " … " + strings.TrimSpace(lines[len(lines)-1])
	}
	return text
}
