// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

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
