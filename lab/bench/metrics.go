// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"isthmus/lab/tester"
)

// probeBounds are the ends of the buckets, in seconds: 1 µs to 65 ms.
var probeBounds = prometheus.ExponentialBuckets(1e-6, 2, 17)

var probeDesc = prometheus.NewDesc("isthmus_probe_latency_seconds",
	"Time from the tester's sending a packet to its receiving it, one way through the gateway.",
	[]string{"profile", "link", "point", "load", "direction"}, nil)

// probes are the histograms of latency of a result.
type probes struct{ *LinkResult }

// WriteMetrics writes the latency of the tester's probes as Prometheus's text, in one step.
func (r *LinkResult) WriteMetrics(file string) error {
	registry := prometheus.NewRegistry()
	if err := registry.Register(probes{r}); err != nil {
		return err
	}
	return prometheus.WriteToTextfile(file, registry)
}

// Describe is of prometheus.Collector.
func (p probes) Describe(ch chan<- *prometheus.Desc) { ch <- probeDesc }

// Collect is of prometheus.Collector.
func (p probes) Collect(ch chan<- prometheus.Metric) {
	for i := range p.Points {
		for _, l := range p.Points[i].Latency {
			for direction, h := range map[string]*tester.Histogram{"uplink": l.Uplink, "downlink": l.Downlink} {
				if h != nil {
					ch <- probeMetric(h, p.Profile, p.Link, p.Points[i].Name, fmt.Sprintf("%.2f", l.Load), direction)
				}
			}
		}
	}
}

// probeMetric puts each fine bucket, in microseconds, into the first bucket that holds all of it.
func probeMetric(h *tester.Histogram, labels ...string) prometheus.Metric {
	below := make(map[float64]uint64, len(probeBounds))
	for _, bound := range probeBounds {
		below[bound] = 0
		for _, b := range h.Buckets {
			if b[1] <= bound*1e6*(1+1e-9) {
				below[bound] += uint64(b[2])
			}
		}
	}
	return prometheus.MustNewConstHistogram(probeDesc, h.Count, h.Mean*1e-6*float64(h.Count), below, labels...)
}
