// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"io"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"isthmus/api"
	"isthmus/controlplane/measure"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/testkit"
	"isthmus/controlplane/view"
)

func named[T any](v T, field func(*T) []byte, name string) T {
	copy(field(&v), name)
	return v
}

func shown(table string, rows any) Shown { return Shown{view.Lookup(table), rows} }

// others are the tables with figures that are not there, each with a row of zeros.
func others(there []Shown) (list []Shown) {
	for _, table := range view.Tables {
		is := func(s Shown) bool { return s.Table == table }
		if len(table.Figures) == 0 || slices.ContainsFunc(there, is) {
			continue
		}
		rows := reflect.MakeSlice(reflect.SliceOf(table.Answer.Elem()), 1, 1)
		list = append(list, Shown{table, rows.Interface()})
	}
	return list
}

func sample(context.Context) *Snapshot {
	some := []Shown{shown("port", []view.Port{{Name: "access", RxPackets: 7, Up: true}}),
		shown("worker", []view.Worker{{Worker: 1, BusyTicks: 5}}),
		shown("total", view.Total{In: 10, Sessions: 2}),
		shown("drop", []view.Reason{{Name: "no-route", Packets: 3}}),
		shown("punt", []view.Reason{{Name: "dhcp", Packets: 4}}),
		shown("nptv6", []view.NPTv6{{Name: "internet", Inside: "fd00::/48", PacketsOut: 13, PacketsIn: 14}}),
		shown("collector", []view.Collector{{Address: "192.0.2.9:514", Protocol: "syslog", State: "down",
			Sent: 3}, {Protocol: "ipfix", State: "up"}})}
	return &Snapshot{
		Up: true, Build: "0.1",
		Shown: append(some, others(some)...),
		Nodes: []api.NodeRow{named(api.NodeRow{Packets: 9, Ticks: 90, Worker: 1},
			func(r *api.NodeRow) []byte { return r.Name[:] }, "port-rx"),
			named(api.NodeRow{Packets: 12}, func(r *api.NodeRow) []byte { return r.Name[:] }, "session-tunnel")},
		Holders: []api.HolderRow{named(api.HolderRow{Held: 3, Limit: 9},
			func(r *api.HolderRow) []byte { return r.Name[:] }, "paging")},
		Schedulers: []api.SchedulerRow{
			named(api.SchedulerRow{Subport: 0, Pipe: 0xffffffff, TrafficClass: 3, Queued: 5,
				DroppedPackets: 7},
				func(r *api.SchedulerRow) []byte { return r.Port[:] }, "access"),
			named(api.SchedulerRow{Subport: 1, Pipe: 0xffffffff, TrafficClass: 3, Queued: 6},
				func(r *api.SchedulerRow) []byte { return r.Port[:] }, "access")},
		Processes: []Process{{Name: "isthmus", Resident: 4096, CPU: 1.5, Files: 9}}, StoreBytes: 64,
		SnapshotsFailed: []uint64{6},
		Traffic: []api.TrafficRow{{Other: 1, QFI: api.NoQFI, UplinkBytes: 5},
			named(api.TrafficRow{QFI: 9, DownlinkPackets: 4, DownlinkBytes: 600, DNN: [32]byte{'i'}},
				func(r *api.TrafficRow) []byte { return r.Instance[:] }, "internet")},
		Refused:       []n4.Count{{Name: "metrics", Value: 1}},
		IgnoredRoutes: []n4.Count{{Name: "device", Value: 6}},
		SignIns:       signIns(),
		PFCP: &n4.Stats{Associations: 2, Failed: 1, Sessions: 5, Retransmissions: 3,
			Received: []n4.Count{{Name: "session-establishment-request", Value: 4}},
			Sent:     []n4.Count{{Name: "session-establishment-response", Value: 1}},
			Events:   []n4.Count{{Name: "associated", Value: 1}},
			Rejected: []n4.Count{{Name: "rate", Value: 1}},
			Answers:  []n4.AnswerCount{{Message: "session-establishment-request", Cause: 64, Value: 1}}},
	}
}

