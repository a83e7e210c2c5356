// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"net"
	"testing"
	"time"

	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

// BenchmarkRequests is one session request with its answer, client included: GOMAXPROCS 1 shows what one core can do.
func BenchmarkRequests(b *testing.B) {
	for _, typ := range []pfcp.MessageType{pfcp.SessionEstablishmentRequestType, pfcp.SessionModificationRequestType} {
		b.Run(messageName(int(typ)), func(b *testing.B) { benchmarkRequests(b, typ) })
	}
}

func benchmarkRequests(b *testing.B, typ pfcp.MessageType) {
	h, m := associated(b, func(c *Config) { c.Rates.Requests = 1 << 30 })
	seid := m.establish(1)
	conn, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(m.server))
	testkit.Must(b, err)
	defer conn.Close()
	conn.SetReadBuffer(16 << 20)
	const window = 256
	slots := make(chan struct{}, window)
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 2048)
		for range b.N {
			conn.SetReadDeadline(time.Now().Add(5 * time.Second))
			if _, err := conn.Read(buf); err != nil {
				b.Error(err)
				return
			}
			<-slots
		}
	}()
	req := message(typ, seid, 0)
	if typ == pfcp.SessionEstablishmentRequestType {
		req = establishment(0, m.node, 1, m.addr.Addr())
	}
	b.ResetTimer()
	for i := range b.N {
		slots <- struct{}{}
		n := uint32(i) & 0xffffff
		req[12], req[13], req[14] = byte(n>>16), byte(n>>8), byte(n)
		conn.Write(req)
	}
	<-done
	b.StopTimer()
	if lost := h.s.Snapshot().Lost; lost > 0 {
		b.Errorf("%d lost", lost)
	}
}
