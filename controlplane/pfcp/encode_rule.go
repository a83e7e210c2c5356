// SPDX-License-Identifier: Apache-2.0

package pfcp

import "time"

// Values of the rules' IEs; which IEs a rule has is in its table.

func (w *writer) sdf(ie uint16, s SDFFilter) {
	defer w.close(w.open(ie))
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
}

func (w *writer) removal(ie uint16, r uint8) {
	if r&RemoveContainer == 0 {
		w.uint8(ie, r)
	} else {
		w.octets(ie, r&^RemoveContainer, 1)
	}
}

func (w *writer) outerHeader(ie uint16, o OuterHeader) {
	w.families(o.IPv4, o.IPv6)
	defer w.close(w.open(ie))
	w.put16(o.Description)
	if o.Description&(OuterGTPUIPv4|OuterGTPUIPv6) != 0 {
		w.put32(o.TEID)
	}
	w.address(o.IPv4)
	w.address(o.IPv6)
	if o.Description&(OuterUDPIPv4|OuterUDPIPv6) != 0 {
		w.put16(o.Port)
	}
}

func (w *writer) marking(ie uint16, dscp uint8) { w.octets(ie, dscp<<2, 0xfc) }

func (w *writer) redirect(ie uint16, r Redirect) {
	defer w.close(w.open(ie))
	w.b = append(w.b, r.Type)
	w.text(r.Address)
	if r.Type == 4 || r.Other != "" {
		w.text(r.Other)
	}
}

func (w *writer) policy(ie uint16, name string) {
	if len(name) > 255 {
		w.fail("forwarding policy of %d octets", len(name))
	}
	w.octets(ie, append([]byte{byte(len(name))}, name...)...)
}

func (w *writer) action(ie uint16, a ApplyAction) {
	if a>>8 == 0 {
		w.uint8(ie, uint8(a))
	} else {
		w.octets(ie, byte(a), byte(a>>8))
	}
}

// of is what a pointer points to, zero for nil.
func of[T any](v *T) (x T) {
	if v != nil {
		x = *v
	}
	return x
}

func (w *writer) rates(ie uint16, up, down *uint64) {
	if up == nil && down == nil {
		return
	}
	defer w.close(w.open(ie))
	for _, n := range []uint64{of(up), of(down)} {
		if n >= 1<<40 {
			w.fail("rate %d kbit/s", n)
		}
		w.b = append(w.b, byte(n>>32))
		w.put32(uint32(n))
	}
}

func (w *writer) gate(ie uint16, up, down *uint8) {
	if up != nil || down != nil {
		w.uint8(ie, of(up)&3<<2|of(down)&3)
	}
}

func (w *writer) delay(ie uint16, d time.Duration) {
	w.uint8(ie, uint8(min(max((d+delayStep-1)/delayStep, 0), 255)))
}

func (w *writer) timer(ie uint16, d time.Duration) { w.uint8(ie, timerValue(d)) }

// packets is TS 29.244 §8.2.100: one octet or two.
func (w *writer) packets(ie uint16, n uint16) {
	if n > 0xff {
		w.uint16(ie, n)
	} else {
		w.uint8(ie, uint8(n))
	}
}

// counts writes which counts are present, from bit 1, and eight octets of each.
func (w *writer) counts(ie uint16, list ...*uint64) {
	var flags byte
	for i, n := range list {
		flags |= when(n != nil, 1<<i)
	}
	if flags == 0 {
		return
	}
	defer w.close(w.open(ie))
	w.b = append(w.b, flags)
	for _, n := range list {
		if n != nil {
			w.put64(*n)
		}
	}
}

func (w *writer) volumes(ie uint16, v Volumes) { w.counts(ie, v.Total, v.Uplink, v.Downlink) }

func (w *writer) triggers(ie uint16, t uint32) { w.octets(ie, byte(t), byte(t>>8), byte(t>>16)) }

// elapsed is seconds of a duration that was measured.
func (w *writer) elapsed(ie uint16, d time.Duration) {
	w.seconds(ie, max(d, 0)/time.Second*time.Second)
}

func (w *writer) measurement(u *UsageReport) {
	if u.Volume == nil && u.Packets == nil {
		return
	}
	defer w.close(w.open(ieVolumeMeasurement))
	w.b = append(w.b, when(u.Volume != nil, 7)|when(u.Packets != nil, 7<<3))
	for _, three := range []*[3]uint64{u.Volume, u.Packets} {
		if three != nil {
			for _, n := range three {
				w.put64(n)
			}
		}
	}
}
