// SPDX-License-Identifier: Apache-2.0

package pfcp

import "time"

func (w *writer) sdf(s *SDFFilter) {
	at := w.open(ieSDFFilter)
	w.b = append(w.b, when(s.Flow != "", sdfFlow)|when(s.HasToS, sdfToS)|when(s.HasSPI, sdfSPI)|
		when(s.HasLabel, sdfLabel)|when(s.HasID, sdfID), 0)
	if s.Flow != "" {
		w.text(s.Flow)
	}
	if s.HasToS {
		w.b = append(w.b, s.ToS, s.Mask)
	}
	if s.HasSPI {
		w.put32(s.SPI)
	}
	if s.HasLabel {
		w.b = append(w.b, byte(s.FlowLabel>>16), byte(s.FlowLabel>>8), byte(s.FlowLabel))
	}
	if s.HasID {
		w.put32(s.ID)
	}
	w.close(at)
}

func (w *writer) pdi(p *PDI) {
	at := w.open(iePDI)
	w.uint8(ieSourceInterface, uint8(p.Source))
	w.fteid(p.LocalFTEID)
	w.instance(ieNetworkInstance, p.NetworkInstance)
	w.ueips(p.UEIP)
	w.optional8(ieEndpointID, p.TrafficEndpoint)
	for i := range p.SDF {
		w.sdf(&p.SDF[i])
	}
	if p.Application != "" {
		w.named(ieApplicationID, p.Application)
	}
	for _, q := range p.QFI {
		w.uint8(ieQFI, q)
	}
	w.routes(p.FramedRoutes)
	w.optional8(ieInterfaceType, p.InterfaceType)
	w.close(at)
}

func (w *writer) removal(r *uint8) {
	if r == nil || *r&RemoveContainer == 0 {
		w.optional8(ieOuterHeaderRemoval, r)
		return
	}
	at := w.open(ieOuterHeaderRemoval)
	w.b = append(w.b, *r&^RemoveContainer, 1)
	w.close(at)
}

func (w *writer) predefined(list []string) {
	for _, name := range list {
		w.named(ieActivatePredefined, name)
	}
}

func (w *writer) createPDR(ie uint16, p *CreatePDR) {
	at := w.open(ie)
	w.uint16(iePDRID, p.ID)
	w.uint32(iePrecedence, p.Precedence)
	w.pdi(&p.PDI)
	w.removal(p.OuterHeaderRemoval)
	w.optional32(ieFARID, p.FAR)
	w.list32(ieURRID, p.URR)
	w.list32(ieQERID, p.QER)
	w.predefined(p.ActivatePredefined)
	w.optionalTime(ieActivationTime, p.Activation)
	w.optionalTime(ieDeactivationTime, p.Deactivation)
	w.close(at)
}

func (w *writer) updatePDR(ie uint16, p *UpdatePDR) {
	at := w.open(ie)
	w.uint16(iePDRID, p.ID)
	w.removal(p.OuterHeaderRemoval)
	w.optional32(iePrecedence, p.Precedence)
	if p.PDI != nil {
		w.pdi(p.PDI)
	}
	w.optional32(ieFARID, p.FAR)
	if p.URR != nil {
		w.list32(ieURRID, *p.URR)
	}
	if p.QER != nil {
		w.list32(ieQERID, *p.QER)
	}
	w.predefined(p.ActivatePredefined)
	w.close(at)
}

func (w *writer) outerHeader(o *OuterHeader) {
	if o == nil {
		return
	}
	w.families(o.IPv4, o.IPv6)
	at := w.open(ieOuterHeaderCreation)
	w.put16(o.Description)
	if o.Description&(OuterGTPUIPv4|OuterGTPUIPv6) != 0 {
		w.put32(o.TEID)
	}
	w.address(o.IPv4)
	w.address(o.IPv6)
	if o.Description&(OuterUDPIPv4|OuterUDPIPv6) != 0 {
		w.put16(o.Port)
	}
	w.close(at)
}

func (w *writer) marking(dscp *uint8) {
	if dscp != nil {
		w.octets(ieTransportLevelMarking, *dscp<<2, 0xfc)
	}
}

