// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"isthmus/api"
	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/metrics"
	"isthmus/controlplane/testkit"
)

// Metrics whose values are of the machine or of the control plane's own history.
var notOfTables = regexp.MustCompile(
	`^(# \w+ )?(isthmus_(build|dataplane_(connects|ends|up)|ignored|pfcp|process|refused_conn|store|usage)|` +
		`fivegs|pfcp_)`)

// Names, texts and labels of metrics are promises: every field of a row has a number of its own.
func TestMetricsFile(t *testing.T) {
	s := dptest.Start(t)
	fill(s)
	a, _ := launchMobile(t, s, t.TempDir(), pfcpConfig(t)+instances+"nat_log: {syslog: [127.0.0.1]}\n")
	w := httptest.NewRecorder()
	metrics.Handler(a.scraper.Snapshot, "x").ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	var got strings.Builder
	for line := range strings.Lines(w.Body.String()) {
		if !notOfTables.MatchString(line) {
			got.WriteString(line)
		}
	}
	testkit.Golden(t, "testdata/metrics.txt", got.String())
}

// A gateway is ready while a data plane holds its configuration; without one its control plane is alive all the same.
func TestProbes(t *testing.T) {
	s := dptest.Start(t)
	s.SetTable(api.TablePort, api.Body(&api.PortRow{Up: 1}))
	s.SetTable(api.TableWorker, api.Body(&api.WorkerRow{Walks: 1}))
	a := launch(t, s, &plan.Plan{})
	testkit.Until(t, "ready", ready(a))
	get := func(path string) string {
		w := httptest.NewRecorder()
		a.scraped().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return fmt.Sprint(w.Code, " ", w.Body)
	}
	testkit.Equal(t, get("/readyz"), "200 [+]control ok\n[+]data plane ok\n[+]configuration ok\n[+]workers ok\n"+
		"[+]ports ok\ncheck passed\n", "ready")
	testkit.Must(t, a.owner.Drain(t.Context(), v1.Drain{Since: time.Now()}))
	drained := func() bool { return strings.Contains(get("/readyz"), "[-]service failed: it is drained") }
	testkit.Until(t, "drained", drained)
	s.Kill()
	testkit.Until(t, "not ready", func() bool { return strings.Contains(get("/readyz"), "[-]data plane failed: ") })
	testkit.Equal(t, get("/livez"), "200 [+]control ok\ncheck passed\n", "live")
	testkit.ErrorIf(t, !strings.Contains(get("/metrics"), "isthmus_dataplane_up 0"), "no metrics beside probes")
}
