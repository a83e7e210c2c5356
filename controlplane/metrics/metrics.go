// SPDX-License-Identifier: Apache-2.0

// Package metrics exports the data plane's counters to Prometheus. No label grows with the number of subscribers.
package metrics

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"isthmus/api"
	"isthmus/controlplane/httpd"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/view"
)

// Snapshot is the figures of one moment. Up is false, and the rest empty, while the data plane is away.
type Snapshot struct {
	Up         bool
	Connects   uint64  // to the data plane
	Ends       uint64  // of data planes that the control plane starts
	Build      string  // version of the data plane
	Shown      []Shown // what has figures of its own
	Nodes      []api.NodeRow
	Holders    []api.HolderRow
	Traffic    []api.TrafficRow
	Schedulers []api.SchedulerRow // of whole subports
	Processes  []Process          // ours; the data plane's while it is connected
	StoreBytes uint64             // of the sessions' store; 0: no store
	// SnapshotsFailed counts failed snapshots of usage: one count, none without sessions.
	SnapshotsFailed []uint64
	// IgnoredRoutes are the kernel's that are not followed, by reason.
	IgnoredRoutes []n4.Count
	Refused       []n4.Count // connections that the control plane's own listeners turned away
	SignIns       *SignIns   // nil: no sign-in
	PFCP          *n4.Stats  // nil: there is no PFCP; the data plane may be away and this be here
}

// Shown is a table of show and what its Get returned.
type Shown struct {
	Table *view.Table
	Rows  any
}

// Source returns a recent snapshot; it is expected to bound how often it asks the data plane.
type Source func(ctx context.Context) *Snapshot

// family is one metric whose samples come from rows of type R.
type family[R any] struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*R) float64
}

type number interface {
	int | uint32 | uint64 | float64
}

func counter[R any, N number](name, help string, labels []string, value func(*R) N) family[R] {
	desc := prometheus.NewDesc("isthmus_"+name, help, labels, nil)
	return family[R]{desc, prometheus.CounterValue, func(r *R) float64 { return float64(value(r)) }}
}

func gauge[R any, N number](name, help string, labels []string, value func(*R) N) family[R] {
	f := counter(name, help, labels, value)
	f.kind = prometheus.GaugeValue
	return f
}

func emit[R any](ch chan<- prometheus.Metric, families []family[R], rows []R, labels func(*R) []string) {
	for i := range rows {
		l := labels(&rows[i])
		for _, f := range families {
			ch <- prometheus.MustNewConstMetric(f.desc, f.kind, f.value(&rows[i]), l...)
		}
	}
}

var (
	byReason = []string{"reason"}
	byNode   = []string{"node", "worker"}
	byHolder = []string{"holder"}
)

var nodes = []family[api.NodeRow]{
	counter("node_packets_total", "Packets that went through the node.", byNode,
		func(r *api.NodeRow) uint64 { return r.Packets }),
	counter("node_calls_total", "Times that the node ran.", byNode, func(r *api.NodeRow) uint64 { return r.Calls }),
	counter("node_ticks_total", "TSC ticks spent in the node.", byNode, func(r *api.NodeRow) uint64 { return r.Ticks }),
}

var ignoredRoutes = []family[n4.Count]{gauge("ignored_routes",
	"Routes of the kernel's that are not followed, or only by some of their next hops.", []string{"reason"},
	func(c *n4.Count) uint64 { return c.Value })}

var snapshotsFailed = []family[uint64]{counter("usage_snapshots_failed_total",
	"Snapshots of what sessions have used that could not be made.", nil, func(n *uint64) uint64 { return *n })}

var refused = counted("refused_connections_total",
	"Connections to the control plane that were closed at once: too many were open.", []string{"listener"})

var holders = []family[api.HolderRow]{
	gauge("buffers_held", "Packet buffers that one kind of queue holds now.", byHolder,
		func(r *api.HolderRow) uint64 { return r.Held }),
	gauge("buffers_held_limit", "Packet buffers that it may hold.", byHolder,
		func(r *api.HolderRow) uint64 { return r.Limit }),
}

// descs are those of the figures of tables.
var descs = map[*view.Figure]*prometheus.Desc{}

