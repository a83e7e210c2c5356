// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"isthmus/controlplane/measure"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/view"
)

const maxDNNs = 16 // that are drawn; more are one line, "other"

// rates makes figures per second of counters. A counter's first value gives none; nor does a decreased one, since the
// data plane restarted.
type rates struct {
	before, now map[string]uint64
	at          time.Time
	seconds     float64
}

func (r *rates) begin(now time.Time) {
	r.seconds = now.Sub(r.at).Seconds()
	r.at, r.before, r.now = now, r.now, make(map[string]uint64, len(r.now))
}

// delta is how far a counter went since the sample before.
func (r *rates) delta(key string, count uint64) (uint64, bool) {
	r.now[key] = count
	before, ok := r.before[key]
	return count - before, ok && count >= before
}

// own is delta of a counter of this process. A counter new to the samples counts from 0.
func (r *rates) own(key string, count uint64) (uint64, bool) {
	d, ok := r.delta(key, count)
	_, known := r.before[key]
	return d, ok || !known && len(r.before) > 0
}

func (r *rates) rate(key string, count uint64) float32 {
	d, ok := r.delta(key, count)
	if !ok || r.seconds <= 0 {
		return unknown
	}
	return float32(float64(d) / r.seconds)
}

// fetch asks the source for a table whose rows have a type.
func fetch[T any](ctx context.Context, src Source, table, key string, limit uint32) (T, error) {
	var none T
	v, err := src.Table(ctx, table, key, limit)
	if err != nil {
		return none, err
	}
	t, ok := v.(T)
	if !ok {
		return none, fmt.Errorf("table %s has rows of %T", table, v)
	}
	return t, nil
}

// sampler turns the tables of one moment into figures. Run owns it.
type sampler struct {
	src     Source
	signIns func() map[string]measure.Timing // nil: no sign-in
	rates   rates
	list    []figure
}

func (s *sampler) put(keep bool, group, name string, v float32) {
	s.list = append(s.list, figure{group, name, v, keep})
}

// sample returns the figures of now, which are good until the next call.
func (s *sampler) sample(ctx context.Context, now time.Time) ([]figure, error) {
	s.list = s.list[:0]
	s.rates.begin(now)
	s.pfcp(ctx)
	if s.signIns != nil {
		s.phases(s.signIns())
	}
	for _, part := range []func(context.Context) error{s.ports, s.total, s.dnns, s.drops,
		s.workers, s.graph} {
		if err := part(ctx); err != nil {
			return s.list, err
		}
	}
	return s.list, nil
}

func (s *sampler) ports(ctx context.Context) error {
	rows, err := fetch[[]view.Port](ctx, s.src, "port", "", 0)
	for i := range rows {
		p := &rows[i]
		for _, way := range []struct {
			name           string
			packets, bytes uint64
		}{{p.Name + " in", p.RxPackets, p.RxBytes}, {p.Name + " out", p.TxPackets, p.TxBytes}} {
			s.put(true, "bps", way.name, 8*s.rates.rate("b "+way.name, way.bytes))
			s.put(true, "pps", way.name, s.rates.rate("p "+way.name, way.packets))
		}
		lost := s.rates.rate("lost "+p.Name, p.RxMissed+p.RxNoBuffer+p.TxDropped)
		if lost > 0 || p.RxMissed+p.RxNoBuffer+p.TxDropped > 0 {
			s.put(true, "drop", "port "+p.Name+": ring full or no buffer", lost)
		}
	}
	return err
}

func (s *sampler) total(ctx context.Context) error {
	t, err := fetch[view.Total](ctx, s.src, "total", "", 0)
	if err != nil {
		return err
	}
	s.put(true, "total", "in", s.rates.rate("t in", t.In))
	s.put(true, "total", "out", s.rates.rate("t out", t.Out))
	s.put(true, "total", "dropped", s.rates.rate("t dropped", t.Dropped))
	s.put(true, "sessions", "sessions", float32(t.Sessions))
	if t.Buffers > 0 {
		s.put(true, "buffers", "in use", 100*float32(t.Buffers-t.BuffersFree)/float32(t.Buffers))
	}
	return nil
}

// dnns are sums of the rows of traffic, whose order stays.
func (s *sampler) dnns(ctx context.Context) error {
	rows, err := fetch[[]view.Traffic](ctx, s.src, "traffic", "", 0)
	var names []string
	up, down := map[string]uint64{}, map[string]uint64{}
	for i := range rows {
		name := cmp.Or(rows[i].DNN, "no DNN")
		if _, known := up[name]; rows[i].Other || !known && len(names) == maxDNNs {
			name = "other"
		}
		if _, known := up[name]; !known {
			names = append(names, name)
		}
		up[name] += rows[i].UplinkBytes
		down[name] += rows[i].DownlinkBytes
	}
	for _, name := range names {
		if up[name]+down[name] > 0 {
			s.put(true, "dnn", name+" up", 8*s.rates.rate("dnn up "+name, up[name]))
			s.put(true, "dnn", name+" down", 8*s.rates.rate("dnn down "+name, down[name]))
		}
	}
	return err
}

