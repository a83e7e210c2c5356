// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/testkit"
)

// shapedSettings: two workers, of which each owns one subport with two pipes at the port of N3.
func shapedSettings() *rules.Settings {
	set := testSettings()
	set.Workers = 2
	set.Instances[0].Shaping = &rules.Shaping{Port: "n3", Profile: "ue",
		Subports: []rules.ShapingSubport{{Worker: 0, Pipes: 2}, {Worker: 1, Pipes: 2}}}
	return set
}

func (b *bench) heads() map[uint64]api.Session {
	b.t.Helper()
	heads := map[uint64]api.Session{}
	for id, body := range b.s.Held() {
		var head api.Session
		if id.Kind != api.KindSession {
			continue
		}
		_, err := api.ReadRow(body, &head)
		testkit.Must(b.t, err)
		heads[head.SEID] = head
	}
	return heads
}

// checkPipes sees that each session has a pipe of its own, in its worker's subport, and returns them.
func (b *bench) checkPipes(want int) map[uint64]string {
	b.t.Helper()
	pipes, taken := map[uint64]string{}, map[string]bool{}
	for seid, h := range b.heads() {
		place := fmt.Sprintf("%s/%d/%d", api.CString(h.Port[:]), h.Subport, h.Pipe)
		if api.CString(h.Port[:]) != "n3" || h.Subport != uint32(h.Worker) || h.Pipe > 1 || taken[place] ||
			api.CString(h.PipeProfile[:]) != "ue" {
			b.t.Errorf("worker %d, %s %s", h.Worker, place, api.CString(h.PipeProfile[:]))
		}
		pipes[seid], taken[place] = place, true
	}
	testkit.ErrorIf(b.t, len(pipes) != want, "%d sessions, want %d", len(pipes), want)
	return pipes
}

// fill establishes sessions until each worker's pipes are taken.
func (b *bench) fill(from *n4.Association, first uint32) {
	b.t.Helper()
	for i := range uint32(64) {
		switch r := b.establish(from, request(first+i, fmt.Sprintf("10.46.0.%d", first+i))); r.Cause {
		case pfcp.CauseAccepted, pfcp.CauseNoResources:
		default:
			b.t.Fatalf("%+v", r)
		}
	}
}

func TestPipes(t *testing.T) {
	path := t.TempDir() + "/sessions.db"
	s := dptest.Start(t)
	var before map[uint64]string
	t.Run("taken and given back", func(t *testing.T) {
		b := startOn(t, s, path, shapedSettings())
		b.fill(smf1, 1)
		before = b.checkPipes(4)
		for seid := range before {
			wants(t, pfcp.CauseAccepted,
				b.modify(smf1, seid, &pfcp.SessionModificationRequest{QueryAll: true}))
		}
		for seid, place := range b.checkPipes(4) {
			testkit.ErrorIf(t, before[seid] != place,
				"a modification moves a session from %s to %s", before[seid], place)
		}
		for seid := range before {
			b.delete(smf1, seid)
			break
		}
		b.fill(smf1, 101)
		before = b.checkPipes(4)
		b.checkConsistent()
	})
	t.Run("kept by the store", func(t *testing.T) {
		_, sent := s.Counts()
		b := startOn(t, s, path, shapedSettings())
		_, now := s.Counts()
		testkit.ErrorIf(t, now != sent, "%d changes were sent", now-sent)
		b.fill(smf1, 191)
		b.checkPipes(4)
	})
	t.Run("fewer at the next start", func(t *testing.T) {
		set := shapedSettings()
		set.Instances[0].Shaping.Subports[1].Pipes = 1
		b := startOn(t, s, path, set)
		shaped := 0
		for _, h := range b.heads() {
			if h.Port[0] != 0 {
				shaped++
			}
		}
		testkit.ErrorIf(t, shaped != 3, "%d sessions have one of three pipes", shaped)
	})
	t.Run("again enough", func(t *testing.T) {
		b := startOn(t, s, path, shapedSettings())
		b.checkPipes(4)
	})
}

// Existing sessions get pipes when their instance becomes shaped, and lose them afterwards.
func TestReplanPipes(t *testing.T) {
	plain := shapedSettings()
	plain.Instances[0].Shaping = nil
	b := start(t, "", plain)
	workers := [2]int{}
	for i := uint32(1); workers[0] < 2 || workers[1] < 2; i++ {
		seid := b.establish(smf1, request(i, fmt.Sprintf("10.46.0.%d", i))).UP.SEID
		w := b.heads()[seid].Worker
		if workers[w]++; workers[w] > 2 {
			b.delete(smf1, seid)
		}
	}
	for _, set := range []*rules.Settings{shapedSettings(), plain} {
		changes := b.reconfigured(set)
		testkit.ErrorIf(t, len(changes) != 0, "%+v", changes)
		testkit.Until(t, "all are sent again", func() bool {
			for _, h := range b.heads() {
				if (h.Port[0] != 0) != (set != plain) {
					return false
				}
			}
			return true
		})
		if set != plain {
			b.checkPipes(4)
		}
		b.checkConsistent()
	}
}

