// SPDX-License-Identifier: Apache-2.0

// Package alert finds events in repeated readings of the data plane's figures: links, rising drops, near limits. It
// remembers a row for each port, reason and limit.
package alert

import (
	"math"
	"time"

	"isthmus/api"
)

// Figures are the data plane's at one moment.
type Figures struct {
	Boot   uint64 // of the data plane: its counters are of one boot
	Ports  []api.PortRow
	Drops  []api.DropRow
	Paths  []api.PathRow // nil: they were not looked at
	Limits []Limit
}

// Limit is a table of which a part is used.
type Limit struct {
	Name     string
	Used, Of uint64 // Of 0: no limit
}

// `Tell` takes an event: kind, subject, names and values in turn.
type Tell func(kind, subject string, args ...any)

// When drops rise, and limits are near.
const (
	dropLeast  = 10.0 // packets a second
	dropTimes  = 4    // what was usual
	dropAfter  = 2    // what was usual, to settle
	dropSteady = 10 * time.Minute
	usualOver  = time.Minute // how long the usual rate takes to follow
	nearAt     = 0.9
	nearUntil  = 0.8
)

// Watcher remembers the last look. One goroutine uses it.
type Watcher struct {
	boot  uint64
	last  time.Time
	ports map[string]link
	paths map[string]path
	drops map[string]*reason
	near  map[string]bool
}

type link struct{ up, gone bool }

type path struct {
	alive    bool
	recovery uint32
}

type reason struct {
	packets uint64
	usual   float64   // packets a second
	rising  time.Time // since when; zero: it is not
	before  float64   // usual when it began to rise
}

// New makes a watcher that has seen nothing.
func New() *Watcher {
	return &Watcher{ports: map[string]link{}, drops: map[string]*reason{}, near: map[string]bool{}}
}

// Look compares with the last look. The first look at a data plane reports faults, but no rate.
func (w *Watcher) Look(now time.Time, f *Figures, tell Tell) {
	fresh := f.Boot != w.boot || w.last.IsZero() || !now.After(w.last)
	w.lookAtPorts(f.Ports, tell)
	if f.Paths != nil {
		w.lookAtPaths(f.Paths, tell)
	}
	w.lookAtDrops(now, f.Drops, fresh, tell)
	w.lookAtLimits(f.Limits, tell)
	w.boot, w.last = f.Boot, now
}

func (w *Watcher) lookAtPorts(rows []api.PortRow, tell Tell) {
	seen := make(map[string]link, len(rows))
	for i := range rows {
		r := &rows[i]
		name, driver := api.CString(r.Name[:]), api.CString(r.Driver[:])
		is := link{r.Up != 0, r.Gone != 0}
		was, known := w.ports[name]
		seen[name] = is
		switch {
		case is.gone && !was.gone:
			tell("port.gone", name, "driver", driver)
		case is.up && !is.gone && (!was.up || was.gone):
			tell("port.up", name, "driver", driver, "speed_mbps", r.SpeedMbps)
		case !is.up && !is.gone && (was.up || was.gone || !known):
			tell("port.down", name, "driver", driver)
		}
	}
	w.ports = seen
}

// lookAtPaths reports peers with another state; states before the first look are unknown.
func (w *Watcher) lookAtPaths(rows []api.PathRow, tell Tell) {
	seen := make(map[string]path, len(rows))
	for i := range rows {
		r := &rows[i]
		name, peer := api.CString(r.Name[:]), r.Peer.String()
		is := path{r.Alive != 0, r.Recovery}
		was, known := w.paths[name]
		seen[name] = is
		switch {
		case !known:
		case is.alive != was.alive && is.alive:
			tell("peer.up", peer, "local", r.Local.String())
		case is.alive != was.alive:
			tell("peer.down", peer, "local", r.Local.String())
		case is.recovery != was.recovery && r.EchoReceived > 1:
			tell("peer.restarted", peer, "local", r.Local.String())
		}
	}
	w.paths = seen
}

func (w *Watcher) lookAtDrops(now time.Time, rows []api.DropRow, fresh bool, tell Tell) {
	seconds := now.Sub(w.last).Seconds()
	for i := range rows {
		r := &rows[i]
		name := api.CString(r.Name[:])
		d := w.drops[name]
		if d == nil && r.Packets > 0 { // a reason without drops needs no memory
			d = &reason{}
			w.drops[name] = d
		}
		if d == nil {
			continue
		}
		if fresh || r.Packets < d.packets {
			d.packets = r.Packets
			continue
		}
		rate := float64(r.Packets-d.packets) / seconds
		d.packets = r.Packets
		d.judge(now, rate, name, api.CString(r.Text[:]), tell)
		d.usual += (rate - d.usual) * (1 - math.Exp(-seconds/usualOver.Seconds()))
	}
}

// judge compares a rate with what was usual.
func (d *reason) judge(now time.Time, rate float64, name, text string, tell Tell) {
	switch {
	case d.rising.IsZero() && rate >= max(dropLeast, dropTimes*d.usual):
		d.rising, d.before = now, d.usual
		tell("drop.rising", name, "rate", math.Round(rate), "before", tenth(d.before), "text", text)
	case d.rising.IsZero():
	case rate < max(dropLeast/2, dropAfter*d.before):
		d.rising = time.Time{}
		tell("drop.settled", name, "rate", tenth(rate), "before", tenth(d.before), "steady", false)
	case now.Sub(d.rising) >= dropSteady:
		d.rising, d.usual = time.Time{}, rate
		tell("drop.settled", name, "rate", tenth(rate), "before", tenth(d.before), "steady", true)
	}
}

func tenth(v float64) float64 { return math.Round(v*10) / 10 }

func (w *Watcher) lookAtLimits(limits []Limit, tell Tell) {
	seen := make(map[string]bool, len(limits))
	for _, l := range limits {
		share := 0.0
		if l.Of > 0 {
			share = float64(l.Used) / float64(l.Of)
		}
		was := w.near[l.Name]
		is := share >= nearAt || was && share >= nearUntil
		seen[l.Name] = is
		switch {
		case is && !was:
			tell("limit.near", l.Name, "used", l.Used, "of", l.Of)
		case was && !is:
			tell("limit.released", l.Name, "used", l.Used, "of", l.Of)
		}
	}
	w.near = seen
}
