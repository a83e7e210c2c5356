// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"

	"isthmus/controlplane/testkit"
)

// The room between two collections is what requests need, whatever the number of sessions.
func TestRoomOfTheHeap(t *testing.T) {
	for _, live := range []uint64{0, 1 << 20, 8 << 20, 100 << 20, 1 << 30, 64 << 30} {
		percent := percentFor(live)
		room := max(live, 4<<20) * uint64(percent) / 100
		if least, most := heapRoom*8/10, heapRoom*12/10+live*heapShare/100; room < uint64(least) && live < heapRoom || room > most {
			t.Errorf("%d bytes live, GOGC %d: room for %d, wanted %d to %d", live, percent, room, least, most)
		}
		testkit.ErrorIf(t, percent < 5, "%d bytes live: GOGC %d", live, percent)
	}
}

func TestMemoryGoesBackOnceAfterABurst(t *testing.T) {
	m := newMemory()
	var at []int
	transactions := uint64(0)
	for tick := range 200 {
		if tick < 5 || tick == 100 {
			transactions += 1000
		} else {
			transactions += 3
		}
		if m.idle(transactions) {
			at = append(at, tick)
		}
	}
	want := []int{5 + quietOnce - 1, 5 + quietLate - 1, 100 + quietOnce, 100 + quietLate}
	testkit.FatalIf(t, len(at) != len(want), "given back at %v, want %v", at, want)
	for i := range at {
		testkit.ErrorIf(t, at[i] != want[i], "given back at %v, want %v", at, want)
	}
	if m := newMemory(); m.idle(0) || m.idle(50) {
		t.Error("given back without a burst")
	}
}
