// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"time"

	"isthmus/api"
	"isthmus/controlplane/pfcp"
)

// QER is a QER from the CP function. Share is the number of its shared meters, 0 without a correlation id. A wireline
// subscriber has the configuration's policers, by name, or its own; without both they follow from MBR and GBR as in a
// PFCP session.
type QER struct {
	pfcp.CreateQER
	Share                          uint32
	UplinkPolicer, DownlinkPolicer string
	Uplink, Downlink               *api.Policer
}

func (c *codec) qer(q *QER) {
	number(c, &q.ID)
	number(c, &q.Share)
	c.optional(&q.Correlation, &q.GateUplink, &q.GateDownlink, &q.MBRUplink, &q.MBRDownlink, &q.GBRUplink,
		&q.GBRDownlink,
		&q.QFI, &q.AveragingWindow, &q.RQI, &q.FlowMarking)
	c.text(&q.UplinkPolicer)
	c.text(&q.DownlinkPolicer)
	c.optional(&q.Uplink, &q.Downlink)
}

func checkQER(q *QER) *pfcp.Error {
	above := func(gbr, mbr *uint64) bool { return gbr != nil && mbr != nil && *mbr != 0 && *gbr > *mbr }
	switch {
	case q.GateUplink == nil || q.GateDownlink == nil:
		return Lacks(pfcp.RuleQER, q.ID, pfcp.CauseMandatoryIEMissing, ieGate, "no gate status")
	case *q.GateUplink > 1 || *q.GateDownlink > 1: // TS 29.244 §8.2.7: 2 and 3 are for future use
		return Fault(pfcp.RuleQER, q.ID, ieGate, "no such gate status")
	case q.QFI != nil && *q.QFI > 63:
		return Fault(pfcp.RuleQER, q.ID, 124, "QFI above 63")
	case q.FlowMarking != nil && *q.FlowMarking > 63:
		return Fault(pfcp.RuleQER, q.ID, 97, "DSCP above 63")
	case above(q.GBRUplink, q.MBRUplink) || above(q.GBRDownlink, q.MBRDownlink):
		return Fault(pfcp.RuleQER, q.ID, 27, "GBR above MBR")
	}
	return nil
}

func (q *QER) update(u *pfcp.UpdateQER) { merge(&q.CreateQER, u) }

func (c *Compiler) allQERs() {
	for i := range c.s.QER {
		q := &c.s.QER[i]
		out := api.QER{ID: q.ID, GateUplink: *q.GateUplink, GateDownlink: *q.GateDownlink, Share: q.Share}
		if q.QFI != nil {
			out.QFI = *q.QFI
		}
		if q.RQI != nil && *q.RQI {
			out.Flags |= api.QERRqi
		}
		up := c.policerOf(q, q.UplinkPolicer, q.Uplink, q.MBRUplink, q.GBRUplink, nil)
		down := c.policerOf(q, q.DownlinkPolicer, q.Downlink, q.MBRDownlink, q.GBRDownlink, q.FlowMarking)
		copy(out.UplinkPolicer[:api.NameSize-1], up)
		copy(out.DownlinkPolicer[:api.NameSize-1], down)
		c.qers = append(c.qers, out)
	}
}

// policerOf names the policer of one direction: the configuration's, the session's own, or that of MBR, GBR and
// marking.
func (c *Compiler) policerOf(q *QER, name string, own *api.Policer, mbr, gbr *uint64, mark *uint8) string {
	switch {
	case name != "":
		return name
	case own != nil:
		return c.needPolicer(own)
	}
	return c.policer(q, mbr, gbr, mark)
}

func (c *Compiler) needPolicer(body *api.Policer) string {
	var b [api.SizeofPartHead + api.SizeofPolicer]byte
	return c.need(api.KindPolicer, api.AppendRow(b[:0], body))
}

// policer names the policer of one direction. MBR alone is a single rate (RFC 2697); with GBR, GBR is the committed and
// MBR the peak rate (RFC 2698). Packets above MBR are dropped; others get the DSCP of the flow level marking (TS 29.244
// §8.2.66). "" without a limit or marking. MBR of 0 is no limit: the gate stops traffic, and a CP function that limits
// one direction sends 0 for the other.
func (c *Compiler) policer(q *QER, mbr, gbr *uint64, mark *uint8) string {
	const bytesPerKilobit = 125
	body := api.Policer{Type: api.MeterSRTCM, CIR: api.MostRate, CBS: api.MostBurst,
		Action: [3]byte{api.ColourActionPass, api.ColourActionPass, api.ColourActionDrop}}
	if mbr != nil && *mbr != 0 && *mbr*bytesPerKilobit <= api.MostRate { // 40 bits; above, no limit of a UE
		body.CIR = *mbr * bytesPerKilobit
		body.CBS = c.burst(q, body.CIR)
		if gbr != nil && *gbr != 0 {
			committed := *gbr * bytesPerKilobit
			body.Type, body.PIR, body.PBS = api.MeterTRTCM, body.CIR, body.CBS
			body.CIR, body.CBS = committed, c.burst(q, committed)
		}
	} else if mark == nil {
		return ""
	}
	if mark != nil {
		body.Action[0], body.Action[1] = api.ColourActionRemark, api.ColourActionRemark
		body.DSCP[0], body.DSCP[1] = *mark, *mark
	}
	return c.needPolicer(&body)
}

// burst is what a rate lets pass in the averaging window, in bytes.
func (c *Compiler) burst(q *QER, rate uint64) uint64 {
	window := c.Set.MBRBurst.Window
	if q.AveragingWindow != nil && *q.AveragingWindow != 0 {
		window = time.Duration(*q.AveragingWindow) * time.Millisecond
	}
	ms := min(uint64(window/time.Millisecond), 1<<20) // below 2^64, for any window
	return min(max(rate*ms/1000, uint64(c.Set.MBRBurst.Least)), api.MostBurst)
}
