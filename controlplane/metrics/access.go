// SPDX-License-Identifier: Apache-2.0

package metrics

import "github.com/prometheus/client_golang/prometheus"

// Labelled is a figure with the values of its labels.
type Labelled struct {
	Labels []string
	Value  uint64
}

// RoundTrips are a histogram of a RADIUS server.
type RoundTrips struct {
	Server, Use string
	Count       uint64
	Seconds     float64
	Buckets     map[float64]uint64 // cumulative, by upper bound
}

// SignIns are the figures of sign-in.
type SignIns struct {
	On, Failures, Ended, Frames, FramesLost       []Labelled
	PoolUsed, PoolSize, Requests                  []Labelled
	SignedIn, Waiting, Running                    []Labelled
	AccountingWaiting                             []Labelled
	AccountingDropped, Protocol, Changes, Ignored []Labelled
	Replaced, ReportsLost, ServersUp, Dropped     []Labelled
	RoundTrips                                    []RoundTrips
}

func labelled(name, help string, labels ...string) family[Labelled] {
	return counter(name, help, labels, func(l *Labelled) uint64 { return l.Value })
}

func labelledGauge(name, help string, labels ...string) family[Labelled] {
	return gauge(name, help, labels, func(l *Labelled) uint64 { return l.Value })
}

var (
	signInFamilies = []struct {
		family family[Labelled]
		of     func(*SignIns) []Labelled
	}{
		{labelledGauge("subscribers", "Subscribers who signed in.", "kind", "state"),
			func(s *SignIns) []Labelled { return s.On }},
		{labelled("signins_total", "Subscribers whose packets passed for the first time."),
			func(s *SignIns) []Labelled { return s.SignedIn }},
		{labelled("signin_failures_total", "Attempts to sign in that came to nothing.", "reason"),
			func(s *SignIns) []Labelled { return s.Failures }},
		{labelled("subscribers_ended_total", "Sessions of subscribers that ended, by cause (RFC 2866).",
			"cause"),
			func(s *SignIns) []Labelled { return s.Ended }},
		{labelled("subscribers_replaced_total", "Sessions that ended for a newer one of the user or line."),
			func(s *SignIns) []Labelled { return s.Replaced }},
		{labelled("usage_reports_lost_total",
			"Reports of usage that did not come, or too late: what they had is not accounted."),
			func(s *SignIns) []Labelled { return s.ReportsLost }},
		{labelledGauge("signins_waiting", "Sign-ins that wait for their turn."),
			func(s *SignIns) []Labelled { return s.Waiting }},
		{labelledGauge("signins_running", "Sign-ins that are being authenticated."),
			func(s *SignIns) []Labelled { return s.Running }},
		{labelled("signin_frames_total", "Frames of subscribers that came up.", "served"),
			func(s *SignIns) []Labelled { return s.Frames }},
		{labelled("signin_frames_lost_total",
			"Frames to subscribers that found the data plane's channel closed or full."),
			func(s *SignIns) []Labelled { return s.FramesLost }},
		{labelledGauge("pool_used", "Addresses or prefixes of a pool in use.", "pool"),
			func(s *SignIns) []Labelled { return s.PoolUsed }},
		{labelledGauge("pool_size", "Addresses or prefixes of a pool.", "pool"),
			func(s *SignIns) []Labelled { return s.PoolSize }},
		{labelled("radius_requests_total", "Requests to a RADIUS server, by what became of them.", "server",
			"use", "outcome"),
			func(s *SignIns) []Labelled { return s.Requests }},
		{labelledGauge("radius_server_up", "1 while a RADIUS server is believed to answer.", "server", "use"),
			func(s *SignIns) []Labelled { return s.ServersUp }},
		{labelled("radius_dropped_answers_total", "What came to a RADIUS client's sockets and was dropped.",
			"server", "use", "reason"),
			func(s *SignIns) []Labelled { return s.Dropped }},
		{labelledGauge("accounting_records_waiting", "Records of accounting that no server has taken yet."),
			func(s *SignIns) []Labelled { return s.AccountingWaiting }},
		{labelled("accounting_records_dropped_total",
			"Records of accounting that were lost: by kind for want of room, or refused by all servers.", "what"),
			func(s *SignIns) []Labelled { return s.AccountingDropped }},
		{labelled("signin_protocol_events_total", "What PPPoE and DHCP servers sent, served and dropped.",
			"protocol", "what"),
			func(s *SignIns) []Labelled { return s.Protocol }},
		{labelled("radius_dynamic_requests_total", "CoA and Disconnect requests, by what became of them.", "outcome"),
			func(s *SignIns) []Labelled { return s.Changes }},
		{labelled("radius_ignored_attributes_total", "Attributes of RADIUS answers without use.", "attribute"),
			func(s *SignIns) []Labelled { return s.Ignored }},
	}
	roundTrips = prometheus.NewDesc("isthmus_radius_round_trip_seconds",
		"From the first sending of a request to its answer.",
		[]string{"server", "use"}, nil)
)

func emitSignIns(ch chan<- prometheus.Metric, s *SignIns) {
	for _, f := range signInFamilies {
		emit(ch, []family[Labelled]{f.family}, f.of(s), func(l *Labelled) []string { return l.Labels })
	}
	for i := range s.RoundTrips {
		r := &s.RoundTrips[i]
		ch <- prometheus.MustNewConstHistogram(roundTrips, r.Count, r.Seconds, r.Buckets, r.Server, r.Use)
	}
}
