// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"time"

	"isthmus/api"
	"isthmus/controlplane/pfcp"
)

// Report turns the data plane's measurement into a Usage Report. s may be nil (an ended session): then all counts are
// reported.
func Report(s *Session, u *api.Usage) pfcp.UsageReport {
	r := pfcp.UsageReport{URR: u.URR, Sequence: u.Sequence, Trigger: u.Triggers, Start: stamp(u.StartNs),
		End:   stamp(u.EndNs),
		First: stamp(u.FirstNs), Last: stamp(u.LastNs), Information: uint8(u.Information)}
	method, packets := uint16(api.URRVolume|api.URRDuration), true
	if s != nil {
		if urr := s.urr(u.URR); urr != nil {
			m := uint16(*urr.Method)
			method = m>>1&api.URRVolume | m<<1&api.URRDuration | m&api.URREvent
			packets = urrFlags(urr)&api.URRCountPackets != 0
		}
	}
	if method&api.URRVolume != 0 {
		volume := u.Bytes
		r.Volume = &volume
		if packets {
			count := u.Packets
			r.Packets = &count
		}
	}
	if method&api.URRDuration != 0 {
		d := time.Duration(u.Duration) * time.Second
		r.Duration = &d
	}
	return r
}

// AnswerQuery puts the Query URR Reference into the reports that a query asked for (TS 29.244 §7.5.5.2).
func AnswerQuery(list []pfcp.UsageReport, reference *uint32) {
	for i := range list {
		if list[i].Trigger&api.UsageImmer != 0 {
			list[i].Query = reference
		}
	}
}

func stamp(ns uint64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(ns))
}

// Reports of one session. s is the session as it was before the change, which still has the URRs that went.
func Reports(s *Session, rows []api.Usage) []pfcp.UsageReport {
	var list []pfcp.UsageReport
	for i := range rows {
		list = append(list, Report(s, &rows[i]))
	}
	return list
}
