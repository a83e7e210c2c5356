// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
	"isthmus/lab/tester"
)

func TestWriteMetrics(t *testing.T) {
	h := &tester.Histogram{Count: 10, Mean: 3, Buckets: [][3]float64{{0.5, 1, 4}, {1.5, 1.6, 3}, {90, 100000, 3}}}
	r := &LinkResult{Common: Common{Profile: "upf", Link: "memif"}, Points: []Point{{Name: "mix",
		Latency: []LoadLatency{{Load: 0.5, Uplink: h}}}}}
	file := filepath.Join(t.TempDir(), "probe.prom")
	testkit.Must(t, r.WriteMetrics(file))
	text, err := os.ReadFile(file)
	testkit.Must(t, err)
	labels := `direction="uplink",link="memif",load="0.50",point="mix",profile="upf"`
	for _, line := range []string{
		"# TYPE isthmus_probe_latency_seconds histogram",
		"isthmus_probe_latency_seconds_bucket{" + labels + `,le="1e-06"} 4`,
		"isthmus_probe_latency_seconds_bucket{" + labels + `,le="2e-06"} 7`,
		"isthmus_probe_latency_seconds_bucket{" + labels + `,le="0.065536"} 7`,
		"isthmus_probe_latency_seconds_bucket{" + labels + `,le="+Inf"} 10`,
		"isthmus_probe_latency_seconds_count{" + labels + "} 10",
	} {
		testkit.ErrorIf(t, !strings.Contains(string(text), line+"\n"), "missing %s in\n%s", line, text)
	}
	testkit.ErrorIf(t, r.WriteMetrics(filepath.Join(t.TempDir(), "no", "folder")) == nil, "written nowhere")
}