func (w *writer) forwarding(ie uint16, f *Forwarding) {
	if f == nil {
		return
	}
	at := w.open(ie)
	if f.Destination != nil {
		w.uint8(ieDestinationInterface, uint8(*f.Destination))
	}
	if f.NetworkInstance != nil {
		w.instance(ieNetworkInstance, *f.NetworkInstance)
	}
	if r := f.Redirect; r != nil {
		at := w.open(ieRedirectInformation)
		w.b = append(w.b, r.Type)
		w.text(r.Address)
		if r.Type == 4 || r.Other != "" {
			w.text(r.Other)
		}
		w.close(at)
	}
	w.outerHeader(f.OuterHeader)
	w.marking(f.TransportMarking)
	if f.Policy != "" {
		at := w.open(ieForwardingPolicy)
		if len(f.Policy) > 255 {
			w.fail("forwarding policy of %d octets", len(f.Policy))
		}
		w.b = append(append(w.b, byte(len(f.Policy))), f.Policy...)
		w.close(at)
	}
	w.optional8(ieEndpointID, f.LinkedEndpoint)
	if f.SendEndMarker || f.DropBuffered {
		w.uint8(ieSMReqFlags, when(f.DropBuffered, smDropBuffered)|when(f.SendEndMarker, smEndMarker))
	}
	w.close(at)
}

func (w *writer) duplicating(ie uint16, d *Duplicating) {
	if d == nil {
		return
	}
	at := w.open(ie)
	w.uint8(ieDestinationInterface, uint8(d.Destination))
	w.outerHeader(d.OuterHeader)
	w.marking(d.TransportMarking)
	w.close(at)
}

func (w *writer) action(a ApplyAction) {
	if a>>8 == 0 {
		w.uint8(ieApplyAction, uint8(a))
	} else {
		w.octets(ieApplyAction, byte(a), byte(a>>8))
	}
}

func (w *writer) createFAR(ie uint16, f *CreateFAR) {
	at := w.open(ie)
	w.uint32(ieFARID, f.ID)
	w.action(f.Action)
	w.forwarding(ieForwardingParameters, f.Forwarding)
	w.duplicating(ieDuplicatingParameters, f.Duplicating)
	w.optional8(ieBARID, f.BAR)
	w.close(at)
}

func (w *writer) updateFAR(ie uint16, f *UpdateFAR) {
	at := w.open(ie)
	w.uint32(ieFARID, f.ID)
	if f.Action != nil {
		w.action(*f.Action)
	}
	w.forwarding(ieUpdateForwarding, f.Forwarding)
	w.duplicating(ieUpdateDuplicating, f.Duplicating)
	w.optional8(ieBARID, f.BAR)
	w.close(at)
}

func (w *writer) rates(ie uint16, up, down *uint64) {
	if up == nil && down == nil {
		return
	}
	at := w.open(ie)
	for _, rate := range []*uint64{up, down} {
		n := uint64(0)
		if rate != nil {
			n = *rate
		}
		if n >= 1<<40 {
			w.fail("rate %d kbit/s", n)
		}
		w.b = append(w.b, byte(n>>32))
		w.put32(uint32(n))
	}
	w.close(at)
}

func (w *writer) qer(ie uint16, q *CreateQER) {
	at := w.open(ie)
	w.uint32(ieQERID, q.ID)
	w.optional32(ieQERCorrelationID, q.Correlation)
	if q.GateUplink != nil || q.GateDownlink != nil {
		gate := byte(0)
		if q.GateUplink != nil {
			gate |= *q.GateUplink & 3 << 2
		}
		if q.GateDownlink != nil {
			gate |= *q.GateDownlink & 3
		}
		w.uint8(ieGateStatus, gate)
	}
	w.rates(ieMBR, q.MBRUplink, q.MBRDownlink)
	w.rates(ieGBR, q.GBRUplink, q.GBRDownlink)
	w.optional8(ieQFI, q.QFI)
	if q.RQI != nil {
		w.uint8(ieRQI, when(*q.RQI, 1))
	}
	w.optional32(ieAveragingWindow, q.AveragingWindow)
	w.close(at)
}

func (w *writer) bar(ie uint16, b *CreateBAR) {
	at := w.open(ie)
	w.uint8(ieBARID, b.ID)
	if b.NotifyDelay != nil {
		w.uint8(ieNotificationDelay, uint8(min(max((*b.NotifyDelay+delayStep-1)/delayStep, 0), 255)))
	}
	if b.Duration != nil {
		w.uint8(ieBufferingDuration, timerValue(*b.Duration))
	}
	if n := b.BufferPackets; n != nil {
		if *n > 0xff {
			w.uint16(ieBufferingPacketCount, *n)
		} else {
			w.uint8(ieBufferingPacketCount, uint8(*n))
		}
	}
	w.optional8(ieSuggestedPackets, b.SuggestedPackets)
	w.close(at)
}

func (w *writer) endpoint(ie uint16, e *CreateTrafficEndpoint) {
	at := w.open(ie)
	w.uint8(ieEndpointID, e.ID)
	w.fteid(e.LocalFTEID)
	w.instance(ieNetworkInstance, e.NetworkInstance)
	w.ueips(e.UEIP)
	w.routes(e.FramedRoutes)
	for _, q := range e.QFI {
		w.uint8(ieQFI, q)
	}
	w.close(at)
}

