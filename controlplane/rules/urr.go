// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"time"

	"isthmus/api"
	"isthmus/controlplane/pfcp"
)

// URR is a URR as the CP function gave it. Query counts the immediate reports that were asked for, Grant how often
// thresholds and quotas were given. IPv6: of a subscriber whose core side is IP, IPv6 packets alone.
type URR struct {
	pfcp.CreateURR
	Query uint32
	Grant uint32
	IPv6  bool
	Carried
}

func (c *codec) urr(u *URR) {
	number(c, &u.ID)
	number(c, &u.Query)
	number(c, &u.Grant)
	c.numbers32(&u.Linked)
	c.optional(&u.Method, &u.Triggers, &u.Period, &u.VolumeThreshold, &u.VolumeQuota, &u.TimeThreshold, &u.TimeQuota,
		&u.EventThreshold, &u.EventQuota, &u.HoldingTime, &u.ValidityTime, &u.InactivityTime, &u.MonitoringTime,
		&u.SubsequentVolumeThreshold, &u.SubsequentTimeThreshold, &u.Information, &u.QuotaFAR, &u.DroppedPackets,
		&u.DroppedBytes)
	c.flag(&u.IPv6)
	c.carried(&u.Carried)
}

// carried takes a byte where there is nothing.
func (c *codec) carried(v *Carried) {
	there := *v != Carried{}
	if c.flag(&there); there {
		number(c, &v.Uplink)
		number(c, &v.Downlink)
		number(c, &v.Seconds)
	}
}

func (s *Session) checkURR(u *URR) *pfcp.Error {
	switch {
	case u.Method == nil:
		return Lacks(pfcp.RuleURR, u.ID, pfcp.CauseMandatoryIEMissing, ieMethod, "no measurement method")
	case *u.Method&7 == 0 || *u.Method&^7 != 0:
		return Fault(pfcp.RuleURR, u.ID, ieMethod, "no such measurement method")
	case u.Triggers == nil:
		return Lacks(pfcp.RuleURR, u.ID, pfcp.CauseMandatoryIEMissing, ieTriggers, "no reporting triggers")
	case len(u.Linked) > 2:
		return Lacks(pfcp.RuleURR, u.ID, pfcp.CauseNoResources, 82, "more than 2 linked URRs")
	case u.QuotaFAR != nil && (*u.QuotaFAR == 0 || s.far(*u.QuotaFAR) == nil):
		return Fault(pfcp.RuleURR, u.ID, ieFAR, "the FAR for quota action is not there")
	}
	for _, l := range u.Linked {
		if l == u.ID {
			return Fault(pfcp.RuleURR, u.ID, 82, "linked to itself")
		}
		if s.urr(l) == nil {
			return Fault(pfcp.RuleURR, u.ID, 82, fmt.Sprintf("linked URR %d is not there", l))
		}
	}
	return nil
}

// update counts a grant when the request brings a threshold or quota, so that an equal one starts again too (TS 29.244
// §5.2.2.2).
func (r *URR) update(u *pfcp.UpdateURR) {
	if u.VolumeThreshold != nil || u.VolumeQuota != nil || u.TimeThreshold != nil || u.TimeQuota != nil ||
		u.EventThreshold != nil || u.EventQuota != nil ||
		u.ValidityTime != nil && r.VolumeQuota == nil && r.TimeQuota == nil && r.EventQuota == nil {
		r.Grant++
		r.Carried = Carried{} // thresholds begin again; the next report has it all the same
	}
	merge(&r.CreateURR, u)
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
			ValidityTime: wholeSeconds(u.ValidityTime), Period: wholeSeconds(u.Period),
			Inactivity: wholeSeconds(u.InactivityTime)}
		// TS 29.244 §8.2.40: DURAT, VOLUM, EVENT from bit 1.
		out.Method = uint16(*u.Method)>>1&api.URRVolume | uint16(*u.Method)<<1&api.URRDuration |
			uint16(*u.Method)&api.URREvent
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
		u.Carried.lessen(&out)
		c.urrs = append(c.urrs, out)
	}
}

// urrFlags: which quotas exist, and Measurement Information (TS 29.244 §8.2.68).
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
	if u.IPv6 {
		flags |= api.URRIP6
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
