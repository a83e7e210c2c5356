// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"net/netip"
	"sync"

	"isthmus/lab/tester"
)

// RouterEnd is one port of a plain router and the network behind it.
type RouterEnd struct {
	Name        string // at most 5 bytes
	MAC, FarMAC string
	Network     netip.Prefix
}

// Router is the product as a plain router of some ports: the link between port N and the next router has 192.0.2.4N/30.
type Router struct {
	d     *dataPlane
	wires map[string]*wire
	done  func()
	stop  sync.Once
}

// StartRouter starts one over opt.Link. The caller stops it.
func StartRouter(ctx context.Context, opt Options, ends []RouterEnd) (*Router, error) {
	m, done, err := newOutside(opt)
	if err != nil {
		return nil, err
	}
	r := &Router{wires: map[string]*wire{}, done: done}
	for _, e := range ends {
		w, err := makeWire(ctx, opt.Link, m.dir, e.Name)
		if err != nil {
			r.Stop()
			return nil, err
		}
		r.wires[e.Name] = w
	}
	s := &scene{config: func(_, _ *wire) []byte { return r.config(&opt, ends) }}
	plan, _, err := s.plan(nil, nil)
	if err != nil {
		r.Stop()
		return nil, err
	}
	if r.d, err = start(ctx, opt.DPBinary, plan, 0); err != nil {
		r.Stop()
		return nil, err
	}
	if err := r.d.Apply(ctx, plan.Changes()); err != nil {
		err = r.d.explain(err)
		r.Stop()
		return nil, err
	}
	return r, nil
}

// config writes the configuration.
func (r *Router) config(opt *Options, ends []RouterEnd) []byte {
	b := &writer{}
	p := b.line
	p("engine:")
	p("  workers: %d", opt.Workers)
	if len(opt.CPUs) > 0 {
		p("  cpus: [%s]", joinInts(opt.CPUs))
	}
	p("  huge_pages: %s", hugeWord(opt))
	p("  packet_buffers: %d", 16384*len(ends)) // net_af_xdp takes 4,096 a port for itself
	p("  limits: {sessions: 64, flows: 65536}")
	p("control: {metrics: ''}")
	p("ports:")
	for _, e := range ends {
		p("  - {name: %s, %s, role: core, mtu: %d, mac: '%s'}", e.Name, r.wires[e.Name].gateway, routerMTU,
			e.MAC)
	}
	p("interfaces:")
	for i, e := range ends {
		p("  - {name: %s, port: %s, addresses: [192.0.2.%d/30]}", e.Name, e.Name, 4*i+1)
	}
	p("neighbours:")
	for i, e := range ends {
		p("  - {interface: %s, address: 192.0.2.%d, mac: '%s'}", e.Name, 4*i+2, e.FarMAC)
	}
	p("routes:")
	for i, e := range ends {
		p("  - {prefix: %s, via: 192.0.2.%d}", e.Network, 4*i+2)
	}
	return []byte(b.String())
}

// Stop ends it; it may be called again.
func (r *Router) Stop() {
	r.stop.Do(func() {
		if r.d != nil {
			r.d.Stop()
		}
		for _, w := range r.wires {
			w.remove()
		}
		r.done()
	})
}

// Exited is closed when it has ended.
func (r *Router) Exited() <-chan struct{} { return r.d.exited }

// Words are its last ones. Only after it has ended.
func (r *Router) Words() string { return fmt.Sprintf("(%s)\n%s", r.d.cmd.ProcessState, r.d.tail()) }

// Command is its command line.
func (r *Router) Command() []string { return r.d.cmd.Args }

// Ports are the tester's ends of its links.
func (r *Router) Ports() map[string]tester.Port {
	list := map[string]tester.Port{}
	for name, w := range r.wires {
		list[name] = w.far
	}
	return list
}

// SearchPlan is a search for the rate at the goal, or a fixed rate, and latency at half of the rate that was found.
func SearchPlan(opt Options) tester.Plan {
	m := &outside{opt: opt}
	plan := m.plan(searchRough)
	plan.Latency = &tester.Latency{At: []tester.Part{"50%"}, Seconds: opt.Seconds / 2}
	return plan
}