func (w *writer) createdPDR(ie uint16, c *CreatedPDR) {
	at := w.open(ie)
	w.uint16(iePDRID, c.ID)
	w.fteid(c.LocalFTEID)
	w.ueips(c.UEIP)
	w.close(at)
}

func (w *writer) createdEndpoint(ie uint16, c *CreatedEndpoint) {
	at := w.open(ie)
	w.uint8(ieEndpointID, c.ID)
	w.fteid(c.LocalFTEID)
	w.ueips(c.UEIP)
	w.close(at)
}

func (w *writer) volumes(ie uint16, v *Volumes) {
	if v == nil {
		return
	}
	at := w.open(ie)
	w.b = append(w.b, when(v.Total != nil, 1)|when(v.Uplink != nil, 2)|when(v.Downlink != nil, 4))
	for _, n := range []*uint64{v.Total, v.Uplink, v.Downlink} {
		if n != nil {
			w.put64(*n)
		}
	}
	w.close(at)
}

func (w *writer) urr(ie uint16, u *CreateURR) {
	at := w.open(ie)
	w.uint32(ieURRID, u.ID)
	w.optional8(ieMeasurementMethod, u.Method)
	if u.Triggers != nil {
		w.bytesOf(ieReportingTriggers, uint64(*u.Triggers), 3)
	}
	w.optionalSeconds(ieMeasurementPeriod, u.Period)
	w.volumes(ieVolumeThreshold, u.VolumeThreshold)
	w.volumes(ieVolumeQuota, u.VolumeQuota)
	w.optional32(ieEventThreshold, u.EventThreshold)
	w.optional32(ieEventQuota, u.EventQuota)
	w.optionalSeconds(ieTimeThreshold, u.TimeThreshold)
	w.optionalSeconds(ieTimeQuota, u.TimeQuota)
	w.optionalSeconds(ieQuotaHoldingTime, u.HoldingTime)
	if u.DroppedPackets != nil || u.DroppedBytes != nil {
		at := w.open(ieDroppedThreshold)
		w.b = append(w.b, when(u.DroppedPackets != nil, 1)|when(u.DroppedBytes != nil, 2))
		for _, n := range []*uint64{u.DroppedPackets, u.DroppedBytes} {
			if n != nil {
				w.put64(*n)
			}
		}
		w.close(at)
	}
	w.optionalSeconds(ieQuotaValidityTime, u.ValidityTime)
	if u.MonitoringTime != nil {
		w.time(ieMonitoringTime, *u.MonitoringTime)
	}
	w.volumes(ieSubsequentVolumeThreshold, u.SubsequentVolumeThreshold)
	w.optionalSeconds(ieSubsequentTimeThreshold, u.SubsequentTimeThreshold)
	w.optionalSeconds(ieInactivityDetectionTime, u.InactivityTime)
	w.list32(ieLinkedURRID, u.Linked)
	w.optional8(ieMeasurementInformation, u.Information)
	w.optional32(ieFARID, u.QuotaFAR)
	w.close(at)
}

func (w *writer) usage(ie uint16, u *UsageReport) {
	at := w.open(ie)
	w.uint32(ieURRID, u.URR)
	w.uint32(ieURSEQN, u.Sequence)
	w.bytesOf(ieUsageReportTrigger, uint64(u.Trigger), 3)
	w.optionalTime(ieStartTime, u.Start)
	w.optionalTime(ieEndTime, u.End)
	w.measurement(u)
	if u.Duration != nil {
		w.seconds(ieDurationMeasurement, max(*u.Duration, 0)/time.Second*time.Second)
	}
	w.optionalTime(ieTimeOfFirstPacket, u.First)
	w.optionalTime(ieTimeOfLastPacket, u.Last)
	if u.Information != 0 {
		w.uint8(ieUsageInformation, u.Information)
	}
	w.optional32(ieQueryReference, u.Query)
	for _, t := range u.Events {
		w.time(ieEventTimeStamp, t)
	}
	w.close(at)
}

func (w *writer) measurement(u *UsageReport) {
	if u.Volume == nil && u.Packets == nil {
		return
	}
	at := w.open(ieVolumeMeasurement)
	w.b = append(w.b, when(u.Volume != nil, 7)|when(u.Packets != nil, 7<<3))
	for _, three := range []*[3]uint64{u.Volume, u.Packets} {
		if three != nil {
			for _, n := range three {
				w.put64(n)
			}
		}
	}
	w.close(at)
}
