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
	byInstance = []string{"instance"}
	byPrefix   = []string{"instance", "inside"} // a row of the configuration
	byMirror   = []string{"mirror"}
	byCounter  = []string{"counter"}
	byEvent    = []string{"event"}
	// At most four of each protocol, of the configuration.
	byCollector = []string{"protocol", "collector"}
	byMessage   = []string{"message"}
	byTraffic   = []string{"instance", "dnn", "qfi", "direction"}
)

var instances = []family[api.InstanceRow]{
	gauge("instance_tunnels", "F-TEIDs of sessions on the instance's endpoints.", byInstance,
		func(r *api.InstanceRow) uint32 { return r.Tunnels }),
	gauge("instance_ue_addresses", "UE addresses of sessions in the instance.", byInstance,
		func(r *api.InstanceRow) uint32 { return r.UEAddresses }),
	counter("instance_unknown_ue_packets_total", "Packets to a UE address of the instance's pools that no session has.", byInstance, func(r *api.InstanceRow) uint64 { return r.UnknownUE }),
	counter("instance_unknown_teid_packets_total", "G-PDUs to the instance's endpoints with a TEID that no session has.", byInstance, func(r *api.InstanceRow) uint64 { return r.UnknownTEID }),
}

var nats = []family[api.NATRow]{
	gauge("nat_blocks", "Blocks of ports of the instance's NAT44.", byInstance,
		func(r *api.NATRow) uint32 { return r.Blocks }),
	gauge("nat_blocks_used", "Blocks that subscribers have.", byInstance,
		func(r *api.NATRow) uint32 { return r.Used }),
	gauge("nat_blocks_resting", "Blocks that rest between two subscribers.", byInstance,
		func(r *api.NATRow) uint32 { return r.Resting }),
	gauge("nat_blocks_unreported", "Blocks of which the log is not told yet.", byInstance,
		func(r *api.NATRow) uint64 { return r.Unreported }),
	gauge("nat_subscribers", "Subscribers that have a block.", byInstance,
		func(r *api.NATRow) uint32 { return r.Subscribers }),
	gauge("nat_mappings", "Mappings.", byInstance,
		func(r *api.NATRow) uint64 { return r.Mappings }),
	counter("nat_mappings_made_total", "Mappings since start.", byInstance,
		func(r *api.NATRow) uint64 { return r.Made }),
	gauge("nat_pairs", "Pairs of addresses of protocols without ports.", byInstance,
		func(r *api.NATRow) uint64 { return r.Pairs }),
	counter("nat_pairs_made_total", "Pairs since start.", byInstance,
		func(r *api.NATRow) uint64 { return r.PairsMade }),
	counter("nat_pairs_refused_packets_total", "Packets that would have made a pair, and were dropped.", byInstance,
		func(r *api.NATRow) uint64 { return r.PairsRefused }),
}

var collectors = []family[view.Collector]{
	gauge("nat_log_up", "1 while records of NAT44 can be sent to a collector of nat_log.", byCollector,
		func(c *view.Collector) (up int) {
			if c.State == "up" {
				up = 1
			}
			return up
		}),
	counter("nat_log_records_total", "Records of NAT44 that were sent to a collector.", byCollector,
		func(c *view.Collector) uint64 { return c.Sent }),
	counter("nat_log_lost_records_total", "Records that could not be sent, or that its host refused.", byCollector,
		func(c *view.Collector) uint64 { return c.Lost }),
}

var nptv6s = []family[api.NPTv6Row]{
	counter("nptv6_out_packets_total", "Packets whose source was translated to the outside.", byPrefix,
		func(r *api.NPTv6Row) uint64 { return r.PacketsOut }),
	counter("nptv6_in_packets_total", "Packets whose destination was translated to the inside.", byPrefix,
		func(r *api.NPTv6Row) uint64 { return r.PacketsIn }),
}

var clamped = []family[api.MSSRow]{
	counter("mss_uplink_packets_total", "SYNs from subscribers whose MSS was lowered.", byInstance,
		func(r *api.MSSRow) uint64 { return r.Uplink }),
	counter("mss_downlink_packets_total", "SYNs to subscribers whose MSS was lowered.", byInstance,
		func(r *api.MSSRow) uint64 { return r.Downlink }),
	counter("mss_malformed_packets_total", "SYNs whose options could not be read.", byInstance,
		func(r *api.MSSRow) uint64 { return r.Malformed }),
}

var mirrors = []family[api.MirrorRow]{
	counter("mirror_packets_total", "Copies of packets.", byMirror,
		func(r *api.MirrorRow) uint64 { return r.Packets }),
	counter("mirror_bytes_total", "Bytes of copies, without what was put in front.", byMirror,
		func(r *api.MirrorRow) uint64 { return r.Bytes }),
	counter("mirror_limited_packets_total", "Packets that were not copied: beyond the mirror's rate.", byMirror,
		func(r *api.MirrorRow) uint64 { return r.Limited }),
	counter("mirror_no_buffer_packets_total", "Packets that were not copied for want of a packet buffer.", byMirror,
		func(r *api.MirrorRow) uint64 { return r.NoBuffer }),
	counter("mirror_failed_packets_total", "Copies that could not be sent.", byMirror,
		func(r *api.MirrorRow) uint64 { return r.Failed }),
}

var counters = []family[api.CounterRow]{
	counter("aggregate_packets_total", "Packets that the counter's sessions forwarded.", byCounter,
		func(r *api.CounterRow) uint64 { return r.Packets }),
	counter("aggregate_bytes_total", "Bytes of them.", byCounter,
		func(r *api.CounterRow) uint64 { return r.Bytes }),
	counter("aggregate_watermarks_reached_total", "Watermarks that were reached.", byCounter,
		func(r *api.CounterRow) uint64 { return r.Reached }),
	gauge("aggregate_sessions", "Sessions that count.", byCounter,
		func(r *api.CounterRow) uint32 { return r.Sessions }),
}

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

var events = []family[api.EventRow]{
	counter("events_raised_total", "Reports of the data plane.", byEvent, func(r *api.EventRow) uint64 { return r.Raised }),
	counter("events_suppressed_total", "Reports that the limits suppressed.", byEvent, func(r *api.EventRow) uint64 { return r.Suppressed }),
	gauge("events_waiting", "Reports that the control plane has not acknowledged.", byEvent, func(r *api.EventRow) uint64 { return r.Waiting }),
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
	counter("pfcp_timeouts_total", "Requests of ours that nobody answered.", nil,
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
