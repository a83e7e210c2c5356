// SPDX-License-Identifier: Apache-2.0

package office

import (
	"context"
	"errors"
	"io"
	"time"

	"isthmus/controlplane/command"
	"isthmus/lab/tester"
)

// Options of Profile.
type Options struct {
	Engine   string    // its program; empty: found
	EAL      []string  // DPDK options
	Log      io.Writer // what engine and drivers print
	Command  []string  // for the result
	Ready    func()    // links are up
	Progress Progress
	Patience time.Duration // with the engine; 0: a minute
}

// Check has an engine look at a profile. What is wrong with it is a *tester.Faults.
func Check(ctx context.Context, engine string, p *tester.Checked) error {
	e, err := Start(ctx, engine, p, true, nil, io.Discard)
	if err != nil {
		return err
	}
	return e.Close()
}

// Profile runs a profile with an engine of its own. The result has the reason why it is incomplete. Faults that the
// engine finds in the profile are the error.
func Profile(ctx context.Context, p *tester.Checked, opt Options) (*tester.Result, error) {
	begin := time.Now()
	r := &tester.Result{Profile: p.Name, Title: p.Title, File: p.File, Version: command.Version,
		Command: opt.Command, Started: begin.UTC().Format("2006-01-02T15:04:05Z"),
		Machine: tester.Machine{CPUs: append([]int{}, p.CPUs...)}, Ports: []tester.PortResult{},
		Streams: []tester.StreamInfo{}, Trials: []tester.Trial{}}
	for i := range p.Ports {
		r.Ports = append(r.Ports, tester.PortResult{Name: p.Ports[i].Name, Driver: p.Ports[i].Driver,
			Device: p.Ports[i].Device})
	}
	for i := range p.Streams {
		s := &p.Streams[i]
		r.Streams = append(r.Streams, tester.StreamInfo{Name: s.Name, Port: s.Port, Sink: s.Sink,
			Flows: s.Flows, MeanBytes: s.MeanBytes(), Share: float64(s.Share), Answers: s.Answers})
	}
	if err := withEngine(ctx, p, &opt, r); err != nil {
		if faults := (*tester.Faults)(nil); errors.As(err, &faults) {
			return nil, err
		}
		r.Error = err.Error()
		r.Interrupted = r.Interrupted || ctx.Err() != nil
	}
	r.Seconds = time.Since(begin).Seconds()
	Judge(p, r)
	return r, nil
}

func withEngine(ctx context.Context, p *tester.Checked, opt *Options, r *tester.Result) error {
	e, err := Start(ctx, opt.Engine, p, false, opt.EAL, opt.Log)
	if err != nil {
		return err
	}
	defer e.Close()
	if opt.Patience > 0 {
		e.patience = opt.Patience
	}
	m := &r.Machine
	m.CPU, m.Kernel, m.DPDK = text(e.Hello.CPU[:]), text(e.Hello.Kernel[:]), text(e.Hello.Dpdk[:])
	if err := e.WaitLinks(); err != nil {
		return err
	}
	m.TSCHz, m.HugePages = e.ready.TSCHz, e.ready.HugePages != 0
	for i := range r.Ports {
		r.Ports[i].SpeedMbps = float64(e.ready.SpeedMbps[i])
	}
	if opt.Ready != nil {
		opt.Ready()
	}
	Run(p, e, opt.Progress, r)
	stray, clock, err := e.End()
	if err == nil && len(r.Trials) > 0 {
		r.Trials[len(r.Trials)-1].Stray += stray
	}
	m.ClockGHz = clock
	return nil // an engine that failed a trial has ended: why stands in the result
}
