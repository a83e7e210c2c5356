// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/agent/plan"
	"isthmus/lab/tester"
)

// Every arrangement makes accepted configurations, and legs that face each other agree.
func TestVEPCConfigurations(t *testing.T) {
	for _, combined := range []bool{false, true} {
		opt := Options{Profile: "vepc-128", Link: LinkMemif, Sessions: 100, Workers: 1, Instances: 1,
			Combined: combined}
		text, err := Configuration(opt)
		if err != nil {
			t.Fatal(err)
		}
		want := 3
		if combined {
			want = 1
		}
		documents := strings.Split("\n"+strings.TrimPrefix(string(text), "---\n"), "\n---\n")
		if len(documents) != want {
			t.Fatalf("%d documents", len(documents))
		}
		for _, one := range documents {
			if _, err := plan.Make("vepc", []byte(one)); err != nil {
				t.Errorf("combined %v: %v\n%s", combined, err, one)
			}
		}
	}
	f := vepcFunctions(1)
	for i := range 2 {
		near, far := f[i].core, f[i+1].access
		if near.teid != far.peerTEID || far.teid != near.peerTEID || near.peers[0] != far.local ||
			far.peers[0] != near.local {
			t.Errorf("%s and %s: %+v %+v", f[i].name, f[i+1].name, near, far)
		}
	}
	for _, opt := range []Options{
		{Sessions: 0}, {Sessions: 1, Combined: true, Switch: "ovs"}, {Sessions: 1, Link: LinkAFXDP},
		{Sessions: 1, Instances: 2},
	} {
		opt.Profile, opt.Workers = "vepc-128", 1
		if _, err := newScene(opt, 0); err == nil {
			t.Errorf("%+v was accepted", opt)
		}
	}
	if _, ok := vepcSize("vepc-64"); ok {
		t.Error("64 B")
	}
}

// The tester's streams leave on one side and arrive on the other, a hop poorer.
func TestVEPCStreams(t *testing.T) {
	s, err := newScene(Options{Profile: "vepc-256", Link: LinkMemif, Sessions: 1000, Workers: 1, Instances: 1}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.points) != 1 || len(s.points[0].streams) != 2 || len(s.points[0].up) != 1 || len(s.echo) != 2 {
		t.Fatalf("%+v", s.points)
	}
	for _, stream := range append(s.points[0].streams, s.echo...) {
		if stream.Send[1].Fields["ttl"] != 64 || stream.Receive[1].Fields["ttl"] != 63 || stream.Port == stream.Sink {
			t.Errorf("%+v", stream)
		}
		send, receive := stream.Send[0].Fields, stream.Receive[0].Fields
		if uplink(stream.Port) != (send["destination"] == accessMAC) ||
			uplink(stream.Port) != (receive["source"] == coreMAC) {
			t.Errorf("%s: %v %v", stream.Name, send, receive)
		}
	}
}

// A trial's two readings of each function, and the table made of them.
func TestVEPCTable(t *testing.T) {
	at := time.Unix(100, 0)
	reading := func(seconds int, packets, busy uint64) *counters {
		c := newCounters()
		for _, name := range []string{"enodeb", "sgwu", "pgwu"} {
			c.parts = append(c.parts, part{name: name, at: at.Add(time.Duration(seconds) * time.Second),
				packets: packets, busy: busy,
				tscHz: 1e9, cpu: time.Duration(seconds) * time.Second, reserved: 1})
		}
		c.parts = append(c.parts, part{name: "switch", at: at.Add(time.Duration(seconds) * time.Second),
			cpu:      time.Duration(seconds) * 3 * time.Second,
			reserved: 3, relay: true})
		return c
	}
	w := window{a: reading(0, 0, 0), b: reading(2, 4e6, 1e9)}
	v := &vepc{opt: Options{Switch: SwitchNone, Sessions: 5}}
	r := &LinkResult{Points: []Point{{Cost: Cost{Mpps: 2}, GbpsL2: 2.05,
		Functions: w.functions(), Latency: []LoadLatency{
			{Load: 0.5, Echo: &tester.Histogram{P50: 10, P90: 20, P99: 30, Max: 40}, EchoSent: 7},
		}}}}
	v.finish(r)
	e := r.VEPC
	if f := e.Functions[1]; f.Mpps != 2 || f.TicksPerPacket != 250 || f.BusyCores != 0.5 || f.CPUCores != 1 ||
		f.LoadCores != 0.5 {
		t.Errorf("%+v", f)
	}
	if e.BusyCores != 1.5 || e.CPUCores != 6 || e.LoadCores != 4.5 || e.CoresPerMpps != 2.25 ||
		e.LoadPerMpps != 9.375 || e.CoresPerInstance != 2 ||
		e.InstancesBy[5] != (InstancesBy{24, 12}) || e.RTT[0].P90 != 20 || e.RTT[0].Sent != 7 {
		t.Errorf("%+v", e)
	}
	var b bytes.Buffer
	if err := e.print(&b); err != nil || !strings.Contains(b.String(), "instances on 24 cores") ||
		!strings.Contains(b.String(), "10.0/20.0/30.0") {
		t.Errorf("%v\n%s", err, b.String())
	}
	v.finish(&LinkResult{}) // nothing was measured
}

func TestProcessTime(t *testing.T) {
	if processTime(1) < 0 || processTime(1<<22+1) != 0 {
		t.Error("CPU time")
	}
}

func TestSwitchDrops(t *testing.T) {
	const text = `OFPST_PORT reply (OF1.4) (xid=0x2): 9 ports
  port LOCAL: rx pkts=0, bytes=0, drop=2, errs=0, frame=0, over=0, crc=0
           tx pkts=0, bytes=0, drop=?, errs=0, coll=0
  port  1: rx pkts=?, bytes=?, drop=?, errs=?, frame=?, over=?, crc=?
           tx pkts=?, bytes=?, drop=?, errs=?, coll=?
           duration=69.478s
           CUSTOM Statistics
                      ovs_tx_retries=2, ovs_tx_failure_drops=10, ovs_tx_mtu_exceeded_drops=0,
                      ovs_tx_qos_drops=0, ovs_rx_qos_drops=0, ovs_tx_invalid_hwol_drops=0,
`
	if n := dropsIn(text); n != 12 {
		t.Errorf("%d", n)
	}
}