// drops leaves out the reasons that never happened.
func (s *sampler) drops(ctx context.Context) error {
	rows, err := fetch[[]view.Reason](ctx, s.src, "drop", "", 0)
	served := uint64(0)
	for i := range rows {
		if view.Served(rows[i].Name) {
			served += rows[i].Packets
		}
		if r := &rows[i]; r.Packets > 0 {
			s.put(true, "drop", r.Name, s.rates.rate("d "+r.Name, r.Packets))
		} else {
			s.rates.delta("d "+r.Name, 0)
		}
	}
	if err == nil {
		s.put(false, "total", "served", s.rates.rate("d served", served))
	}
	return err
}

func (s *sampler) workers(ctx context.Context) error {
	rows, err := fetch[[]view.Worker](ctx, s.src, "worker", "", 0)
	for i := range rows {
		w, load := &rows[i], unknown
		name := strconv.Itoa(int(w.Worker))
		busy, ok := s.rates.delta("busy "+name, w.BusyTicks)
		idle, also := s.rates.delta("idle "+name, w.IdleTicks)
		if ok && also && busy+idle > 0 {
			load = float32(100 * float64(busy) / float64(busy+idle))
		}
		s.put(true, "load", "worker "+name, load)
	}
	return err
}

func (s *sampler) graph(ctx context.Context) error {
	g, err := fetch[*view.Graph](ctx, s.src, "graph", "", 0)
	if err != nil {
		return err
	}
	rate := make(map[string]float64, len(g.Nodes))
	for i := range g.Nodes {
		n := &g.Nodes[i]
		pps := s.rates.rate("n "+n.Name, n.Packets)
		packets, _ := s.rates.delta("n "+n.Name, n.Packets)
		ticks, ok := s.rates.delta("nt "+n.Name, n.Ticks)
		cost := unknown
		if ok && packets > 0 {
			cost = float32(float64(ticks) / float64(packets))
		}
		if !isUnknown(pps) {
			rate[n.Name] = float64(pps)
		}
		s.put(false, "node", n.Name, pps)
		s.put(false, "ticks", n.Name, cost)
	}
	for _, f := range edgeFlows(g.Edges, rate) {
		s.put(false, "edge", f.From+" > "+f.To, f.pps)
	}
	return nil
}

// pfcp is known while the data plane is away, too.
func (s *sampler) pfcp(ctx context.Context) {
	v, err := fetch[*n4.Snapshot](ctx, s.src, "n4", "", 0)
	if err != nil || v.NodeID == "" {
		return // this gateway speaks no PFCP
	}
	sum := func(m map[string]uint64) (n uint64) {
		for _, c := range m {
			n += c
		}
		return n
	}
	s.put(true, "pfcp", "received", s.rates.rate("pfcp received", sum(v.Received)))
	s.put(true, "pfcp", "sent", s.rates.rate("pfcp sent", sum(v.Sent)))
	s.put(true, "pfcp", "refused", s.rates.rate("pfcp refused", sum(v.Rejected)))
	s.took(v.Took)
}

// took are mean times of requests by message, in ms, and the 99th percentile of all.
func (s *sampler) took(all map[string]measure.Timing) {
	var second histogram // of all messages
	for message, t := range all {
		name := strings.TrimSuffix(strings.TrimPrefix(message, "session-"), "-request")
		n, ok := s.rates.own("took n "+name, t.Requests)
		us, _ := s.rates.own("took us "+name, uint64(1e6*t.Seconds))
		mean := unknown
		if ok && n > 0 {
			mean = float32(us) / float32(n) / 1000
		}
		s.put(true, "latency", name+", mean", mean)
		second.add(&s.rates, "took "+name, &t)
	}
	if len(all) > 0 {
		s.put(true, "latency", "99 % of all", second.within(99))
	}
}

// phases are a second's sign-in durations, in ms: of each phase the 99th percentile, and the median of the whole.
func (s *sampler) phases(all map[string]measure.Timing) {
	for phase, t := range all {
		var second histogram
		second.add(&s.rates, "phase "+phase, &t)
		s.put(true, "signin", phase+", 99 %", second.within(99))
		if phase == "total" {
			s.put(true, "signin", phase+", median", second.within(50))
		}
	}
}

// histogram is what was counted since the sample before.
type histogram struct {
	requests uint64
	buckets  []measure.Bucket
}

func (h *histogram) add(r *rates, key string, t *measure.Timing) {
	if n, ok := r.own(key+" all", t.Requests); ok {
		h.requests += n
	}
	for i, b := range t.Buckets {
		if i == len(h.buckets) {
			h.buckets = append(h.buckets, measure.Bucket{Seconds: b.Seconds})
		}
		if n, ok := r.own(key+strconv.Itoa(i), b.Requests); ok {
			h.buckets[i].Requests += n
		}
	}
}

// within is a percentile in ms: the end of a bucket.
func (h *histogram) within(percent uint64) float32 {
	for _, b := range h.buckets {
		if h.requests > 0 && 100*b.Requests >= percent*h.requests {
			return float32(1000 * b.Seconds)
		}
	}
	return unknown
}
