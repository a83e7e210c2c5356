// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/binary"
	"slices"

	"isthmus/api"
	"isthmus/controlplane/rules"
)

// reading is what a data plane had measured by a URR since its last report, when last read. Each report starts a
// measurement with the next sequence number; one is read until its report is there. A data plane counts reports from 0.
// UR-SEQN continues behind former data planes (base), so that the CP function takes no report for a repetition (TS
// 29.244 §8.2.71). A reading is also kept for its number.
type reading struct {
	urr            uint32
	sequence       uint32 // as the CP function knows it
	base           uint32 // of that, from former data planes
	began          uint32 // second of CLOCK_REALTIME in which it was read first
	bytes, packets [2]uint64
	seconds        uint32
	spent          int32  // seconds of the time quota, beside those; less than 0: it was granted meanwhile
	exhausted      uint32 // as in api_urr_row
	heard          uint32 // of these, of which the report was there
	left           [3]uint64
}

// readings are those of a session. A URR has several while reports are on their way; the last is the current one.
type readings struct {
	boot uint64 // of the data plane
	list []reading
}

// mostReadings of a URR are kept. It has as many when its reports wait for as many periods; the first are dropped.
const mostReadings = 8

func (r *reading) counts() bool {
	return r.bytes != [2]uint64{} || r.packets != [2]uint64{} || r.seconds != 0
}

func (r *reading) quota() bool {
	return r.left != noQuota || r.spent != 0 || r.exhausted != 0
}

func (r *reading) forgetQuota() { r.spent, r.exhausted, r.heard, r.left = 0, 0, 0, noQuota }

// needed: something was measured or reported.
func (r *reading) needed() bool { return r.sequence != 0 || r.counts() || r.quota() }

var noQuota = [3]uint64{rules.NoQuota, rules.NoQuota, rules.NoQuota}

// last is the place of a URR's current reading, -1 without one.
func (s *readings) last(urr uint32) int {
	for i := len(s.list) - 1; i >= 0; i-- {
		if s.list[i].urr == urr {
			return i
		}
	}
	return -1
}

// base is what UR-SEQN of a URR are more than numbers of the data plane.
func (s *readings) base(urr uint32) uint32 {
	if i := s.last(urr); i >= 0 {
		return s.list[i].base
	}
	return 0
}

// goOnIn keeps, for another data plane, the next numbers of reports.
func (s *readings) goOnIn(boot uint64) {
	s.boot = boot
	for i := len(s.list) - 1; i >= 0; i-- {
		r := &s.list[i]
		if r.sequence == 0 || s.last(r.urr) != i {
			s.list = slices.Delete(s.list, i, i+1)
			continue
		}
		*r = reading{urr: r.urr, sequence: r.sequence, base: r.sequence, began: r.began, left: noQuota}
	}
}

// take stores a row. A row older than a report was read before it.
func (s *readings) take(row *api.URRRow, now uint32) {
	i, base := s.last(row.URR), s.base(row.URR)
	r := reading{urr: row.URR, sequence: base + row.Sequence, base: base, began: now, seconds: row.Duration,
		bytes: [2]uint64(row.Bytes[1:]), packets: [2]uint64(row.Packets[1:]),
		exhausted: row.Exhausted, left: row.QuotaLeft}
	if i >= 0 {
		r.heard = s.list[i].heard & r.exhausted // a quota that passes again was granted
	}
	switch {
	case i < 0:
	case r.sequence < s.list[i].sequence:
		return
	case r.sequence == s.list[i].sequence:
		r.began, r.spent = s.list[i].began, s.list[i].spent
		s.list[i] = r
		return
	default:
		r.spent = s.goOn(i)
	}
	if r.needed() {
		s.list = append(s.list, r)
	}
}

// goOn splits a reading from its successor, which takes over what was spent.
func (s *readings) goOn(i int) (spent int32) {
	r := &s.list[i]
	spent = r.spent
	r.forgetQuota()
	if !r.counts() {
		s.list = slices.Delete(s.list, i, i+1)
		return spent
	}
	of := ofReading(r.urr)
	have := 0
	for i := range s.list {
		if of(s.list[i]) {
			have++
		}
	}
	if have >= mostReadings {
		i := slices.IndexFunc(s.list, of)
		s.list = slices.Delete(s.list, i, i+1)
	}
	return spent
}

func ofReading(urr uint32) func(reading) bool { return func(r reading) bool { return r.urr == urr } }

// report ends the reading of a report's measurement. false: there was none.
func (s *readings) report(u *api.Usage) bool {
	i := slices.IndexFunc(s.list, func(r reading) bool {
		return r.urr == u.URR && r.sequence == u.Sequence
	})
	last, heard := s.last(u.URR), rules.Exhausting(u)
	switch {
	case i < 0 && last >= 0 && s.list[last].sequence > u.Sequence:
		s.list[last].heard |= heard
		return false
	case i < 0:
		s.unread(u, last)
		return false
	case i != last:
		s.list[last].spent, s.list[last].heard = s.list[last].spent+int32(u.Duration), s.list[last].heard|heard
		s.list = slices.Delete(s.list, i, i+1)
		return true
	}
	r := &s.list[i]
	known := r.counts()
	for part, used := range [3]uint64{u.Bytes[1] + u.Bytes[2], u.Bytes[1], u.Bytes[2]} {
		before := [3]uint64{r.bytes[0] + r.bytes[1], r.bytes[0], r.bytes[1]}[part]
		if left := &r.left[part]; *left != rules.NoQuota {
			*left -= min(*left, max(used, before)-before)
		}
	}
	r.exhausted, r.heard = r.exhausted|heard, r.heard|heard
	r.sequence, r.began, r.spent = r.sequence+1, uint32(u.EndNs/1e9), r.spent+int32(u.Duration)
	r.bytes, r.packets, r.seconds = [2]uint64{}, [2]uint64{}, 0
	return known
}

