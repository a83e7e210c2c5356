// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"isthmus/controlplane/config"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

// FuzzServer sends sequences of datagrams: a byte is the sender, two the length, then the octets. After every sequence
// the server answers a heartbeat and has nothing pending. The well-behaved CP function still has its association and
// session.
func FuzzServer(f *testing.F) {
	setUp := func(node string) []byte {
		return message(pfcp.AssociationSetupRequestType, 0, 1, nodeIE(node), recoveryIE(time.Unix(1e9, 0)))
	}
	local := netip.MustParseAddr("127.0.0.1")
	pack := func(list ...[]byte) (out []byte) {
		for i, b := range list {
			out = append(append(out, byte(i%3), byte(len(b)>>8), byte(len(b))), b...)
		}
		return out
	}
	f.Add(pack(setUp("smf1"), setUp("smf2"), setUp("x")))
	f.Add(pack(setUp("smf1"), establishment(2, "smf1", 3, local), establishment(2, "good", 3, local)))
	f.Add(pack(message(pfcp.HeartbeatRequestType, 0, 1, recoveryIE(time.Unix(2e9, 0))),
		message(pfcp.HeartbeatResponseType, 0, 1)))
	for _, typ := range []pfcp.MessageType{3, 7, 9, 12, 14, 16, 52, 54, 57} {
		f.Add(pack(message(typ, 0x1001, 7, nodeIE("smf1"), ie(19, 1)), message(typ, 0x1001, 7, nodeIE("good"))))
	}
	good := newSMF(f, "good", "127.0.0.9:0")
	conns := make([]*net.UDPConn, 3)
	var peers []config.PFCPPeer
	for i := range conns {
		var err error
		conns[i], err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, byte(i+1))})
		testkit.Must(f, err)
		defer conns[i].Close()
		if i < 2 {
			at := netip.AddrFrom4([4]byte{127, 0, 0, byte(i + 1)})
			peers = append(peers, peerAt(netip.AddrPortFrom(at, 1), ""))
		}
	}
	cfg := quiet(append(peers, good.peer())...)
	cfg.Rates.Heartbeats = 1 << 20
	fake := newFake()
	fake.quota = 100
	h := start(f, cfg, fake, good)
	good.mustSetUp()
	good.establish(1)
	f.Fuzz(func(t *testing.T, in []byte) {
		good.set(func() { good.t = t })
		for n := 0; len(in) >= 3 && n < 64; n++ {
			size := min(int(in[1])<<8|int(in[2]), len(in)-3)
			conns[int(in[0])%len(conns)].WriteToUDPAddrPort(in[3:3+size], good.server)
			in = in[3+size:]
		}
		good.alive()
		testkit.Until(t, "nothing under way", func() bool {
			s := h.s.Snapshot()
			return s.InFlight == 0 && s.Queued == 0
		})
		testkit.FatalIf(t, fake.Count("good") != 1 || h.s.Find("good") == nil, "another's association suffered")
		testkit.FatalIf(t, pfcp.Recovered.Load() != 0, "the decoder panicked")
	})
}
