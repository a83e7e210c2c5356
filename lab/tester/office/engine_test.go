// SPDX-License-Identifier: Apache-2.0

package office

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"isthmus/controlplane/testkit"
	"isthmus/lab/tester"
	"isthmus/traffic/job"
)

// The test binary acts as isthmus-traffic-engine in the way of this variable.
const actAs = "ISTHMUS_FAKE_ENGINE"

func TestMain(m *testing.M) {
	if how := os.Getenv(actAs); how != "" {
		os.Exit(fake(how, os.NewFile(job.Descriptor, "office")))
	}
	os.Exit(m.Run())
}

// fake behaves as the engine does, or as it does when something is wrong.
func fake(how string, office *os.File) int {
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, syscall.SIGINT)
	var head job.Head
	binary.Read(office, binary.NativeEndian, &head)
	io.CopyN(io.Discard, office, int64(head.Bytes))
	answer := func(kind uint32, parts ...any) {
		head := job.Head{Kind: kind}
		for _, part := range parts {
			head.Bytes += uint32(binary.Size(part))
		}
		for _, part := range append([]any{&head}, parts...) {
			binary.Write(office, binary.NativeEndian, part)
		}
	}
	hello := &job.Hello{CPU: [256]byte{'c', 'p', 'u'}}
	if how == "refuses" {
		hello.Faults = 1
		fault := &job.Fault{Stream: 1, Part: job.PartSend, Line: 5}
		copy(fault.Text[:], "udp.source: must be given")
		answer(job.AnswerHello, hello, fault)
		return 2
	}
	answer(job.AnswerHello, hello)
	switch how {
	case "no link":
		answer(job.AnswerFailed, []byte("no link after 1 s: access"))
		return 2
	case "waits":
		<-interrupted
		answer(job.AnswerFailed, []byte("interrupted while waiting for the links of access"))
		return 2
	}
	answer(job.AnswerReady, &job.Ready{TSCHz: 1e9, SpeedMbps: [96]uint32{10000}})
	for {
		var r job.Request
		if binary.Read(office, binary.NativeEndian, &r) != nil || how == "dies" {
			return 0
		}
		if how == "stuck" {
			select {} // also when it is interrupted
		}
		if r.Kind == job.AskEnd {
			answer(job.AnswerEnd, &job.End{Stray: 3, ClockGhz: 3.7})
			continue
		}
		counts := make([]job.StreamCount, 3)
		for i := range counts {
			counts[i].Sent, counts[i].Received = 1000, 1000
		}
		answer(job.AnswerTrial, &job.Trial{Seconds: r.Seconds, OfferedPps: r.Rate, Sent: 3000, Received: 3000}, counts)
	}
}

// patienceOf those that are not to be waited for.
var patienceOf = map[string]time.Duration{"stuck": time.Millisecond}

// play runs a profile with the fake engine.
func play(t *testing.T, ctx context.Context, how string) (*tester.Result, error) {
	t.Helper()
	t.Setenv(actAs, how)
	self, err := os.Executable()
	testkit.Must(t, err)
	text := strings.Replace(profile("mode: fixed, rate: 1kpps, seconds: 1, warmup: 0.01"),
		"{rate: 3856kbit, layer: l3, p99_us: 25}", "{loss: 0}", 1)
	p, err := tester.Parse("test.yaml", []byte(text))
	testkit.Must(t, err)
	return Profile(ctx, p, Options{Engine: self, Log: io.Discard, Patience: patienceOf[how]})
}

func TestARunWithAnEngine(t *testing.T) {
	r, err := play(t, t.Context(), "good")
	testkit.Must(t, err)
	last := &r.Trials[len(r.Trials)-1]
	testkit.ErrorIf(t, !r.Complete || r.Verdict != "good" || len(r.Trials) != 4 || last.Stray != 3 ||
		r.Machine.ClockGHz != 3.7 || r.Machine.CPU != "cpu" || r.Machine.TSCHz != 1e9 ||
		r.Ports[0].SpeedMbps != 10000 || r.Ports[1].SpeedMbps != 0, "%+v", r)
	testkit.Equal(t, last.Streams[2].Name, "policed", "the name of a stream")
}

func TestEnginesThatFail(t *testing.T) {
	for how, want := range map[string]string{"no link": "no link after 1 s: access",
		"dies": "the engine has ended: ", "stuck": ErrStuck.Error()} {
		r, err := play(t, t.Context(), how)
		testkit.Must(t, err)
		testkit.ErrorIf(t, r.Complete || r.Status != Incomplete || !strings.HasPrefix(r.Error, want), "%s: %+v", how, r)
	}
	_, err := play(t, t.Context(), "refuses")
	faults := (*tester.Faults)(nil)
	testkit.ErrorIf(t, !errors.As(err, &faults), "%v", err)
	testkit.Refused(t, err, "test.yaml:5: streams[1].send: udp.source: must be given")
}

func TestInterruptedBeforeTheLinksAreUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := play(t, ctx, "waits")
	testkit.Must(t, err)
	testkit.ErrorIf(t, !r.Interrupted || r.Complete || len(r.Trials) != 0, "%+v", r)
}