// unread takes note of the number of a report of which nothing was read.
func (s *readings) unread(u *api.Usage, last int) {
	r := reading{urr: u.URR, sequence: u.Sequence + 1, base: s.base(u.URR), began: uint32(u.EndNs / 1e9),
		exhausted: rules.Exhausting(u), heard: rules.Exhausting(u), left: noQuota}
	if last >= 0 {
		r.spent = s.goOn(last)
	}
	s.list = append(s.list, r)
}

// granted forgets what was used of a URR's quotas.
func (s *readings) granted(urr uint32) {
	i := s.last(urr)
	if i < 0 {
		return
	}
	r := &s.list[i]
	r.forgetQuota()
	if r.spent = -int32(r.seconds); !r.needed() {
		s.list = slices.Delete(s.list, i, i+1)
	}
}

// gone forgets a URR that is no more.
func (s *readings) gone(urr uint32) { s.list = slices.DeleteFunc(s.list, ofReading(urr)) }

// usage is what was read, a row for each measurement. It has no trigger: it is of no report.
func (s *readings) usage(seid uint64) (rows []api.Usage) {
	for i := range s.list {
		r := &s.list[i]
		if !r.counts() {
			continue
		}
		u := api.Usage{SEID: seid, URR: r.urr, Sequence: r.sequence, Duration: r.seconds,
			StartNs: uint64(r.began) * 1e9,
			Bytes:   [3]uint64{r.bytes[0] + r.bytes[1], r.bytes[0], r.bytes[1]},
			Packets: [3]uint64{r.packets[0] + r.packets[1], r.packets[0], r.packets[1]}}
		if u.Packets[0] != 0 {
			u.FirstNs = u.StartNs
		}
		rows = append(rows, u)
	}
	return rows
}

// used is what was read of one URR.
func (s *readings) used(urr uint32) (m rules.Used, known bool) {
	m.Left = noQuota
	last, spent := s.last(urr), int64(0)
	for i := range s.list {
		r := &s.list[i]
		if r.urr != urr {
			continue
		}
		m.Bytes[0], m.Bytes[1] = m.Bytes[0]+r.bytes[0], m.Bytes[1]+r.bytes[1]
		m.Seconds, spent = m.Seconds+r.seconds, spent+int64(r.spent)+int64(r.seconds)
		if i == last {
			m.Left, m.Exhausted, m.Heard = r.left, r.exhausted, r.heard
		}
		known = true
	}
	m.Spent = uint32(max(spent, 0))
	return m, known
}

// ---- encoding -------------------------------------------------------------------------------------------------------

// In memory and in the store: the boot, then readings, integers as varints. Quotas and former data planes are rare:
// each is behind a bit, below and above the URR's number.
const (
	readingOfQuota = 1
	readingOfBase  = 1 << 33
)

func (s *readings) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, s.boot)
	for i := range s.list {
		r := &s.list[i]
		quota := r.quota()
		urr := uint64(r.urr) << 1
		if quota {
			urr |= readingOfQuota
		}
		if r.base != 0 {
			urr |= readingOfBase
		}
		for _, v := range [...]uint64{urr, uint64(r.sequence), uint64(r.began), r.bytes[0], r.bytes[1],
			r.packets[0], r.packets[1], uint64(r.seconds)} {
			b = binary.AppendUvarint(b, v)
		}
		if quota {
			used := uint64(r.heard)<<32 | uint64(r.exhausted)
			for _, v := range [...]uint64{uint64(uint32(r.spent)), used,
				r.left[0] + 1, r.left[1] + 1, r.left[2] + 1} { // none is 0
				b = binary.AppendUvarint(b, v)
			}
		}
		if r.base != 0 {
			b = binary.AppendUvarint(b, uint64(r.base))
		}
	}
	return b
}

// read is append's inverse; list is used again.
func (s *readings) read(b []byte) error {
	if len(b) < 8 {
		return rules.ErrEncoding
	}
	s.boot, s.list = binary.LittleEndian.Uint64(b), s.list[:0]
	b = b[8:]
	bad := false
	number := func() uint64 {
		v, n := binary.Uvarint(b)
		if bad = bad || n <= 0; bad {
			return 0
		}
		b = b[n:]
		return v
	}
	for len(b) > 0 && !bad {
		urr := number()
		r := reading{urr: uint32(urr >> 1), sequence: uint32(number()), began: uint32(number()),
			bytes: [2]uint64{number(), number()}, packets: [2]uint64{number(), number()},
			seconds: uint32(number()), left: noQuota}
		if urr&readingOfQuota != 0 {
			r.spent = int32(uint32(number()))
			used := number()
			r.exhausted, r.heard = uint32(used), uint32(used>>32)
			r.left = [3]uint64{number() - 1, number() - 1, number() - 1}
		}
		if urr&readingOfBase != 0 {
			r.base = uint32(number())
		}
		s.list = append(s.list, r)
	}
	if bad {
		return rules.ErrEncoding
	}
	return nil
}
