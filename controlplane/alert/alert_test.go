// SPDX-License-Identifier: Apache-2.0

package alert

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"isthmus/api"
	"isthmus/controlplane/testkit"
)

// scene is a data plane that the test changes between looks, a second apart by default.
type scene struct {
	*Watcher
	Figures
	t    *testing.T
	now  time.Time
	told []string
}

func newScene(t *testing.T) *scene {
	return &scene{Watcher: New(), Figures: Figures{Boot: 1}, t: t, now: time.Unix(1000, 0)}
}

// look takes a look after a time and compares the events, by kind and subject.
func (s *scene) look(step time.Duration, want ...string) {
	s.t.Helper()
	s.now = s.now.Add(step)
	s.told = nil
	s.Look(s.now, &s.Figures, func(kind, subject string, args ...any) {
		testkit.ErrorIf(s.t, len(args)%2 != 0, "%v", args)
		s.told = append(s.told, kind+" "+subject)
	})
	testkit.Equal(s.t, strings.Join(s.told, ", "), strings.Join(want, ", "), "told")
}

func port(name string, up, gone uint32) api.PortRow {
	r := api.PortRow{Up: up, Gone: gone}
	copy(r.Name[:], name)
	return r
}

func drop(name string, packets uint64) []api.DropRow {
	r := api.DropRow{Packets: packets}
	copy(r.Name[:], name)
	return []api.DropRow{r}
}

func TestPorts(t *testing.T) {
	s := newScene(t)
	s.Ports = []api.PortRow{port("a", 1, 0), port("b", 0, 0)}
	s.look(time.Second, "port.up a", "port.down b")
	s.look(time.Second)
	s.Ports = []api.PortRow{port("a", 0, 0), port("b", 1, 0)}
	s.look(time.Second, "port.down a", "port.up b")
	s.Ports = []api.PortRow{port("a", 0, 1), port("b", 1, 0)}
	s.look(time.Second, "port.gone a")
	s.look(time.Second)
	s.Ports[0] = port("a", 1, 0)
	s.look(time.Second, "port.up a")
	s.Ports = s.Ports[:1] // taken out of the configuration
	s.look(time.Second)
}

func TestDrops(t *testing.T) {
	s := newScene(t)
	s.Drops = drop("no-route", 1_000_000) // of the past
	s.look(time.Second)
	packets := uint64(1_000_000)
	add := func(n uint64, want ...string) {
		t.Helper()
		packets += n
		s.Drops = drop("no-route", packets)
		s.look(time.Second, want...)
	}
	add(9) // few
	add(100, "drop.rising no-route")
	add(100)
	add(50)
	add(3, "drop.settled no-route")
	add(3)
	for range 120 { // 20 a second become usual
		packets += 9
		s.Drops = drop("no-route", packets)
		s.look(time.Second)
	}
	add(30) // not four times as many
	add(200, "drop.rising no-route")
	for range 599 {
		add(200)
	}
	add(200, "drop.settled no-route") // it is the usual rate now
	add(200)
	s.Boot, s.Drops = 2, drop("no-route", 5000) // another data plane counts from zero
	s.look(time.Second)
	s.Drops = drop("no-route", 5001)
	s.look(time.Second)
}

// A reason that is seen for the first time after the first look had no packets before.
func TestFirstDrop(t *testing.T) {
	s := newScene(t)
	s.look(time.Second)
	s.Drops = drop("spoofed-source", 500)
	s.look(time.Second, "drop.rising spoofed-source")
}

func TestLimits(t *testing.T) {
	s := newScene(t)
	for _, step := range []struct {
		used uint64
		want []string
	}{
		{0, nil}, {89, nil}, {90, []string{"limit.near sessions"}}, {85, nil}, {95, nil},
		{79, []string{"limit.released sessions"}}, {85, nil}, {100, []string{"limit.near sessions"}},
	} {
		s.Limits = []Limit{{"sessions", step.used, 100}, {"none", 5, 0}}
		s.look(time.Second, step.want...)
	}
}

// Rows that come and go leave no memory behind.
func TestMemory(t *testing.T) {
	s := newScene(t)
	for i := range 1000 {
		s.Ports = []api.PortRow{port(fmt.Sprint(i), 1, 0)}
		s.Limits = []Limit{{fmt.Sprint(i), 1, 1}}
		s.Look(s.now, &s.Figures, func(string, string, ...any) {})
	}
	testkit.ErrorIf(t, len(s.ports) != 1 || len(s.near) != 1 || len(s.drops) != 0, "%d %d", len(s.ports),
		len(s.near))
}
