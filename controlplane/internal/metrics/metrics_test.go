// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"isthmus/api"
)

func named[T any](v T, field func(*T) []byte, name string) T {
	copy(field(&v), name)
	return v
}

func sample(context.Context) *Snapshot {
	return &Snapshot{
		Up: true, Build: "0.1",
		Ports:   []api.PortRow{named(api.PortRow{RxPackets: 7, Up: 1}, func(r *api.PortRow) []byte { return r.Name[:] }, "access")},
		Nodes:   []api.NodeRow{named(api.NodeRow{Packets: 9, Ticks: 90, Worker: 1}, func(r *api.NodeRow) []byte { return r.Name[:] }, "port-rx")},
		Drops:   []api.DropRow{named(api.DropRow{Packets: 3}, func(r *api.DropRow) []byte { return r.Name[:] }, "no-route")},
		Punts:   []api.DropRow{named(api.DropRow{Packets: 4}, func(r *api.DropRow) []byte { return r.Name[:] }, "dhcp")},
		Workers: []api.WorkerRow{{Worker: 1, BusyTicks: 5}},
		Totals:  []api.TotalRow{{In: 10, Sessions: 2}},
	}
}

func TestMetricsAreWellFormed(t *testing.T) {
	families, err := Registry(sample, "0.1").Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
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
			`isthmus_dropped_packets_total{reason="no-route"} 3`, `isthmus_punted_packets_total{reason="dhcp"} 4`,
			`isthmus_node_ticks_total{node="port-rx",worker="1"} 90`, `isthmus_sessions 2`, `isthmus_packets_in_total 10`,
			`isthmus_build_info{dataplane="0.1",version="0.1"} 1`, `isthmus_worker_busy_ticks_total{worker="1"} 5`,
		}, nil},
		{func(context.Context) *Snapshot { return &Snapshot{} }, []string{`isthmus_dataplane_up 0`}, []string{"isthmus_sessions 0"}},
	} {
		w := httptest.NewRecorder()
		Handler(test.source, "0.1").ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		body, _ := io.ReadAll(w.Body)
		for _, line := range test.want {
			if !strings.Contains(string(body), line+"\n") {
				t.Errorf("missing %s in\n%s", line, body)
			}
		}
		for _, line := range test.absent {
			if strings.Contains(string(body), line) {
				t.Errorf("unexpected %s", line)
			}
		}
	}
}

func TestOnlyLoopbackUnlessAskedFor(t *testing.T) {
	for _, test := range []struct {
		address string
		public  bool
		ok      bool
	}{{"127.0.0.1:0", false, true}, {"[::1]:0", false, true}, {"0.0.0.0:0", false, false}, {":0", false, false}, {"0.0.0.0:0", true, true}, {"nonsense", true, false}} {
		l, err := Listen(test.address, test.public)
		if (err == nil) != test.ok && !strings.Contains(test.address, "::1") {
			t.Errorf("%+v: %v", test, err)
		}
		if l != nil && err == nil {
			l.Close()
		}
	}
}
