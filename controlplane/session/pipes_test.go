// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"testing"

	"isthmus/api"
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

// Sessions that are there get pipes when their instance is to be shaped, and lose them when it is not any more.
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
