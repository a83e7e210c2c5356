// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"

	"isthmus/controlplane/testkit"
)

// Chosen TEIDs are side by side, none takes another's slot, and freed slots are reused.
func TestSlots(t *testing.T) {
	s := newSlots(100)
	testkit.Equal(t, len(s.used)*64, 256, "slots")
	for i := range uint32(256) {
		slot := s.free()
		testkit.Equal(t, slot, i, "slot")
		s.mark(0xabc00000|slot, true)
	}
	s.free() // all are used: any
	for _, slot := range []uint32{255, 7, 64} {
		s.mark(0x12300000|slot, false)
	}
	for _, want := range []uint32{7, 64, 255} {
		slot := s.free()
		testkit.Equal(t, slot, want, "lowest free slot")
		s.mark(slot, true)
	}
}

func TestChosenTEIDsNameSlots(t *testing.T) {
	x := newIndex(testSettings())
	v4 := addr("10.1.0.1")
	first := x.TEID(v4, v4)
	second := x.TEID(v4, v4)
	testkit.Equal(t, x.slots.of(second), x.slots.of(first)+1, "second slot")
	testkit.ErrorIf(t, first>>x.slots.bits == second>>x.slots.bits, "%#x and %#x: bits that can be guessed", first,
		second)
}
