// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"time"

	"isthmus/api"
	"isthmus/controlplane/pfcp"
)

// What the data plane takes of a policer.
const (
	mostBurst = 1 << 40
	mostRate  = 1e12 // bytes per second; no limit of a UE
)

func (c *Compiler) allQERs() {
	for i := range c.s.QER {
		q := &c.s.QER[i]
		out := api.QER{ID: q.ID, GateUplink: *q.GateUplink, GateDownlink: *q.GateDownlink, Share: q.Share}
		if q.QFI != nil {
			out.QFI = *q.QFI
		}
		up, down := q.UplinkPolicer, q.DownlinkPolicer
		if c.s.Line == nil {
			up, down = c.policer(q, q.MBRUplink, q.GBRUplink), c.policer(q, q.MBRDownlink, q.GBRDownlink)
		}
		copy(out.UplinkPolicer[:api.NameSize-1], up)
		copy(out.DownlinkPolicer[:api.NameSize-1], down)
		c.qers = append(c.qers, out)
	}
}

// policer names the policer of one direction: MBR as a single rate (RFC 2697), or with GBR as the committed and MBR as
// the peak rate (RFC 2698); what exceeds MBR is dropped. "" without MBR, and with one of 0: a CP function that means to
// stop traffic closes the gate, and one that limits a single direction sends 0 for the other.
func (c *Compiler) policer(q *QER, mbr, gbr *uint64) string {
	if mbr == nil || *mbr == 0 {
		return ""
	}
	window := c.Set.Burst.Window
	if q.AveragingWindow != nil && *q.AveragingWindow != 0 {
		window = time.Duration(*q.AveragingWindow) * time.Millisecond
	}
	const bytesPerKilobit = 125
	peak := *mbr * bytesPerKilobit // MBR has 40 bits
	if peak > mostRate {
		return ""
	}
	burst := func(rate uint64) uint64 {
		ms := min(uint64(window/time.Millisecond), 1<<20) // below 2^64, whatever the window
		return min(max(rate*ms/1000, c.Set.Burst.Least), mostBurst)
	}
	body := api.Policer{Type: api.MeterSRTCM, CIR: peak, CBS: burst(peak),
		Action: [3]byte{api.ColourActionPass, api.ColourActionPass, api.ColourActionDrop}}
	if gbr != nil && *gbr != 0 {
		committed := *gbr * bytesPerKilobit
		body.Type, body.CIR, body.CBS, body.PIR, body.PBS = api.MeterTRTCM, committed, burst(committed), peak, burst(peak)
	}
	var b [api.SizeofPartHead + api.SizeofPolicer]byte
	return c.need(api.KindPolicer, api.AppendRow(b[:0], &body))
}

// volumes: total, uplink, downlink, as in api_urr.
func volumes(v *pfcp.Volumes) (out [3]uint64) {
	if v == nil {
		return out
	}
	set(&out[0], v.Total)
	set(&out[1], v.Uplink)
	set(&out[2], v.Downlink)
	return out
}

func wholeSeconds(d *time.Duration) uint32 {
	if d == nil {
		return 0
	}
	return seconds(*d)
}

func (c *Compiler) allURRs() {
	if c.Bare {
		return
	}
	for i := range c.s.URR {
		u := &c.s.URR[i]
		out := api.URR{ID: u.ID, Triggers: *u.Triggers, Query: u.Query, Grant: u.Grant,
			VolumeThreshold: volumes(u.VolumeThreshold), VolumeQuota: volumes(u.VolumeQuota),
			SubsequentVolumeThreshold: volumes(u.SubsequentVolumeThreshold),
			TimeThreshold:             wholeSeconds(u.TimeThreshold), TimeQuota: wholeSeconds(u.TimeQuota),
			SubsequentTimeThreshold: wholeSeconds(u.SubsequentTimeThreshold), HoldingTime: wholeSeconds(u.HoldingTime),
			ValidityTime: wholeSeconds(u.ValidityTime), Period: wholeSeconds(u.Period), Inactivity: wholeSeconds(u.InactivityTime)}
		// TS 29.244 §8.2.40: DURAT, VOLUM, EVENT from bit 1.
		out.Method = uint16(*u.Method)>>1&api.URRVolume | uint16(*u.Method)<<1&api.URRDuration | uint16(*u.Method)&api.URREvent
		set(&out.EventThreshold, u.EventThreshold)
		set(&out.EventQuota, u.EventQuota)
		set(&out.QuotaFAR, u.QuotaFAR)
		copy(out.Linked[:], u.Linked)
		if u.MonitoringTime != nil && !u.MonitoringTime.IsZero() {
			out.MonitoringTime = uint64(max(u.MonitoringTime.Unix(), 0))
		}
		if u.DroppedPackets != nil {
			out.DroppedPackets = uint32(min(*u.DroppedPackets, 1<<32-1))
		}
		set(&out.DroppedBytes, u.DroppedBytes)
		out.Flags = urrFlags(u)
		c.urrs = append(c.urrs, out)
	}
}

// urrFlags: quotas that are there, and Measurement Information (TS 29.244 §8.2.68).
func urrFlags(u *URR) uint16 {
	var flags uint16
	if u.VolumeQuota != nil {
		flags |= api.URRHasVolumeQuota
	}
	if u.TimeQuota != nil {
		flags |= api.URRHasTimeQuota
	}
	if u.EventQuota != nil {
		flags |= api.URRHasEventQuota
	}
	if u.Information == nil {
		return flags
	}
	for bit, flag := range []uint16{api.URRBeforeQos, api.URRInactive, 0, api.URRStartOfTraffic, api.URRCountPackets} {
		if *u.Information>>bit&1 != 0 {
			flags |= flag
		}
	}
	return flags
}
