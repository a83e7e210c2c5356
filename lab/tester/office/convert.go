// SPDX-License-Identifier: Apache-2.0

package office

import (
	"encoding/hex"
	"math"
	"strings"

	"isthmus/lab/tester"
	"isthmus/traffic/job"
)

// The engine's counts, in the result's names and units.

// wrongKinds are the engine's, in its order (enum wrong).
var wrongKinds = [job.Wrongs]string{"port", "length", "header", "checksum", "payload", "structure"}

var disturbances = []struct {
	bit  uint32
	name string
}{{job.DisturbedSteal, "steal"}, {job.DisturbedSwitched, "switched"}, {job.DisturbedGap, "gap"},
	{job.DisturbedFAR, "far"}, {job.DisturbedMissed, "missed"}}

// wireBytes are preamble, start of frame and gap: what a frame takes on the wire (L1) beside itself.
const wireBytes = 20

func (e *Engine) result(t *job.Trial, counts []job.StreamCount) *tester.Trial {
	out := &tester.Trial{Seconds: t.Seconds, OfferedPPS: t.OfferedPps, Sent: t.Sent, Received: t.Received,
		Lost: t.Lost, LossRatio: t.LossRatio, Duplicate: t.Duplicate, Reordered: t.Reordered, Stale: t.Stale,
		Wrong: t.Wrong, Foreign: t.Foreign, Control: t.Control, Stray: t.Stray,
		TesterLimited: t.TesterLimited != 0, Disturbed: []string{}, Steal: t.Steal, Switches: t.Switches,
		GapUS: t.GapUs, Missed: t.Missed, BusyTicks: t.BusyTicks, RoundTripNs: t.RoundTripNs,
		ClockGHz: t.ClockGhz, Interrupted: t.Interrupted != 0, Streams: []tester.StreamTrial{}}
	for _, d := range disturbances {
		if t.Disturbed&d.bit != 0 {
			out.Disturbed = append(out.Disturbed, d.name)
		}
	}
	bits, all := 0.0, &job.Histogram{}
	for i := range counts {
		c := &counts[i]
		bits += float64(c.ReceivedBytes) * 8
		if e.profile.Streams[i].Answers == "" { // of those that answer, it is a round trip
			add(all, &c.Latency)
		}
		out.Streams = append(out.Streams, e.stream(e.profile.Streams[i].Name, c, t.Seconds))
	}
	out.GbpsL2 = perSecond(bits, t.Seconds) * 1e-9
	out.GbpsL1 = perSecond(bits+float64(t.Received)*8*wireBytes, t.Seconds) * 1e-9
	out.Latency = e.latency(all)
	return out
}

func perSecond(what, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return what / seconds
}

func (e *Engine) stream(name string, c *job.StreamCount, seconds float64) tester.StreamTrial {
	s := tester.StreamTrial{Name: name, Sent: c.Sent, Refused: c.Refused, Received: c.Received, Lost: c.Lost,
		Duplicate: c.Duplicate, Reordered: c.Reordered, Stale: c.Stale, Wrong: map[string]uint64{},
		Decoded: c.Decoded, ReceivedPPS: perSecond(float64(c.Received), seconds),
		GbpsL2: perSecond(float64(c.ReceivedBytes)*8e-9, seconds),
		GbpsL3: perSecond(float64(c.ReceivedL3Bytes)*8e-9, seconds), Latency: e.latency(&c.Latency)}
	for i, n := range c.Wrong {
		if n > 0 {
			s.Wrong[wrongKinds[i]] = n
		}
	}
	for i := range min(c.WrongKept, job.WrongKept) {
		w := &c.WrongFrame[i]
		kept := min(w.Kept, job.WrongBytes)
		s.WrongFrames = append(s.WrongFrames, tester.WrongFrame{Kind: wrongKinds[min(w.Kind, job.Wrongs-1)],
			Where: text(w.Where[:]), Offset: int(w.Offset), Length: int(w.Length), Flow: int(w.Flow),
			Frame: hex.EncodeToString(w.Frame[:kept]), Expected: hex.EncodeToString(w.Expected[:kept])})
	}
	return s
}

// Histograms: exact up to 63 ticks, then 32 buckets for each doubling.

func add(to, from *job.Histogram) {
	if from.Count == 0 {
		return
	}
	for i, n := range from.Bucket {
		to.Bucket[i] += n
	}
	if to.Count == 0 || from.Min < to.Min {
		to.Min = from.Min
	}
	to.Count, to.Sum, to.Max = to.Count+from.Count, to.Sum+from.Sum, max(to.Max, from.Max)
}

// lowest ticks of a bucket.
func lowest(bucket int) uint64 {
	if bucket < 64 {
		return uint64(bucket)
	}
	top, step := 6+(bucket-64)/32, (bucket-64)%32
	return uint64(32+step) << (top - 5)
}

// highest ticks of a bucket that are in it; the last has no end of its own.
func highest(h *job.Histogram, bucket int) uint64 {
	if bucket+1 == job.Buckets {
		return h.Max
	}
	return lowest(bucket+1) - 1
}

// quantile is the value at or below which the given part (0..1) of all lies, as the upper end of its bucket.
func quantile(h *job.Histogram, part float64) uint64 {
	want, below := max(1, uint64(math.Ceil(part*float64(h.Count)))), uint64(0)
	for i, n := range h.Bucket {
		if below += n; n > 0 && below >= want {
			return min(highest(h, i), h.Max)
		}
	}
	return h.Max
}

func (e *Engine) latency(h *job.Histogram) *tester.Histogram {
	us := func(ticks uint64) float64 {
		if e.ready.TSCHz <= 0 {
			return 0
		}
		return float64(ticks) / e.ready.TSCHz * 1e6
	}
	out := &tester.Histogram{Count: h.Count, Max: us(h.Max), P50: us(quantile(h, 0.5)), P90: us(quantile(h, 0.9)),
		P99: us(quantile(h, 0.99)), P999: us(quantile(h, 0.999))}
	if h.Count > 0 {
		out.Min, out.Mean = us(h.Min), us(h.Sum)/float64(h.Count)
	}
	for i, n := range h.Bucket {
		if n > 0 {
			high := highest(h, i)
			out.Buckets = append(out.Buckets, [3]float64{us(lowest(i)), us(high), float64(n)})
		}
	}
	return out
}

// bare is a trial without the buckets of its histograms.
func bare(t *tester.Trial) tester.Trial {
	without := func(h *tester.Histogram) *tester.Histogram {
		if h == nil {
			return nil
		}
		short := *h
		short.Buckets = nil
		return &short
	}
	out := *t
	out.Latency, out.Streams = without(t.Latency), nil
	for _, s := range t.Streams {
		s.Latency = without(s.Latency)
		out.Streams = append(out.Streams, s)
	}
	return out
}

// wrongOf adds up the kinds of a stream's wrong packets.
func wrongOf(s *tester.StreamTrial) (n uint64) {
	for _, kind := range s.Wrong {
		n += kind
	}
	return n
}

// bytesOf groups the hexadecimal digits of a frame by eight bytes, up to a bound.
func bytesOf(digits string, most int) string {
	var b strings.Builder
	for i := 0; i < min(len(digits)/2, most); i++ {
		if i > 0 && i%8 == 0 {
			b.WriteByte(' ')
		}
		b.WriteString(digits[2*i : 2*i+2])
	}
	if len(digits)/2 > most {
		b.WriteString(" ...")
	}
	return b.String()
}
