// SPDX-License-Identifier: Apache-2.0

package pfcp

import "time"

// Tables of URRs and usage reports (TS 29.244 §7.5.2.4, §7.5.4.4, §7.5.5.2, §7.5.7.2, §7.5.8.3).

// readVolumes is TS 29.244 §8.2.13 and §8.2.50: TOVOL, ULVOL, DLVOL and eight octets each.
func readVolumes(v []byte) (Volumes, *Error) {
	c := cursor{b: v[1:]}
	var m Volumes
	c.counts(v[0], &m.Total, &m.Uplink, &m.Downlink)
	if c.short || len(c.b) > 0 {
		return m, &Error{Cause: CauseInvalidLength, Text: "volumes do not fit the flags"}
	}
	if v[0]&7 == 0 {
		return m, incorrect("no volume")
	}
	return m, nil
}

// readVolumeThreshold refuses thresholds of 0, which would report without end (row P24).
func readVolumeThreshold(v []byte) (Volumes, *Error) {
	m, refusal := readVolumes(v)
	if refusal != nil {
		return m, refusal
	}
	for _, n := range []*uint64{m.Total, m.Uplink, m.Downlink} {
		if n != nil && *n == 0 {
			return m, incorrect("volume threshold 0")
		}
	}
	return m, nil
}

func positive(v []byte) (uint32, *Error) {
	if number(v) == 0 {
		return 0, incorrect("threshold 0")
	}
	return readUint32(v)
}

// Reporting triggers of unmeasured events (TS 29.244 §8.2.19): envelopes, MAC addresses, IP multicast, end markers,
// inactivity of the user plane by URR.
const unservedTriggers = 1<<10 | 1<<11 | 1<<14 | 1<<16 | 1<<17

func readTriggers(v []byte) (uint32, *Error) {
	t := uint32(flags(v)) & 0x3ffff
	if t&unservedTriggers != 0 {
		return t, unserved("reporting triggers %#x", t)
	}
	return t, nil
}

// readMethod is TS 29.244 §8.2.40: at least one of duration, volume, event.
func readMethod(v []byte) (uint8, *Error) {
	if v[0]&7 == 0 {
		return 0, incorrect("measurement of nothing")
	}
	return v[0] & 7, nil
}

// Measurement Information (TS 29.244 §8.2.68) that we serve. RADI is about application detection information, which
// reports do not have; SSPOC, ASPOC and CIAM are about the pause of charging.
const (
	measureBeforeQoS = 1 << 0 // MBQE
	measureInactive  = 1 << 1 // INAM
	measureAtOnce    = 1 << 3 // ISTM
	measurePackets   = 1 << 4 // MNOP
	measureServed    = measureBeforeQoS | measureInactive | measureAtOnce | measurePackets
)

func readInformation(v []byte) (uint8, *Error) {
	if v[0]&^measureServed != 0 {
		return v[0], unserved("measurement information %#x", v[0])
	}
	return v[0], nil
}

// readDropped is TS 29.244 §8.2.49: DLPA and DLBY, eight octets each.
func readDropped(v []byte, u *CreateURR) *Error {
	c := cursor{b: v[1:]}
	c.counts(v[0], &u.DroppedPackets, &u.DroppedBytes)
	if refusal := c.end(ieDroppedThreshold, len(v)); refusal != nil {
		return refusal
	}
	if v[0]&3 == 0 {
		return incorrect("dropped traffic threshold of nothing")
	}
	return nil
}

