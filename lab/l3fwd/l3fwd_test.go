// SPDX-License-Identifier: Apache-2.0

package l3fwd

import (
	"math"
	"slices"
	"strings"
	"testing"

	"isthmus/lab/bench"
	"isthmus/lab/peer"
)

func options() Options {
	return Options{Bench: bench.Options{Workers: 1, CPUs: []int{1}, TesterCPUs: []int{0}, Goal: 1e-5}, Rounds: 1}
}

func TestRefused(t *testing.T) {
	for name, change := range map[string]func(o *Options){
		"three ports":   func(o *Options) { o.Ports = 3 },
		"eight ports":   func(o *Options) { o.Ports = 8 },
		"a small frame": func(o *Options) { o.Bench.Size = 63 },
		"synth":         func(o *Options) { o.Link = bench.LinkSynth },
		"two workers":   func(o *Options) { o.Bench.Workers = 2 },
		"not pinned":    func(o *Options) { o.Bench.CPUs = nil },
	} {
		o := options()
		change(&o)
		if r, err := Run(t.Context(), o); err == nil || r != nil {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
}

// Each port sends to its neighbour, and has its addresses from the same list as the router.
func TestStreams(t *testing.T) {
	o := options()
	list := ends(MaxPorts)
	p := o.base(list, 64)
	if len(p.Streams) != MaxPorts || len(p.Ports) != MaxPorts {
		t.Fatalf("%+v", p)
	}
	for i := range p.Streams {
		s, port := &p.Streams[i], &p.Ports[i]
		if s.Sink != list[i^1].Name || s.Port != port.Name || port.MAC != list[i].FarMAC {
			t.Errorf("%+v at %+v", s, port)
		}
	}
}

func TestPrograms(t *testing.T) {
	o := options()
	names := func() string {
		var list []string
		for _, p := range o.programs(ends(2)) {
			list = append(list, p.Name+"/"+p.Link)
		}
		return strings.Join(list, " ")
	}
	if got := names(); strings.Count(got, "isthmus/") != len(Links) || strings.Contains(got, peer.Linux) {
		t.Errorf("without peers: %s", got)
	}
	o.Peers, o.Link = true, bench.LinkAFPacket
	if got := names(); got != "isthmus/veth l3fwd-lpm/veth l3fwd-fib/veth linux-veth/veth" {
		t.Errorf("over veth: %s", got)
	}
	o.Link = bench.LinkMemif
	if got := names(); !strings.HasSuffix(got, "l3fwd-graph/memif") || strings.Contains(got, "l3fwd-em") {
		t.Errorf("over memif: %s", got)
	}
}

func TestPoint(t *testing.T) {
	rows := []peer.Row{
		{Name: "isthmus", Link: peer.LinkMemif, Ours: true, Mpps: 6, GbpsL2: 3, Repetitions: 1},
		{Name: peer.Linux, Link: peer.LinkVeth, Mpps: 0.3, Repetitions: 1},
		{Name: peer.Linux, Link: peer.LinkAFXDP, Mpps: 0.4, Repetitions: 1},
		{Name: "l3fwd-lpm", Link: peer.LinkMemif, WhyNot: "not built"},
	}
	r := Result{Goal: 1e-5, Rounds: 1, Complete: true}
	r.add(6, 64, rows)
	first := &r.Points[0].Rows[0]
	if math.Abs(float64(first.OfLinuxVeth)-15) > 1e-9 ||
		math.Abs(float64(first.LineShare)-6*84*8/1000./24) > 1e-9 || r.Mpps != 6 ||
		!slices.Equal([]int{r.Points[0].Ports, r.Points[0].Bytes}, []int{6, 64}) {
		t.Errorf("%+v of %+v", first, r)
	}
	if err := r.Verdict(); err != nil {
		t.Errorf("a peer that is not there is no failure: %v", err)
	}
	var text strings.Builder
	if err := r.Print(&text); err != nil || !strings.Contains(text.String(), "l3fwd-lpm over memif: not built") {
		t.Errorf("%v: %s", err, text.String())
	}
	loss := 0.01
	rows[0].LossRatio = &loss
	r.add(6, 128, rows)
	if err := r.Verdict(); err == nil || !strings.Contains(err.Error(), "128 B") {
		t.Errorf("loss: %v", err)
	}
}