// linePipes: at the access port two workers own a subport each, with two pipes, of which the file's home has one.
func linePipes() *rules.Settings {
	set := testSettings()
	set.Workers = 2
	set.Lines = map[string]*rules.Shaping{"access": {Port: "access", Profile: "home",
		Profiles: []string{"home", "silver"}, Taken: []rules.Pipe{rules.PipeAt(0, 1)},
		Subports: []rules.ShapingSubport{{Worker: 0, Pipes: 2}, {Worker: 1, Pipes: 2}}}}
	return set
}

// onLine sees that each line has a pipe of its own and its worker's, none of them the file's, and returns them.
func (b *bench) onLine(want int) map[uint64]rules.Pipe {
	b.t.Helper()
	pipes, taken := map[uint64]rules.Pipe{}, map[rules.Pipe]bool{}
	for _, pipe := range b.set.Lines["access"].Taken {
		taken[pipe] = true
	}
	for seid, h := range b.heads() {
		pipe := rules.PipeAt(int(h.Subport), h.Pipe)
		testkit.ErrorIf(b.t, h.PipeProfile[0] == 0 || uint32(h.Worker) != h.Subport || taken[pipe],
			"%d: pipe %d.%d, worker %d", seid, h.Subport, h.Pipe, h.Worker)
		pipes[seid], taken[pipe] = pipe, true
	}
	testkit.ErrorIf(b.t, len(pipes) != want, "%d lines, want %d", len(pipes), want)
	return pipes
}

func (b *bench) profile(seid uint64) string {
	h := b.heads()[seid]
	return api.CString(h.PipeProfile[:])
}

func lineNumber(n uint64) *rules.Session { return lineOf(n, fmt.Sprintf("10.45.0.%d", n)) }

func TestPipesOfLines(t *testing.T) {
	path := t.TempDir() + "/sessions.db"
	s := dptest.Start(t)
	b := startOn(t, s, path, linePipes())
	for n := uint64(1); n <= 3; n++ {
		testkit.Must(t, b.put(lineNumber(n), `{}`))
	}
	before := b.onLine(3)
	testkit.Equal(t, b.profile(2), "home", "profile of who names none")
	err := b.put(lineNumber(4), `{}`)
	testkit.ErrorIf(t, err == nil || !strings.Contains(err.Error(), "all pipes of port access"), "%v", err)
	gold := lineNumber(2)
	copy(gold.Line.PipeProfile[:], "gold")
	testkit.Must(t, b.put(gold, `{}`))
	testkit.ErrorIf(t, !maps.Equal(b.onLine(3), before), "a change of profile moves a line: %v", b.onLine(3))
	testkit.Equal(t, b.profile(2), "gold", "profile")
	gone := make(chan error, 1)
	b.DropLine(1, nil, func(_ []api.Usage, err error) { gone <- err })
	testkit.Must(t, testkit.Receive(t, gone))
	testkit.Must(t, b.put(lineNumber(4), `{}`))
	before = b.onLine(3)
	b.checkConsistent()

	b.end()
	_, sent := s.Counts()
	b = startOn(t, s, path, linePipes())
	b.SetLines(&heard{ended: make(chan uint64, 9)})
	_, now := s.Counts()
	testkit.ErrorIf(t, now != sent || !maps.Equal(b.onLine(3), before), "a restart sends %d changes", now-sent)
	testkit.ErrorIf(t, b.put(lineNumber(5), `{}`) == nil, "a fourth is let in after a restart")
}

