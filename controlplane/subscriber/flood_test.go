// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"isthmus/controlplane/access"
	"isthmus/controlplane/pppoe"
	"isthmus/controlplane/testkit"
)

// flooded is a frame of an unused MAC address, on one of 2,000 lines.
func flooded(r *rand.Rand, kind access.Reason) *access.Frame {
	var mac [6]byte
	binary.BigEndian.PutUint32(mac[2:], r.Uint32())
	mac[0] = 6
	f := &access.Frame{Line: access.Line{Port: "access", TPID: 0x88a8, STag: 100, CTag: uint16(1 + r.IntN(2000)),
		MAC: mac}, Reason: kind, EtherType: 0x0800}
	if kind == access.PPPoEDiscovery {
		f.EtherType = pppoe.EtherDiscovery
		f.Payload = pppoe.Finish(pppoe.AppendTag(pppoe.AppendHeader(nil, pppoe.PADI, 0), pppoe.TagService, []byte{}))
		return f
	}
	m, _ := dhcpv4.NewDiscovery(mac[:])
	b := m.ToBytes()
	p := make([]byte, 28, 28+len(b))
	p[0], p[8], p[9] = 0x45, 64, 17
	binary.BigEndian.PutUint16(p[2:], uint16(28+len(b)))
	copy(p[16:], []byte{255, 255, 255, 255})
	binary.BigEndian.PutUint16(p[20:], 68)
	binary.BigEndian.PutUint16(p[22:], 67)
	binary.BigEndian.PutUint16(p[24:], uint16(8+len(b)))
	f.Payload = append(p, b...)
	return f
}

// Memory of floods with made-up MAC addresses: a PADI has its place in a queue while others sign in. A refused DISCOVER
// has a line of the front end for Limits.Retry, at most Limits.Subscribers of them. Twice as many frames take no more,
// and all of it is returned.
func TestMemoryOfFlood(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const frames, lines, line, rest = 100_000, 65536, 800, 1 << 20
	const waiting, newcomer = 32768, 200
	for kind, bound := range map[access.Reason]int{access.PPPoEDiscovery: waiting*newcomer + rest,
		access.DHCP: lines*line + rest} {
		w := newTown(t)
		w.verdict = access.Verdict{Why: "no such user"}
		r := rand.New(rand.NewPCG(1, 2))
		was := int(inUse())
		flood := func() int {
			for range frames {
				w.Frame(flooded(r, kind))
				w.Turn()
				w.down = nil
				w.now = w.now.Add(50 * time.Microsecond)
			}
			return int(inUse()) - was
		}
		once, twice := flood(), flood()
		w.now = w.now.Add(time.Minute)
		w.Turn()
		left := int(inUse()) - was
		t.Logf("reason %d: %d bytes, %d after twice as many frames, %d later", kind, once, twice, left)
		testkit.ErrorIf(t, once > bound || twice > once+rest || left > rest,
			"reason %d: more than %d", kind, bound)
	}
}
