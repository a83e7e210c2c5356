// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"isthmus/lab/figure"
	"isthmus/lab/tester"
)

// fake is a peer that needs no program.
func fake(name, link string, started *[]string) *Peer {
	return &Peer{
		Name: name, Link: link, Packets: Plain, Change: NewMACs,
		Version: func(context.Context, *Setup) (string, error) { return "1", nil },
		Start: func(context.Context, Setup) (*Running, error) {
			*started = append(*started, name)
			return &Running{
				Command: []string{name, "--fast"}, Stop: func() { *started = append(*started, "-"+name) },
				Ports: map[string]tester.Port{access: {Driver: "net_memif", Device: "a"},
					core: {Driver: "net_memif", Device: "c"}},
			}, nil
		},
	}
}

func baseProfile() *tester.Profile {
	return &tester.Profile{
		Name: "base", Ports: []tester.Port{{Name: access, MTU: 1600}, {Name: core}}, Streams: baseStreams(),
		Run: tester.Plan{Mode: tester.ModeSearch, Search: &tester.Search{Goals: []tester.Goal{{Loss: "0"},
			{Loss: "0.001%"}}}},
	}
}

// found is a search's result.
func found(mpps float64) *tester.Result {
	return &tester.Result{
		Complete: true, Machine: tester.Machine{TSCHz: 2e9},
		Search: &tester.SearchResult{Goals: []tester.GoalResult{
			{Outcome: tester.Outcome{Found: true}, RatePPS: mpps * 0.5e6},
			{Loss: 1e-5, Outcome: tester.Outcome{Found: true}, RatePPS: mpps * 1e6}}},
		Trials: []tester.Trial{
			{Used: true, RatePPS: mpps * 1.5e6, LossRatio: 0.3, Received: 1, Seconds: 1, GbpsL2: 99},
			{Used: true, RatePPS: mpps * 1e6, LossRatio: 1e-6, Received: 1, Seconds: 1, GbpsL2: mpps * 5},
			{Used: true, RatePPS: mpps * 0.5e6, Received: 1, Seconds: 1, GbpsL2: 98},
		},
	}
}

func row(t *testing.T, rows []Row, name string) *Row {
	t.Helper()
	for i := range rows {
		if rows[i].Name == name {
			return &rows[i]
		}
	}
	t.Fatalf("no row %s in %+v", name, rows)
	return nil
}

func TestMediansAndRatios(t *testing.T) {
	var started []string
	ours, slow, over := fake("isthmus", LinkMemif, &started), fake("slow", LinkMemif, &started),
		fake("linux", LinkVeth, &started)
	ours.Ours = true
	rates := map[string][]float64{"isthmus": {4, 2, 3, 9, 1}, "slow": {1, 2, 1.5, 1.5, 1.5}, "linux": {1, 1, 1, 1, 1}}
	used := map[string]int{}
	rows, err := RunAll(context.Background(), []*Peer{ours, slow, over},
		Options{Setup: testSetup(), Base: baseProfile()},
		func(_ context.Context, name string, r *Running, p *tester.Profile) (*tester.Result, error) {
			if p.Ports[0].Device != "a" || p.Ports[0].MTU != 1600 || p.Ports[1].Device != "c" {
				t.Errorf("ports %+v", p.Ports)
			}
			used[name]++
			return found(rates[name][used[name]-1]), nil
		})
	if err != nil {
		t.Fatal(err)
	}
	r := row(t, rows, "isthmus")
	if r.Mpps != 3 || r.Spread.Min != 1 || r.Spread.Max != 9 || r.Repetitions != 5 || r.Ratio != 1 ||
		r.GbpsL2 != 15 || *r.LossRatio != 1e-6 {
		t.Errorf("%+v", r)
	}
	if want := figure.Number(2e9 / 3e6); r.TicksPerPacket != want {
		t.Errorf("%g ticks, want %g", r.TicksPerPacket, want)
	}
	if r = row(t, rows, "slow"); r.Ratio != 0.5 || r.RatioRange.Min != 1.5/9 || r.RatioRange.Max != 1.5 ||
		r.Command != "slow --fast" {
		t.Errorf("%+v", r)
	}
	if r = row(t, rows, "linux"); r.Ratio != 0 {
		t.Errorf("a ratio to another link: %+v", r)
	}
	for i := 0; i < len(started); i += 2 {
		if started[i+1] != "-"+started[i] {
			t.Fatalf("two at a time: %v", started)
		}
	}
	if got := strings.Join(started[:12], " "); got != "isthmus -isthmus slow -slow linux -linux linux -linux slow "+
		"-slow isthmus -isthmus" {
		t.Errorf("order: %s", got)
	}
}

// Over as many pairs of repetitions as there are programs, each stands at each place equally often.
func TestOrderIsFair(t *testing.T) {
	const n = 5
	at := [n][n]int{}
	for repetition := range 2 * n {
		for place, who := range order(n, repetition) {
			at[who][place]++
		}
		if repetition%2 == 1 {
			there, back := order(n, repetition-1), order(n, repetition)
			for i := range there {
				if there[i] != back[n-1-i] {
					t.Errorf("repetition %d does not go back as %d came: %v, %v", repetition, repetition-1, there, back)
				}
			}
		}
	}
	for who := range at {
		for place, count := range at[who] {
			if count != 2 {
				t.Errorf("%d stands %d times at place %d", who, count, place)
			}
		}
	}
}

