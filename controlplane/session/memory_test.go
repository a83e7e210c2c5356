// SPDX-License-Identifier: Apache-2.0

package session

import (
	"isthmus/controlplane/rules"
	"isthmus/controlplane/testkit"
	"net/netip"
	"runtime"
	"testing"
)

// The memory of an idle session, with all its indices, garbage collected.
func TestMemoryOfASession(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second")
	}
	const count = 20000
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	p := idle(t, "")
	before := heap()
	for i := range uint32(count) {
		req := request(i+1, netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)}).String())
		req.FAR[1].Forwarding.OuterHeader.TEID = i + 1
		s, _, err := rules.Establish(p.set, p.x, req)
		testkit.Must(t, err)
		s.SEID, s.Owner = p.x.seid(), "smf1"
		testkit.Must(t, p.restore(s, uint64(i)))
	}
	each := (heap() - before) / count
	t.Logf("%d bytes a session", each)
	testkit.ErrorIf(t, each > 800, "%d bytes a session, at most 800", each)
}