// signIns has a row of each family, with a label's own name as its value.
func signIns() *SignIns {
	s := &SignIns{RoundTrips: []RoundTrips{{Server: "one", Use: "accounting", Count: 1, Seconds: 0.1,
		Buckets: map[float64]uint64{1: 1}}}}
	for list, labels := range map[*[]Labelled]string{&s.On: "kind state", &s.Failures: "reason", &s.Ended: "cause",
		&s.Frames: "served", &s.PoolUsed: "pool", &s.PoolSize: "pool", &s.Requests: "server use outcome",
		&s.SignedIn: "", &s.Waiting: "", &s.Running: "", &s.AccountingWaiting: "", &s.AccountingDropped: "what",
		&s.Protocol: "protocol what", &s.Changes: "outcome", &s.Ignored: "attribute", &s.Replaced: "",
		&s.ReportsLost: "", &s.FramesLost: "", &s.ServersUp: "server use", &s.Dropped: "server use reason"} {
		*list = []Labelled{{Labels: strings.Fields(labels), Value: 17}}
	}
	return s
}

func TestMetricsAreWellFormed(t *testing.T) {
	measured := measure.New()
	measured.Request("x", 1)
	measured.OwnRequest("x", 1)
	measured.Depth("x", "0", 1)
	families, err := Registry(sample, "0.1", measured).Gather()
	testkit.Must(t, err)
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	testkit.Must(t, err)
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "fivegs_") { // names that others chose
			continue
		}
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestScrape(t *testing.T) {
	for _, test := range []struct {
		source Source
		want   []string
		absent []string
	}{
		{sample, []string{
			`isthmus_dataplane_up 1`, `isthmus_port_receive_packets_total{port="access"} 7`,
			`isthmus_port_up{port="access"} 1`,
			`isthmus_nat_log_up{collector="192.0.2.9:514",protocol="syslog"} 0`,
			`isthmus_nat_log_up{collector="",protocol="ipfix"} 1`,
			`isthmus_ignored_routes{reason="device"} 6`,
			`isthmus_dropped_packets_total{reason="no-route"} 3`, `isthmus_punted_packets_total{reason="dhcp"} 4`,
			`isthmus_nptv6_out_packets_total{inside="fd00::/48",instance="internet"} 13`,
			`isthmus_nptv6_in_packets_total{inside="fd00::/48",instance="internet"} 14`,
			`isthmus_traffic_bytes_total{direction="uplink",dnn="other",instance="other",qfi="other"} 5`,
			`isthmus_traffic_bytes_total{direction="downlink",dnn="i",instance="internet",qfi="9"} 600`,
			`isthmus_traffic_packets_total{direction="downlink",dnn="i",instance="internet",qfi="9"} 4`,
			`isthmus_scheduler_queued_packets{port="access",traffic_class="3"} 11`,
			`isthmus_scheduler_dropped_packets_total{port="access",traffic_class="3"} 7`,
			`isthmus_process_resident_bytes{process="isthmus"} 4096`,
			`isthmus_process_open_files{process="isthmus"} 9`,
			`isthmus_process_busy_seconds_total{process="isthmus"} 1.5`, `isthmus_store_bytes 64`,
			`isthmus_usage_snapshots_failed_total 6`,
			`isthmus_node_ticks_total{node="port-rx",worker="1"} 90`, `isthmus_sessions 2`,
			`isthmus_packets_in_total 10`,
			`isthmus_build_info{dataplane="0.1",version="0.1"} 1`, `isthmus_worker_busy_ticks_total{worker="1"} 5`,
			`isthmus_buffers_held{holder="paging"} 3`, `isthmus_buffers_held_limit{holder="paging"} 9`,
			`isthmus_pfcp_associations 2`, `isthmus_pfcp_sessions 5`,
			`isthmus_pfcp_received_messages_total{message="session-establishment-request"} 4`,
			`isthmus_pfcp_retransmissions_total 3`,
			`isthmus_pfcp_answers_total{cause="64",message="session-establishment-request"} 1`,
			`isthmus_pfcp_dropped_messages_total{reason="rate"} 1`, `fivegs_upffunction_upf_sessionnbr 5`,
			`fivegs_upffunction_sm_n4sessionestabreq 4`, `pfcp_peers_active 1`, `fivegs_ep_n3_gtp_indatapktn3upf 12`,
		}, nil},
		{func(context.Context) *Snapshot { return &Snapshot{PFCP: &n4.Stats{Sessions: 3}} },
			[]string{`isthmus_dataplane_up 0`, `isthmus_pfcp_sessions 3`},
			[]string{"fivegs_ep_n3"}},
		{func(context.Context) *Snapshot { return &Snapshot{} }, []string{`isthmus_dataplane_up 0`},
			[]string{"isthmus_sessions 0", "pfcp_", "fivegs_"}},
	} {
		w := httptest.NewRecorder()
		Handler(test.source, "0.1").ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		body, _ := io.ReadAll(w.Body)
		for _, line := range test.want {
			testkit.ErrorIf(t, !strings.Contains(string(body), line+"\n"), "missing %s in\n%s", line, body)
		}
		for _, line := range test.absent {
			testkit.ErrorIf(t, strings.Contains(string(body), line), "unexpected %s", line)
		}
	}
}

