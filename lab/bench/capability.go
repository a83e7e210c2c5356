// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"strings"

	"isthmus/api"
	"isthmus/lab/figure"
	"isthmus/lab/tester"
)

// The tester's own limit and a link's cost: the same packets over the same kind of links, with the gateway's program on
// the gateway's own CPUs, its two ports cross-connected. Its workers' busy time is the link's floor.

// limitRatio is how much faster than the gateway the tester must be shown to be.
const limitRatio = 1.3

const floorName = "isthmus-dp xconnect"

// relayConfig is a data plane that sends at each port what it has received at the other.
func relayConfig(opt *Options, s *scene, access, core *wire) []byte {
	w := &writer{}
	w.line("engine:")
	w.line("  workers: %d", opt.Workers)
	if len(opt.CPUs) >= opt.Workers {
		w.line("  cpus: [%s]", joinInts(opt.CPUs[:opt.Workers]))
	} else {
		w.line("  idle_sleep: true")
	}
	w.line("  huge_pages: %s", hugeWord(opt))
	w.buffers(s.mtu)
	w.line("control: {metrics: ''}")
	w.line("ports:")
	w.line("  - {name: access, %s, role: core, mtu: %d, xconnect: core}", access.gateway, s.mtu)
	w.line("  - {name: core, %s, role: core, mtu: %d, xconnect: access}", core.gateway, s.mtu)
	return []byte(w.String())
}

// capability measures, for each point, the packets that return from the relay: the lower of the tester's and the link's
// limit.
func (m *outside) capability(ctx context.Context, s *scene, r *LinkResult) error {
	relay := *s
	relay.chain, relay.echo, relay.load, relay.finish = nil, nil, nil, nil
	relay.config = func(access, core *wire) []byte { return relayConfig(&m.opt, s, access, core) }
	d, err := m.start(ctx, &relay, "f-")
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		for i := range r.Points {
			r.Points[i].Tester = &TesterBlock{Limited: true, Device: floorName, Error: firstLine(err)}
		}
		return nil
	}
	defer d.stop()
	hello := d.Hello()
	for i := range r.Points {
		p, pt := &r.Points[i], &s.points[i]
		block := &TesterBlock{Device: floorName, Version: api.CString(hello.Build[:]), Limited: true}
		mpps, floor, err := m.relayed(ctx, d, pt.name, pt.streams)
		if ctx.Err() != nil {
			return nil
		}
		p.FloorTicksPerPacket, p.OwnTicksPerPacket, p.OwnRange = below(p.cost, floor)
		if block.judge(mpps, p); err != nil {
			block.Error = firstLine(err) // the measurement stands, marked
		}
		if m.opt.Rate == 0 {
			p.Tester = block
		}
		for _, one := range []struct {
			*LinkDirection
			streams []tester.Stream
		}{{p.Uplink, pt.up}, {p.Downlink, pt.down}} {
			if one.LinkDirection == nil || err != nil {
				continue
			}
			if _, floor, err = m.relayed(ctx, d, pt.name+", one way", one.streams); ctx.Err() != nil {
				return nil
			}
			one.FloorTicksPerPacket, one.OwnTicksPerPacket, one.OwnRange = below(one.cost, floor)
		}
	}
	return nil
}

// below is the floor, and the cost above it. The two ran one after the other, so the difference lies between the
// extremes of both.
func below(total, floor Spread) (ticks, own figure.Number, pairs figure.Difference) {
	pairs = figure.Apart(total, floor).Rounded(round1)
	return figure.Number(floor.Median), pairs.Number(), pairs
}

func firstLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

// judge compares the tester's rate with the gateway's.
func (b *TesterBlock) judge(mpps float64, p *Point) {
	b.Mpps = figure.Rounded(mpps, 6)
	if p.Mpps > 0 {
		b.Ratio = figure.Rounded(mpps/float64(p.Mpps), 3)
	}
	b.Limited = b.Ratio < limitRatio
}

// relayed measures streams through the relay, from which they come as they went: the rate found, and the relay's
// ticks for a packet.
func (m *outside) relayed(ctx context.Context, d *device, name string, list []tester.Stream) (mpps float64,
	floor Spread,
	err error) {
	streams := append([]tester.Stream(nil), list...)
	for i := range streams {
		if streams[i].Receive = streams[i].Send; m.opt.Link == LinkAFPacket {
			streams[i].Receive = nil // tags do not come as they went (layout.kernelTags)
		}
	}
	p := d.scene.profile(m.opt.Profile+"-floor", &m.opt, ports([]*device{d}, &m.opt), prefixed(d.prefix, streams))
	p.Run = m.plan(searchRough)
	run, err := m.run(ctx, []*device{d}, p, name+", "+floorName)
	if run == nil {
		return 0, floor, err
	}
	best := headline(run.result)
	if best < 0 {
		return 0, floor, errors.New("no rate was found")
	}
	return run.result.Trials[best].OfferedPPS / 1e6, run.cost(best), err
}
