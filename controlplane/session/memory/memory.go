// SPDX-License-Identifier: Apache-2.0

// Package memory keeps a process small whose heap is what lives long, and whose garbage comes with requests.
package memory

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
)

// Pacer sets the garbage collector's pace. By default the heap may double: twice the memory for a million idle
// sessions, and a collection every few milliseconds for none. Garbage depends on the request rate, not on sessions, so
// the room is a constant plus a tenth; after a burst free memory returns to the kernel. A burst gets more room: when
// 60,000 homes came back at once, collections with the normal room took 40 % of the process's work.
type Pacer struct {
	off     bool // GOGC is set: the operator decides
	percent int
	sample  []metrics.Sample
	worked  uint64 // requests at the last tick
	burst   bool   // in the last tick
	busy    bool   // since memory was given back last
	quiet   int    // ticks
}

const (
	heapRoom  = 32 << 20  // between two collections
	heapShare = 10        // percent of what lives, besides
	burstMost = 256 << 20 // in a burst as much as lives, up to this, besides
	quietLoad = 100       // requests in a tick; fewer are none
	quietOnce = 2         // ticks until memory is given back
	quietLate = 45        // and again: answers are kept for 30 s
)

// New makes a pacer, which does nothing where GOGC is set.
func New() *Pacer {
	return &Pacer{off: os.Getenv("GOGC") != "", sample: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
}

// Tick adapts to what there is; requests is how many there were so far.
func (m *Pacer) Tick(requests uint64) {
	if m.off {
		return
	}
	idle := m.idle(requests)
	metrics.Read(m.sample)
	if p := percentFor(m.sample[0].Value.Uint64(), m.burst); p != m.percent {
		m.percent = p
		debug.SetGCPercent(p)
	}
	if idle {
		go debug.FreeOSMemory() // a collection, and a system call for each part: in the background
	}
}

// percentFor is GOGC for a live heap size. In steps, so that it does not change at each tick.
func percentFor(live uint64, burst bool) int {
	room := uint64(heapRoom)
	if burst {
		room += min(live, burstMost)
	}
	percent := heapShare + 100*room/max(live, 4<<20)
	return int(max(percent-percent%5, heapShare))
}

// idle: memory is to be returned, since a burst has just ended or its answers have expired.
func (m *Pacer) idle(requests uint64) bool {
	load := requests - m.worked
	m.worked = requests
	if m.burst = load >= quietLoad; m.burst {
		m.busy, m.quiet = true, 0
		return false
	}
	if !m.busy {
		return false
	}
	m.quiet++
	m.busy = m.quiet < quietLate
	return m.quiet == quietOnce || m.quiet == quietLate
}