func TestOnlyLoopbackUnlessAskedFor(t *testing.T) {
	for _, test := range []struct {
		address string
		public  bool
		ok      bool
	}{{"127.0.0.1:0", false, true}, {"[::1]:0", false, true}, {"0.0.0.0:0", false, false}, {":0", false,
		false}, {"0.0.0.0:0", true, true}, {"nonsense", true, false}} {
		l, err := Listen(test.address, test.public)
		testkit.ErrorIf(t, (err == nil) != test.ok && !strings.Contains(test.address, "::1"),
			"%+v: %v", test, err)
		if l != nil && err == nil {
			l.Close()
		}
	}
}

// Row M1 of the hostile inputs: the open address changes nothing.
func TestMetricsAreReadOnly(t *testing.T) {
	for _, test := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/metrics", 200}, {"HEAD", "/metrics", 200}, {"POST", "/metrics", 405}, {"DELETE", "/metrics", 405},
		{"GET", "/", 404}, {"GET", "/v1/status", 404}, {"POST", "/v1/config/apply", 404}, {"GET", "/debug/pprof/", 404},
	} {
		w := httptest.NewRecorder()
		Handler(sample, "0.1").ServeHTTP(w, httptest.NewRequest(test.method, test.path, nil))
		testkit.ErrorIf(t, w.Code != test.status,
			"%s %s: %d, not %d", test.method, test.path, w.Code, test.status)
	}
}

// Row M4: labels have few values, whatever peers and subscribers send.
func TestNoLabelGrows(t *testing.T) {
	few := []string{"port", "reason", "node", "worker", "instance", "event", "message", "cause", "version",
		"dataplane", "holder", "mirror", "counter", "inside", "process", "traffic_class",
		"listener", "dnn", "qfi", "direction", // DNNs: limits.traffic
		// Of the configuration, or of a fixed list; attributes: aaa keeps 256.
		"kind", "state", "served", "pool", "server", "use", "outcome", "what", "protocol", "attribute",
		"collector", "interface"}
	families, err := Registry(sample, "0.1").Gather()
	testkit.Must(t, err)
	labels := 0
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				labels++
				if !slices.Contains(few, label.GetName()) {
					t.Errorf("%s has the label %s", family.GetName(), label.GetName())
				}
			}
		}
	}
	testkit.ErrorIf(t, labels == 0, "no labels at all")
}