func TestOthersGoOn(t *testing.T) {
	var started []string
	missing, broken, wrong, dies, good := fake("missing", LinkMemif, &started), fake("broken", LinkMemif, &started),
		fake("wrong", LinkMemif, &started), fake("dies", LinkMemif, &started), fake("good", LinkMemif, &started)
	missing.Version = func(context.Context, *Setup) (string, error) { return "", errors.New("not installed") }
	broken.Start = func(context.Context, Setup) (*Running, error) { return nil, errors.New("no memory") }
	times := 0
	var said []string
	rows, err := RunAll(context.Background(), []*Peer{missing, broken, wrong, dies, good}, Options{
		Setup: testSetup(), Base: baseProfile(), Repetitions: 3,
		Say: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) },
	}, func(_ context.Context, name string, _ *Running, _ *tester.Profile) (*tester.Result, error) {
		r := found(1)
		switch name {
		case "wrong":
			r.Trials[0].Wrong = 7
		case "dies":
			if times++; times == 2 {
				return nil, errors.New("it ended")
			}
		}
		return r, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"missing": "not installed", "broken": "no memory",
		"wrong": "7 packets came out wrong"} {
		if r := row(t, rows, name); !strings.Contains(r.WhyNot, want) || r.Mpps != 0 || r.Repetitions != 0 {
			t.Errorf("%s: %+v", name, r)
		}
		if !strings.Contains(strings.Join(said, "\n"), "peer "+name+" left out: ") {
			t.Errorf("nobody heard of %s: %v", name, said)
		}
	}
	if r := row(t, rows, "dies"); r.Repetitions != 1 || r.WhyNot != "it ended" || r.Mpps != 1 {
		t.Errorf("%+v", r)
	}
	if r := row(t, rows, "good"); r.Repetitions != 3 || r.WhyNot != "" || r.Mpps != 1 {
		t.Errorf("%+v", r)
	}
	var table bytes.Buffer
	if err := Print(&table, rows); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"missing: left out: not installed", "dies: ended early: it ended", "RATIO"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, table.String())
		}
	}
}

func TestInterruptKeepsRows(t *testing.T) {
	var started []string
	ctx, cancel := context.WithCancel(context.Background())
	rows, err := RunAll(ctx, []*Peer{fake("a", LinkMemif, &started), fake("b", LinkMemif, &started)},
		Options{Setup: testSetup(), Base: baseProfile()},
		func(_ context.Context, name string, _ *Running, _ *tester.Profile) (*tester.Result, error) {
			if name == "b" {
				cancel()
				return &tester.Result{Interrupted: true}, nil
			}
			return found(2), nil
		})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if r := row(t, rows, "a"); r.Repetitions != 1 || r.Mpps != 2 {
		t.Errorf("%+v", r)
	}
	if r := row(t, rows, "b"); r.Repetitions != 0 || r.WhyNot == "" {
		t.Errorf("%+v", r)
	}
	if started[len(started)-1] != "-b" {
		t.Errorf("something still runs: %v", started)
	}
}

func TestBadSetup(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"descriptors": func(o *Options) { o.Setup.Descriptors = 1000 },
		"no address":  func(o *Options) { o.Setup.Ends[1].MAC = "" },
	} {
		opt := Options{Setup: testSetup(), Base: baseProfile()}
		change(&opt)
		if _, err := RunAll(context.Background(), nil, opt, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	steps := baseProfile()
	steps.Run = tester.Plan{Mode: tester.ModeSteps}
	var started []string
	rows, err := RunAll(context.Background(), []*Peer{fake("a", LinkMemif, &started)},
		Options{Setup: testSetup(), Base: steps}, nil)
	if err != nil || row(t, rows, "a").WhyNot == "" {
		t.Errorf("a profile with steps: %+v, %v", rows, err)
	}
}

// At a fixed rate the rows have the packets received, without speeds.
func TestFixedRate(t *testing.T) {
	base := baseProfile()
	base.Run = tester.Plan{Mode: tester.ModeFixed, Rate: "2kpps"}
	var started []string
	ours, mute := fake("isthmus", LinkMemif, &started), fake("mute", LinkMemif, &started)
	ours.Ours = true
	rows, err := RunAll(context.Background(), []*Peer{ours, mute},
		Options{Setup: testSetup(), Base: base, Repetitions: 1},
		func(_ context.Context, name string, _ *Running, _ *tester.Profile) (*tester.Result, error) {
			trial := tester.Trial{Purpose: tester.PurposeFixed, Used: true, Seconds: 0.5, Sent: 1000, Received: 900,
				LossRatio: 0.1}
			if name == "mute" {
				trial.Received = 0
			}
			return &tester.Result{Complete: true, Trials: []tester.Trial{{Purpose: tester.PurposeWarmup, Used: true,
				Received: 9}, trial}}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	if r := row(t, rows, "isthmus"); r.Mpps != 0.0018 || *r.LossRatio != 0.1 || r.Ratio != 0 ||
		r.TicksPerPacket != 0 || !r.FixedRate {
		t.Errorf("%+v", r)
	}
	if r := row(t, rows, "mute"); !strings.Contains(r.WhyNot, "none of 1000 packets") {
		t.Errorf("%+v", r)
	}
}

func TestCPUMask(t *testing.T) {
	for cpu, want := range map[int]string{-1: "", 0: "1", 5: "20", 31: "80000000", 32: "1,00000000",
		65: "2,00000000,00000000"} {
		if got := cpuMask(cpu); got != want {
			t.Errorf("CPU %d: %q, want %q", cpu, got, want)
		}
	}
}