func init() {
	for _, t := range view.Tables {
		for i := range t.Figures {
			f := &t.Figures[i]
			descs[f] = prometheus.NewDesc("isthmus_"+f.Name, f.Help, f.Labels, nil)
		}
	}
}

func emitShown(ch chan<- prometheus.Metric, s *Shown) {
	s.Table.Samples(s.Rows, func(f *view.Figure, value float64, labels []string) {
		kind := prometheus.GaugeValue
		if strings.HasSuffix(f.Name, "_total") {
			kind = prometheus.CounterValue
		}
		ch <- prometheus.MustNewConstMetric(descs[f], kind, value, labels...)
	})
}

var (
	upDesc       = prometheus.NewDesc("isthmus_dataplane_up", "1 while the data plane is connected.", nil, nil)
	connectsDesc = prometheus.NewDesc("isthmus_dataplane_connects_total", "Connections to the data plane.", nil,
		nil)
	endsDesc = prometheus.NewDesc("isthmus_dataplane_ends_total",
		"Times that the data plane ended, or did not start, where the control plane starts it.", nil, nil)
	buildDesc = prometheus.NewDesc("isthmus_build_info", "Versions; the value is always 1.",
		[]string{"version", "dataplane"}, nil)
)

type collector struct {
	source  Source
	version string
}

// Describe names no metric beforehand: those that there are depend on the snapshot.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

func (c *collector) Collect(ch chan<- prometheus.Metric) {
	s := c.source(context.Background())
	up := 0.0
	if s.Up {
		up = 1
	}
	ch <- prometheus.MustNewConstMetric(upDesc, prometheus.GaugeValue, up)
	ch <- prometheus.MustNewConstMetric(connectsDesc, prometheus.CounterValue, float64(s.Connects))
	ch <- prometheus.MustNewConstMetric(endsDesc, prometheus.CounterValue, float64(s.Ends))
	ch <- prometheus.MustNewConstMetric(buildDesc, prometheus.GaugeValue, 1, c.version, s.Build)
	for i := range s.Shown {
		emitShown(ch, &s.Shown[i])
	}
	emit(ch, nodes, s.Nodes, func(r *api.NodeRow) []string {
		return []string{api.CString(r.Name[:]), text(r.Worker)}
	})
	emit(ch, holders, s.Holders, func(r *api.HolderRow) []string { return []string{api.CString(r.Name[:])} })
	emit(ch, traffic, directions(s.Traffic), func(d *direction) []string { return d.labels })
	emit(ch, schedulers, ByClass(s.Schedulers), func(q *SchedulerClass) []string {
		return []string{q.Port, q.Class}
	})
	emit(ch, processes, s.Processes, func(p *Process) []string { return []string{p.Name} })
	if s.PFCP != nil {
		ch <- prometheus.MustNewConstMetric(storeDesc, prometheus.GaugeValue, float64(s.StoreBytes))
	}
	emit(ch, snapshotsFailed, s.SnapshotsFailed, func(*uint64) []string { return nil })
	emit(ch, refused, s.Refused, func(c *n4.Count) []string { return []string{c.Name} })
	emit(ch, ignoredRoutes, s.IgnoredRoutes, func(c *n4.Count) []string { return []string{c.Name} })
	if s.PFCP != nil {
		emitPFCP(ch, s)
	}
	if s.SignIns != nil {
		emitSignIns(ch, s.SignIns)
	}
}

func text(v uint32) string { return strconv.FormatUint(uint64(v), 10) }

// Registry returns a registry of the source's figures and of additional measurements.
func Registry(source Source, version string, measured ...prometheus.Collector) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(&collector{source, version})
	r.MustRegister(measured...)
	return r
}

// Handler serves /metrics.
func Handler(source Source, version string, measured ...prometheus.Collector) http.Handler {
	mux := http.NewServeMux()
	registry := Registry(source, version, measured...)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	return mux
}

// Listen opens the metrics address. Counters reveal much about a network, and there is no password: an address that
// other machines can reach needs the option.
func Listen(address string, public bool) (net.Listener, error) {
	return httpd.ListenLocal("metrics", address, public, "--metrics-public")
}
