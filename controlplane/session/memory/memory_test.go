// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"testing"

	"isthmus/controlplane/testkit"
)

// The room between two collections depends on requests, not on the number of sessions.
func TestRoomOfTheHeap(t *testing.T) {
	for _, live := range []uint64{0, 1 << 20, 8 << 20, 100 << 20, 1 << 30, 64 << 30} {
		percent := percentFor(live, false)
		room := max(live, 4<<20) * uint64(percent) / 100
		if least, most := heapRoom*8/10, heapRoom*12/10+live*heapShare/100; room < uint64(least) && live < heapRoom ||
			room > most {
			t.Errorf("%d bytes live, GOGC %d: room for %d, wanted %d to %d", live, percent, room, least, most)
		}
		testkit.ErrorIf(t, percent < 5, "%d bytes live: GOGC %d", live, percent)
		burst := live * uint64(percentFor(live, true)-percent) / 100
		least, most := min(live, burstMost)*8/10, min(live, burstMost)*12/10+live/20
		testkit.ErrorIf(t, live > heapRoom && live <= 1<<30 && burst < least || burst > most,
			"%d bytes live: %d more in a burst", live, burst)
	}
}

func TestMemoryGoesBackOnceAfterABurst(t *testing.T) {
	m := New()
	var at []int
	requests := uint64(0)
	for tick := range 200 {
		if tick < 5 || tick == 100 {
			requests += 1000
		} else {
			requests += 3
		}
		if m.idle(requests) {
			at = append(at, tick)
		}
		testkit.ErrorIf(t, m.burst != (tick < 5 || tick == 100), "tick %d: burst %v", tick, m.burst)
	}
	want := []int{5 + quietOnce - 1, 5 + quietLate - 1, 100 + quietOnce, 100 + quietLate}
	testkit.FatalIf(t, len(at) != len(want), "given back at %v, want %v", at, want)
	for i := range at {
		testkit.ErrorIf(t, at[i] != want[i], "given back at %v, want %v", at, want)
	}
	if m := New(); m.idle(0) || m.idle(50) {
		t.Error("given back without a burst")
	}
}
