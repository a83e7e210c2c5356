// SPDX-License-Identifier: Apache-2.0

// Package measure has the histograms of the control plane: duration of requests, size of batches, length of queues.
// They are native Prometheus histograms, and classic ones in text scrapes. A nil Set measures nothing.
package measure

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Set is the histograms of one process. Observations may come from any goroutine.
type Set struct {
	requests, own *prometheus.HistogramVec
	signIn        *prometheus.HistogramVec
	depth         *prometheus.HistogramVec
	commit, write prometheus.Histogram
	batch, queue  prometheus.Histogram
	collectors    []prometheus.Collector
}

// Classic buckets: of seconds 100 µs to 10 s, of requests 1 to 65,536. A series has 16 of them, and the native one is
// bounded.
var (
	seconds = []float64{1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}
	counts  = append([]float64{0}, prometheus.ExponentialBuckets(1, 4, 9)...)
)

func options(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name: "isthmus_" + name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
		NativeHistogramMinResetDuration: time.Hour,
	}
}

// New makes a set of which nothing was measured.
func New() *Set {
	message := []string{"message"}
	s := &Set{
		requests: prometheus.NewHistogramVec(options("pfcp_request_seconds",
			"Time from reading a session request to its answer.", seconds), message),
		own: prometheus.NewHistogramVec(options("pfcp_own_request_seconds",
			"Time from sending a request of ours, such as a session report, to its answer.",
			seconds), message),
		commit: prometheus.NewHistogram(options("transaction_seconds",
			"Time that the data plane takes for one transaction of session requests.", seconds)),
		write: prometheus.NewHistogram(options("store_write_seconds",
			"Time for writing one transaction to the sessions' store.", seconds)),
		batch: prometheus.NewHistogram(options("transaction_requests", "Session requests in one transaction.",
			counts)),
		queue: prometheus.NewHistogram(options("session_queue_requests",
			"Session requests that wait when a transaction begins.", counts)),
		signIn: prometheus.NewHistogramVec(options("signin_seconds",
			"Time that subscribers' sign-ins take, by phase.", seconds), []string{"phase"}),
	}
	s.depth = prometheus.NewHistogramVec(options("scheduler_depth_packets",
		"Packets that wait in the scheduler's queues of a traffic class, looked at every two seconds.", counts),
		[]string{"port", "traffic_class"})
	s.collectors = []prometheus.Collector{s.requests, s.own, s.signIn, s.depth, s.commit, s.write, s.batch, s.queue}
	return s
}

// Request is a session request of a peer, answered after d. message is one of PFCP's names.
func (s *Set) Request(message string, d time.Duration) {
	if s != nil {
		s.requests.WithLabelValues(message).Observe(d.Seconds())
	}
}

// OwnRequest is a request of ours, answered after d.
func (s *Set) OwnRequest(message string, d time.Duration) {
	if s != nil {
		s.own.WithLabelValues(message).Observe(d.Seconds())
	}
}

// SignIn is a phase of a sign-in that took d.
func (s *Set) SignIn(phase string, d time.Duration) {
	if s != nil {
		s.signIn.WithLabelValues(phase).Observe(d.Seconds())
	}
}

// Depth is how many packets wait in a scheduler's queues of one traffic class, seen at one moment.
func (s *Set) Depth(port, class string, packets uint64) {
	if s != nil {
		s.depth.WithLabelValues(port, class).Observe(float64(packets))
	}
}

// Timing is the duration of one kind of requests, or of one phase of sign-ins, since the start.
type Timing struct {
	Requests uint64   `json:"requests"`
	Seconds  float64  `json:"seconds"` // of all
	Buckets  []Bucket `json:"buckets"`
}

// Bucket is the number of requests up to a duration.
type Bucket struct {
	Seconds  float64 `json:"seconds"`
	Requests uint64  `json:"requests"`
}

// Requests are the peers' requests so far, by message.
func (s *Set) Requests() map[string]Timing {
	if s == nil {
		return map[string]Timing{}
	}
	return timings(s.requests)
}

// SignIns are the sign-ins so far, by phase.
func (s *Set) SignIns() map[string]Timing {
	if s == nil {
		return map[string]Timing{}
	}
	return timings(s.signIn)
}

// timings are those of a histogram with one label, by that.
func timings(of *prometheus.HistogramVec) map[string]Timing {
	all, ch := map[string]Timing{}, make(chan prometheus.Metric, 64)
	go func() {
		of.Collect(ch)
		close(ch)
	}()
	for metric := range ch {
		var m dto.Metric
		if metric.Write(&m) != nil {
			continue
		}
		t := Timing{Requests: m.Histogram.GetSampleCount(), Seconds: m.Histogram.GetSampleSum()}
		for _, b := range m.Histogram.Bucket {
			t.Buckets = append(t.Buckets, Bucket{b.GetUpperBound(), b.GetCumulativeCount()})
		}
		all[m.Label[0].GetValue()] = t
	}
	return all
}

// Batch records the begin of a transaction of requests, while others wait.
func (s *Set) Batch(requests, waiting int) {
	if s != nil {
		s.batch.Observe(float64(requests))
		s.queue.Observe(float64(waiting))
	}
}

// Commit is a transaction that the data plane took or refused after d.
func (s *Set) Commit(d time.Duration) {
	if s != nil {
		s.commit.Observe(d.Seconds())
	}
}

// Write is one transaction's write to the store.
func (s *Set) Write(d time.Duration) {
	if s != nil {
		s.write.Observe(d.Seconds())
	}
}

// Describe is of prometheus.Collector.
func (s *Set) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range s.collectors {
		c.Describe(ch)
	}
}

// Collect is of prometheus.Collector.
func (s *Set) Collect(ch chan<- prometheus.Metric) {
	for _, c := range s.collectors {
		c.Collect(ch)
	}
}
