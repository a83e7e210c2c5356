// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"isthmus/api"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/view"
)

type stats = n4.Stats

var (
	byEvent   = []string{"event"}
	byMessage = []string{"message"}
	byTraffic = []string{"instance", "dnn", "qfi", "direction"}
)

// direction is one direction of a row of traffic.
type direction struct {
	labels         []string
	packets, bytes uint64
}

var traffic = []family[direction]{
	counter("traffic_packets_total", "Packets that sessions forwarded, by the network instance that they came by.",
		byTraffic, func(d *direction) uint64 { return d.packets }),
	counter("traffic_bytes_total", "Bytes of them.", byTraffic, func(d *direction) uint64 { return d.bytes }),
}

// directions of all rows.
func directions(rows []api.TrafficRow) []direction {
	list := make([]direction, 0, 2*len(rows))
	for i := range rows {
		t := view.NewTraffic(&rows[i])
		instance, dnn, qfi := t.Words()
		list = append(list,
			direction{[]string{instance, dnn, qfi, "uplink"}, t.UplinkPackets, t.UplinkBytes},
			direction{[]string{instance, dnn, qfi, "downlink"}, t.DownlinkPackets, t.DownlinkBytes})
	}
	return list
}

var pfcp = []family[stats]{
	gauge("pfcp_associations", "PFCP associations.", nil, func(p *stats) int { return p.Associations }),
	gauge("pfcp_failed_associations", "PFCP associations whose peer does not answer.", nil,
		func(p *stats) int { return p.Failed }),
	gauge("pfcp_requests_in_flight", "Session requests that are being carried out.", nil,
		func(p *stats) int { return p.InFlight }),
	gauge("pfcp_messages_queued", "PFCP messages that wait.", nil, func(p *stats) int { return p.Queued }),
	counter("pfcp_lost_datagrams_total",
		"Datagrams that the kernel dropped because the receive buffer was full.", nil,
		func(p *stats) uint64 { return p.Lost }),
	gauge("pfcp_sessions", "Sessions over PFCP.", nil, func(p *stats) int { return p.Sessions }),
	counter("pfcp_retransmissions_total", "Requests of ours that were sent again.", nil,
		func(p *stats) uint64 { return p.Retransmissions }),
	counter("pfcp_repeats_total", "Requests that came again and were answered from memory.", nil,
		func(p *stats) uint64 { return p.Repeats }),
	counter("pfcp_timeouts_total", "Requests of ours without an answer.", nil,
		func(p *stats) uint64 { return p.Timeouts }),
}

func counted(name, help string, labels []string) []family[n4.Count] {
	return []family[n4.Count]{counter(name, help, labels, func(c *n4.Count) uint64 { return c.Value })}
}

var (
	pfcpReceived = counted("pfcp_received_messages_total", "PFCP messages received.", byMessage)
	pfcpSent     = counted("pfcp_sent_messages_total", "PFCP messages sent.", byMessage)
	pfcpDropped  = counted("pfcp_dropped_messages_total", "PFCP messages dropped or refused.", byReason)
	pfcpEvents   = counted("pfcp_events_total", "What happened to PFCP associations and transactions.", byEvent)
	pfcpAnswers  = []family[n4.AnswerCount]{counter("pfcp_answers_total", "PFCP answers sent.",
		[]string{"message", "cause"},
		func(a *n4.AnswerCount) uint64 { return a.Value })}
)

func emitPFCP(ch chan<- prometheus.Metric, s *Snapshot) {
	name := func(c *n4.Count) []string { return []string{c.Name} }
	p := s.PFCP
	emit(ch, pfcp, []stats{*p}, func(*stats) []string { return nil })
	emit(ch, pfcpReceived, p.Received, name)
	emit(ch, pfcpSent, p.Sent, name)
	emit(ch, pfcpDropped, p.Rejected, name)
	emit(ch, pfcpEvents, p.Events, name)
	emit(ch, pfcpAnswers, p.Answers, func(a *n4.AnswerCount) []string {
		return []string{a.Message, text(uint32(a.Cause))}
	})
	// Names that dashboards for Open5GS ask for (after TS 28.552); each is one of our own figures under another
	// name. Tunnels of every instance count, N9 included.
	alias := func(kind prometheus.ValueType, v float64, name, is string) {
		ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, "Alias"+is, nil, nil), kind, v)
	}
	const sum, now = prometheus.CounterValue, prometheus.GaugeValue
	if s.Up {
		alias(sum, nodePackets(s.Nodes, "session-tunnel"), "fivegs_ep_n3_gtp_indatapktn3upf", ": G-PDUs received.")
		alias(sum, nodePackets(s.Nodes, "gtpu-encap"), "fivegs_ep_n3_gtp_outdatapktn3upf", ": G-PDUs sent.")
	}
	requests := 0.0
	for _, c := range p.Received {
		if c.Name == "session-establishment-request" {
			requests = float64(c.Value)
		}
	}
	alias(sum, requests, "fivegs_upffunction_sm_n4sessionestabreq", ": session establishment requests received.")
	alias(now, float64(p.Sessions), "fivegs_upffunction_upf_sessionnbr", " of isthmus_pfcp_sessions.")
	living := float64(p.Associations - p.Failed)
	alias(now, living, "pfcp_peers_active", " of isthmus_pfcp_associations less the failed ones.")
}

// nodePackets is a node's packets, all workers.
func nodePackets(nodes []api.NodeRow, name string) float64 {
	sum := uint64(0)
	for i := range nodes {
		if api.CString(nodes[i].Name[:]) == name {
			sum += nodes[i].Packets
		}
	}
	return float64(sum)
}
