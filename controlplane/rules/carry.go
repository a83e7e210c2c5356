// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"math"
	"time"

	"isthmus/api"
	"isthmus/controlplane/pfcp"
)

// Carried is a URR's usage in ended data planes since its last report. Its thresholds include it: the next report has
// it.
type Carried struct {
	Uplink, Downlink uint64 // bytes
	Seconds          uint32
}

// Used is what is known of a URR in a data plane that is gone.
type Used struct {
	Bytes     [2]uint64 // since the last report: uplink, downlink
	Seconds   uint32    // the same
	Spent     uint32    // seconds since the quotas were granted
	Left      [3]uint64 // of the volume quota: total, uplink, downlink; NoQuota: none
	Exhausted uint32    // which quotas are used up, as in api_urr_row
	Heard     uint32    // of these, of which the report was there
}

// Exhausts are the quotas that can be used up, as in api_urr_row, with the triggers of their reports.
var Exhausts = [...]struct{ Report, Trigger, Quota uint32 }{{api.UsageVolqu, api.URRVolqu, 1},
	{api.UsageTimqu, api.URRTimqu, 2}, {api.UsageEvequ, api.URREvequ, 4}, {api.UsageQuhti, api.URRQuhti, 8}}

// Exhausting returns which quotas a report marks as used up.
func Exhausting(u *api.Usage) (quotas uint32) {
	for _, e := range Exhausts {
		if u.Triggers&e.Report != 0 {
			quotas |= e.Quota
		}
	}
	return quotas
}

// silent: nothing passes, and the CP function knows it or did not ask for a report.
func (m *Used) silent(triggers uint32) bool {
	for _, e := range Exhausts {
		if m.Exhausted&e.Quota != 0 && (m.Heard&e.Quota != 0 || triggers&e.Trigger == 0) {
			return true
		}
	}
	return false
}

// NoQuota is in the place of what is left of one.
const NoQuota = math.MaxUint64

// Resume continues a URR in another data plane: thresholds include measured usage, quotas are the rest. false:
// unchanged.
func (u *URR) Resume(m *Used) (changed bool) {
	if *u.Triggers&api.URRVolth != 0 && u.VolumeThreshold != nil && m.Bytes != [2]uint64{} {
		u.Carried.Uplink, u.Carried.Downlink = u.Carried.Uplink+m.Bytes[0], u.Carried.Downlink+m.Bytes[1]
		changed = true
	}
	if *u.Triggers&api.URRTimth != 0 && u.TimeThreshold != nil && m.Seconds != 0 {
		u.Carried.Seconds += m.Seconds
		changed = true
	}
	silent := m.silent(*u.Triggers)
	if q := u.VolumeQuota; q != nil {
		v := pfcp.Volumes{Total: m.left(q.Total, 0, silent), Uplink: m.left(q.Uplink, 1, silent),
			Downlink: m.left(q.Downlink, 2, silent)}
		changed = changed || volumes(&v) != volumes(q)
		u.VolumeQuota = &v
	}
	if q := u.TimeQuota; q != nil && *q > 0 {
		left := max(*q-time.Duration(m.Spent)*time.Second, time.Second)
		if silent {
			left = 0 // TS 29.244 §8.2.51: nothing passes
		}
		changed = changed || left != *q
		u.TimeQuota = &left
	}
	if q := u.EventQuota; q != nil && *q > 0 && silent {
		u.EventQuota, changed = new(uint32), true
	}
	return changed
}

// left is the rest of one part of a volume quota. It is 0 only if the CP function knows of the exhaustion (TS 29.244
// §8.2.50); otherwise one packet passes, and is reported.
func (m *Used) left(of *uint64, part int, silent bool) *uint64 {
	switch {
	case of == nil || *of == 0:
		return of
	case silent:
		return new(uint64)
	case m.Left[part] == NoQuota:
		return of
	}
	left := min(*of, max(m.Left[part], 1))
	return &left
}

// lessen subtracts carried-over usage from the thresholds. 0 would mean none.
func (c *Carried) lessen(out *api.URR) {
	for i, v := range [3]uint64{c.Uplink + c.Downlink, c.Uplink, c.Downlink} {
		if t := &out.VolumeThreshold[i]; *t != 0 {
			*t = max(*t, v+1) - v
		}
	}
	if t := &out.TimeThreshold; *t != 0 {
		*t = max(*t, c.Seconds+1) - c.Seconds
	}
}

// CarriedOver: some URR of the session has carried-over usage.
func (s *Session) CarriedOver() bool {
	for i := range s.URR {
		if s.URR[i].Carried != (Carried{}) {
			return true
		}
	}
	return false
}
