// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"testing"
	"time"

	"isthmus/api"
	"isthmus/controlplane/config"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

// MBR, GBR and averaging window as a policer.
func TestPolicerOfAQER(t *testing.T) {
	const kilobit = 125
	var none config.MBRBurst
	srtcm := func(cir, cbs uint64) *api.Policer {
		return &api.Policer{Type: api.MeterSRTCM, CIR: cir, CBS: cbs}
	}
	burst := func(window time.Duration) config.MBRBurst { return config.MBRBurst{Window: window, Least: 4000} }
	for _, c := range []struct {
		name     string
		mbr, gbr *uint64
		window   *uint32
		burst    config.MBRBurst
		want     *api.Policer // nil: none
	}{
		{"none", nil, nil, nil, none, nil},
		{"GBR alone", nil, ptr(uint64(5)), nil, none, nil},
		{"MBR 0", ptr(uint64(0)), nil, nil, none, nil},
		{"all ones", ptr(uint64(1<<40 - 1)), ptr(uint64(1<<40 - 1)), ptr(uint32(1<<32 - 1)), none, nil},
		{"MBR", ptr(uint64(100000)), nil, nil, none, srtcm(100000*kilobit, 1250000)},
		{"small", ptr(uint64(8)), nil, nil, none, srtcm(1000, 16<<10)},
		{"small, least", ptr(uint64(8)), nil, nil, burst(100 * time.Millisecond), srtcm(1000, 4000)},
		{"larger window", ptr(uint64(8000)), nil, nil, burst(time.Second), srtcm(1e6, 1e6)},
		{"the QER's window counts", ptr(uint64(8000)), nil, ptr(uint32(10)), burst(time.Second), srtcm(1e6, 10000)},
		{"GBR", ptr(uint64(100000)), ptr(uint64(50000)), ptr(uint32(2000)), none,
			&api.Policer{Type: api.MeterTRTCM, CIR: 50000 * kilobit, CBS: 12500000, PIR: 100000 * kilobit,
				PBS: 25000000}},
		{"huge", ptr(uint64(8e9)), nil, ptr(uint32(1<<32 - 1)), none, srtcm(1e12, api.MostBurst)},
	} {
		set := testSettings()
		if c.burst != none {
			set.MBRBurst = c.burst
		}
		x := Compiler{Context: Context{Set: set}}
		name := x.policer(&QER{CreateQER: pfcp.CreateQER{AveragingWindow: c.window}}, c.mbr, c.gbr, nil)
		if c.want == nil {
			testkit.ErrorIf(t, name != "" || len(x.out.Objects) != 0, "%s: %s", c.name, name)
			continue
		}
		var got api.Policer
		_, err := api.ReadRow(x.out.Objects[0].Body, &got)
		testkit.Must(t, err)
		c.want.Action = [3]byte{api.ColourActionPass, api.ColourActionPass, api.ColourActionDrop}
		testkit.ErrorIf(t, got != *c.want || name != x.out.Objects[0].Key,
			"%s: %+v, want %+v", c.name, got, *c.want)
	}
}

// A flow level marking is the colours' DSCP, with a limit or without, of downlink packets alone.
func TestFlowLevelMarking(t *testing.T) {
	req := request(1, "10.45.0.5")
	q := &req.QER[0]
	for _, mbr := range []*uint64{nil, ptr(uint64(8000))} {
		q.MBRUplink, q.MBRDownlink, q.FlowMarking = nil, mbr, ptr(uint8(46))
		s, _, refusal := Establish(testSettings(), giveNothing{}, req)
		testkit.FatalIf(t, refusal != nil, "%v", refusal)
		c, refusal := Compile(Context{Set: testSettings()}, s)
		testkit.FatalIf(t, refusal != nil, "%v", refusal)
		var policers []api.Policer // none of the uplink
		for _, o := range c.Objects {
			var p api.Policer
			if _, err := api.ReadRow(o.Body, &p); o.Kind == api.KindPolicer && err == nil {
				policers = append(policers, p)
			}
		}
		want := api.Policer{Type: api.MeterSRTCM, CIR: api.MostRate, CBS: api.MostBurst, DSCP: [3]byte{46, 46},
			Action: [3]byte{api.ColourActionRemark, api.ColourActionRemark, api.ColourActionDrop}}
		if mbr != nil {
			want.CIR, want.CBS = 1e6, 100000
		}
		testkit.ErrorIf(t, !slices.Equal(policers, []api.Policer{want}), "%+v, want %+v", policers, want)
	}
	q.FlowMarking = ptr(uint8(64))
	_, _, refusal := Establish(testSettings(), giveNothing{}, req)
	testkit.ErrorIf(t, refusal == nil || refusal.Offending != 97, "DSCP 64: %v", refusal)
}