// urrFields begins with what a creation must have.
var urrFields = []field[CreateURR]{
	need(always(ieURRID, readUint32, (*writer).uint32, func(u *CreateURR) *uint32 { return &u.ID })),
	optional(ieMeasurementMethod, readMethod, (*writer).uint8, func(u *CreateURR) **uint8 { return &u.Method }),
	optional(ieReportingTriggers, readTriggers, (*writer).triggers, func(u *CreateURR) **uint32 { return &u.Triggers }),
	optional(ieMeasurementPeriod, positiveSeconds, (*writer).seconds,
		func(u *CreateURR) **time.Duration { return &u.Period }),
	optional(ieVolumeThreshold, readVolumeThreshold, (*writer).volumes,
		func(u *CreateURR) **Volumes { return &u.VolumeThreshold }),
	optional(ieVolumeQuota, readVolumes, (*writer).volumes, func(u *CreateURR) **Volumes { return &u.VolumeQuota }),
	optional(ieEventThreshold, positive, (*writer).uint32, func(u *CreateURR) **uint32 { return &u.EventThreshold }),
	optional(ieEventQuota, readUint32, (*writer).uint32, func(u *CreateURR) **uint32 { return &u.EventQuota }),
	optional(ieTimeThreshold, positiveSeconds, (*writer).seconds,
		func(u *CreateURR) **time.Duration { return &u.TimeThreshold }),
	optional(ieTimeQuota, readSeconds, (*writer).seconds, func(u *CreateURR) **time.Duration { return &u.TimeQuota }),
	optional(ieQuotaHoldingTime, readSeconds, (*writer).seconds,
		func(u *CreateURR) **time.Duration { return &u.HoldingTime }),
	{ie: ieDroppedThreshold, read: readDropped, write: func(w *writer, u *CreateURR) {
		w.counts(ieDroppedThreshold, u.DroppedPackets, u.DroppedBytes)
	}},
	optional(ieQuotaValidityTime, readSeconds, (*writer).seconds,
		func(u *CreateURR) **time.Duration { return &u.ValidityTime }),
	optional(ieMonitoringTime, readTime, (*writer).time, func(u *CreateURR) **time.Time { return &u.MonitoringTime }),
	optional(ieSubsequentVolumeThreshold, readVolumeThreshold, (*writer).volumes,
		func(u *CreateURR) **Volumes { return &u.SubsequentVolumeThreshold }),
	optional(ieSubsequentTimeThreshold, positiveSeconds, (*writer).seconds,
		func(u *CreateURR) **time.Duration { return &u.SubsequentTimeThreshold }),
	optional(ieInactivityDetectionTime, readSeconds, (*writer).seconds,
		func(u *CreateURR) **time.Duration { return &u.InactivityTime }),
	list(ieLinkedURRID, readUint32, (*writer).uint32, func(u *CreateURR) *[]uint32 { return &u.Linked }),
	optional(ieMeasurementInformation, readInformation, (*writer).uint8,
		func(u *CreateURR) **uint8 { return &u.Information }),
	optional(ieFARID, readUint32, (*writer).uint32, func(u *CreateURR) **uint32 { return &u.QuotaFAR }),
}

var urrUnserved = []uint16{ieTimeQuotaMechanism, ieAggregatedURRs, ieSubsequentVolumeQuota, ieSubsequentTimeQuota,
	ieEthernetInactivity, ieAdditionalMonitoring, ieSubsequentEventQuota, ieSubsequentEventThreshold, ieNumberOfReports,
	ieApplicationID, ieSDFFilter} // the last two: what is exempted from the quota action

var (
	createURR = newGroup(append([]field[CreateURR]{urrFields[0], need(urrFields[1]), need(urrFields[2])},
		urrFields[3:]...),
		urrUnserved).of(RuleURR, ieURRID)
	updateURR = newGroup(urrFields, urrUnserved).of(RuleURR, ieURRID)
)

// readMeasurement is TS 29.244 §8.2.44: TOVOL ULVOL DLVOL TONOP ULNOP DLNOP and eight octets each.
func readMeasurement(v []byte, u *UsageReport) *Error {
	c := cursor{b: v[1:]}
	for i := range 6 {
		if v[0]&(1<<i) == 0 {
			continue
		}
		at := &u.Volume
		if i >= 3 {
			at = &u.Packets
		}
		if *at == nil {
			*at = new([3]uint64)
		}
		(*at)[i%3] = c.uint64()
	}
	return c.end(ieVolumeMeasurement, len(v))
}

var usageReport = newGroup([]field[UsageReport]{
	need(always(ieURRID, readUint32, (*writer).uint32, func(u *UsageReport) *uint32 { return &u.URR })),
	need(always(ieURSEQN, readUint32, (*writer).uint32, func(u *UsageReport) *uint32 { return &u.Sequence })),
	need(always(ieUsageReportTrigger, func(v []byte) (uint32, *Error) { return uint32(flags(v)) & 0xffffff, nil },
		(*writer).triggers,
		func(u *UsageReport) *uint32 { return &u.Trigger })),
	value(ieStartTime, readTime, (*writer).time, func(u *UsageReport) *time.Time { return &u.Start }),
	value(ieEndTime, readTime, (*writer).time, func(u *UsageReport) *time.Time { return &u.End }),
	{ie: ieVolumeMeasurement, read: readMeasurement, write: (*writer).measurement},
	optional(ieDurationMeasurement, readSeconds, (*writer).elapsed,
		func(u *UsageReport) **time.Duration { return &u.Duration }),
	value(ieTimeOfFirstPacket, readTime, (*writer).time, func(u *UsageReport) *time.Time { return &u.First }),
	value(ieTimeOfLastPacket, readTime, (*writer).time, func(u *UsageReport) *time.Time { return &u.Last }),
	value(ieUsageInformation, func(v []byte) (uint8, *Error) { return v[0] & 15, nil }, (*writer).uint8,
		func(u *UsageReport) *uint8 { return &u.Information }),
	optional(ieQueryReference, readUint32, (*writer).uint32, func(u *UsageReport) **uint32 { return &u.Query }),
	list(ieEventTimeStamp, readTime, (*writer).time, func(u *UsageReport) *[]time.Time { return &u.Events }),
}, nil)