// A reload: the file's home takes another's pipe, which moves; a home without a free pipe ends.
func TestReplanPipesOfLines(t *testing.T) {
	plain := linePipes()
	plain.Lines = nil
	plain.Instances[0].Shaping = &rules.Shaping{Port: "n3", Profile: "ue", // of mobile sessions
		Subports: []rules.ShapingSubport{{Worker: 0, Pipes: 1}, {Worker: 1, Pipes: 1}}}
	b := start(t, "", plain)
	h := &heard{ended: make(chan uint64, 9)}
	b.SetLines(h)
	for n := uint64(1); n <= 3; n++ {
		testkit.Must(t, b.put(lineNumber(n), `{}`))
	}
	for _, h := range b.heads() {
		testkit.ErrorIf(t, h.PipeProfile[0] != 0 || api.CString(h.Port[:]) != "access", "%+v", h)
	}
	reload := func(set *rules.Settings, ends int) {
		t.Helper()
		testkit.Equal(t, len(b.reconfigured(set)), ends, "who ends")
		testkit.Until(t, "all are sent again", func() bool {
			taken := map[rules.Pipe]bool{}
			for _, pipe := range set.Lines["access"].Taken {
				taken[pipe] = true
			}
			for seid, h := range b.heads() {
				pipe, there := rules.PipeAt(int(h.Subport), h.Pipe), b.Session(seid) != nil
				if there && (h.PipeProfile[0] == 0 || taken[pipe] || uint32(h.Worker) != h.Subport ||
					h.Pipe >= set.Lines["access"].Subports[h.Subport].Pipes) {
					return false
				}
				taken[pipe] = there
			}
			return true
		})
		b.checkConsistent()
	}
	b.mu.Lock()
	_, piped, _ := b.plans.reconfigure(linePipes())
	b.mu.Unlock()
	testkit.Equal(t, len(piped), 3, "lines that go with the scheduler")
	reload(linePipes(), 0)
	moved := linePipes()
	moved.Lines["access"].Taken[0] = b.onLine(3)[2]
	reload(moved, 0)
	b.onLine(3)
	fewer := linePipes()
	fewer.Lines["access"].Subports[0].Pipes = 1
	fewer.Lines["access"].Taken[0] = rules.PipeAt(0, 0)
	reload(fewer, 1)
	testkit.Receive(t, h.ended)
}

// scheduling sees that a scheduler never comes to the data plane before the lines of its port have their pipes.
type scheduling struct {
	*dp.Client
	b *bench
}

func (s *scheduling) Commit(ctx context.Context, changes []dp.Change) ([]api.Usage, error) {
	bodies := map[string][]byte{}
	for id, body := range s.b.s.Held() {
		if id.Kind == api.KindSession {
			bodies[id.Key] = body
		}
	}
	there := slices.ContainsFunc(changes, func(c dp.Change) bool { return c.Kind == api.KindScheduler })
	for _, c := range changes {
		if c.Kind == api.KindSession {
			if bodies[c.Key] = c.Body; c.Body == nil {
				delete(bodies, c.Key)
			}
		}
	}
	for key, body := range bodies {
		var head api.Session
		_, err := api.ReadRow(body, &head)
		testkit.Must(s.b.t, err)
		if profile := api.CString(head.PipeProfile[:]); there && profile != "home" {
			return nil, &dp.RefusedError{Code: 2, Kind: api.KindScheduler, Key: "access",
				Text: "session " + key + ": the scheduler of port access has no profile " + profile}
		}
	}
	return s.Client.Commit(ctx, changes)
}

// counted is the number of reports of a line that ended.
type counted struct {
	*heard
	reports chan int
}

func (c counted) LineEnded(_ uint64, usage []api.Usage) { c.reports <- len(usage) }

// A start with a file that adds a scheduler to a port with homes on line gives them pipes. As with a reload, a home
// without a free pipe or with a removed profile ends.
func TestSchedulerAtStart(t *testing.T) {
	path := t.TempDir() + "/sessions.db"
	s := dptest.Start(t)
	plain := linePipes()
	plain.Lines = nil
	b := startOn(t, s, path, plain)
	for n := uint64(1); n <= 5; n++ {
		line := lineNumber(n)
		if n == 1 {
			copy(line.Line.PipeProfile[:], "gold")
		}
		testkit.Must(t, b.put(line, `{}`))
	}
	b.end()
	set := linePipes()
	p, err := Open(path, set, nil)
	testkit.Must(t, err)
	b = &bench{p, s, t, b.c, testkit.Run(t, p.Run)}
	h := counted{&heard{}, make(chan int, 9)}
	b.SetLines(h)
	s.Usage(func(id dptest.ID, _, is []byte) []api.Usage {
		seid, ours := rules.SEIDOf(id.Key)
		if !ours || is != nil {
			return nil
		}
		return []api.Usage{{SEID: seid, URR: 1}}
	})
	_, err = b.Synchronise(t.Context(), &scheduling{b.c, b}, set, true, func([]api.Digest) []dp.Change {
		return []dp.Change{{Kind: api.KindScheduler, Key: "access", Body: []byte{0}}}
	})
	testkit.Must(t, err)
	b.onLine(3)
	testkit.Equal(t, b.profile(1), "", "who had another profile")
	for range 2 {
		testkit.Equal(t, testkit.Receive(t, h.reports), 1, "reports of a line that ended")
	}
	b.checkConsistent()
}
