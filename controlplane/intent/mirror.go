// SPDX-License-Identifier: Apache-2.0

package intent

import "isthmus/api"

var directions = map[string]uint8{
	"both": api.MirrorDirectionBoth, "uplink": api.MirrorDirectionUplink, "downlink": api.MirrorDirectionDownlink,
}

// mirrors: copies of packets.
func (c *compiler) mirrors() {
	for i := range c.Mirrors {
		m := &c.Mirrors[i]
		body := api.Mirror{
			To: api.MirrorToERSPAN, Direction: directions[m.Direction], DSCP: m.To.DSCP, TEID: m.To.TEID,
			Collector: api.FromAddr(m.To.ERSPAN.Addr), Session: m.To.Session, Snap: m.Snap, Sample: m.Sample,
			Rate: m.Rate,
			UE:   api.FromPrefix(m.Match.UE.Prefix), Remote: api.FromPrefix(m.Match.Remote.Prefix),
			UEPort: m.Match.UEPort.Ports(), RemotePort: m.Match.RemotePort.Ports(), Protocol: m.Match.Protocol.Number,
		}
		target := m.To.Port
		switch {
		case m.To.Port != "":
			body.To = api.MirrorToPort
		case m.To.Path != "":
			body.To, target = api.MirrorToGTPU, m.To.Path
		}
		c.text(body.Target[:], string(target))
		c.text(body.Instance[:], string(m.Match.Instance))
		c.put(api.KindMirror, string(m.Name), api.Body(&body))
	}
}

// counters: sums of sessions, and watermarks.
func (c *compiler) counters() {
	for i := range c.Counters {
		n := &c.Counters[i]
		body := api.Counter{
			Bytes: n.Watermark.Bytes, Packets: n.Watermark.Packets, Period: n.Period,
			UE: api.FromPrefix(n.Match.UE.Prefix),
		}
		if n.Each {
			body.Each = 1
		}
		c.text(body.Instance[:], string(n.Match.Instance))
		c.put(api.KindCounter, string(n.Name), api.Body(&body))
	}
}
