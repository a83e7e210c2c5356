// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"isthmus/api"
)

// PFCP is the figures of the PFCP server. Labels are words of TS 29.244 and of our own reasons; none names a peer or a session.
type PFCP struct {
	Associations       int // set up now
	FailedAssociations int // of those, whose peer does not answer
	Sessions           int
	Received           []Count   // messages by type
	Sent               []Count   // messages by type, answers and requests
	Answers            []Answers // answers by type and cause
	Dropped            []Count   // messages dropped or refused, by reason
	Events             []Count   // what happened to associations and transactions
	Lost               uint64    // datagrams that the kernel dropped for want of room
	InFlight           int       // session requests that are being carried out
	Queued             int       // messages that wait
	Retransmissions    uint64    // requests of ours that were sent again
	Repeats            uint64    // requests of peers that came again and were answered from memory
	Timeouts           uint64    // requests of ours that nobody answered
}

// Count is one label's figure.
type Count struct {
	Name  string
	Count uint64
}

// Answers counts the answers to one type of request by cause.
type Answers struct {
	Message string
	Cause   string
	Count   uint64
}

var (
	byInstance = []string{"instance"}
	byEvent    = []string{"event"}
	byMessage  = []string{"message"}
)

var instances = []family[api.InstanceRow]{
	gauge("instance_tunnels", "F-TEIDs of sessions on the instance's endpoints.", byInstance, func(r *api.InstanceRow) uint64 { return uint64(r.Tunnels) }),
	gauge("instance_ue_addresses", "UE addresses of sessions in the instance.", byInstance, func(r *api.InstanceRow) uint64 { return uint64(r.UEAddresses) }),
	counter("instance_unknown_ue_packets_total", "Packets to a UE address of the instance's pools that no session has.", byInstance, func(r *api.InstanceRow) uint64 { return r.UnknownUE }),
	counter("instance_unknown_teid_packets_total", "G-PDUs to the instance's endpoints with a TEID that no session has.", byInstance, func(r *api.InstanceRow) uint64 { return r.UnknownTEID }),
}

var events = []family[api.EventRow]{
	counter("events_raised_total", "Reports of the data plane.", byEvent, func(r *api.EventRow) uint64 { return r.Raised }),
	counter("events_suppressed_total", "Reports that the limits suppressed.", byEvent, func(r *api.EventRow) uint64 { return r.Suppressed }),
	gauge("events_waiting", "Reports that the control plane has not acknowledged.", byEvent, func(r *api.EventRow) uint64 { return r.Waiting }),
}

var pfcp = []family[PFCP]{
	gauge("pfcp_associations", "PFCP associations.", nil, func(p *PFCP) uint64 { return uint64(max(p.Associations, 0)) }),
	gauge("pfcp_failed_associations", "PFCP associations whose peer does not answer.", nil, func(p *PFCP) uint64 { return uint64(max(p.FailedAssociations, 0)) }),
	gauge("pfcp_requests_in_flight", "Session requests that are being carried out.", nil, func(p *PFCP) uint64 { return uint64(max(p.InFlight, 0)) }),
	gauge("pfcp_messages_queued", "PFCP messages that wait.", nil, func(p *PFCP) uint64 { return uint64(max(p.Queued, 0)) }),
	counter("pfcp_lost_datagrams_total", "Datagrams that the kernel dropped because the receive buffer was full.", nil, func(p *PFCP) uint64 { return p.Lost }),
	gauge("pfcp_sessions", "Sessions over PFCP.", nil, func(p *PFCP) uint64 { return uint64(max(p.Sessions, 0)) }),
	counter("pfcp_retransmissions_total", "Requests of ours that were sent again.", nil, func(p *PFCP) uint64 { return p.Retransmissions }),
	counter("pfcp_repeats_total", "Requests that came again and were answered from memory.", nil, func(p *PFCP) uint64 { return p.Repeats }),
	counter("pfcp_timeouts_total", "Requests of ours that nobody answered.", nil, func(p *PFCP) uint64 { return p.Timeouts }),
}

func byCount(c *Count) uint64 { return c.Count }

var (
	pfcpReceived = []family[Count]{counter("pfcp_received_messages_total", "PFCP messages received.", byMessage, byCount)}
	pfcpSent     = []family[Count]{counter("pfcp_sent_messages_total", "PFCP messages sent.", byMessage, byCount)}
	pfcpDropped  = []family[Count]{counter("pfcp_dropped_messages_total", "PFCP messages dropped or refused.", byReason, byCount)}
	pfcpEvents   = []family[Count]{counter("pfcp_events_total", "What happened to PFCP associations and transactions.", byEvent, byCount)}
	pfcpAnswers  = []family[Answers]{counter("pfcp_answers_total", "PFCP answers sent.", []string{"message", "cause"}, func(a *Answers) uint64 { return a.Count })}
)

// Names that dashboards for Open5GS ask for (after TS 28.552); each is one of our own figures under another name. Tunnels of
// every instance count, N9 included.
var (
	aliasIn       = alias("fivegs_ep_n3_gtp_indatapktn3upf", "Alias: G-PDUs received.", prometheus.CounterValue)
	aliasOut      = alias("fivegs_ep_n3_gtp_outdatapktn3upf", "Alias: G-PDUs sent.", prometheus.CounterValue)
	aliasSessions = alias("fivegs_upffunction_upf_sessionnbr", "Alias of isthmus_pfcp_sessions.", prometheus.GaugeValue)
	aliasRequests = alias("fivegs_upffunction_sm_n4sessionestabreq", "Alias: session establishment requests received.", prometheus.CounterValue)
	aliasPeers    = alias("pfcp_peers_active", "Alias of isthmus_pfcp_associations less the failed ones.", prometheus.GaugeValue)
)

func alias(name, help string, kind prometheus.ValueType) family[float64] {
	return family[float64]{prometheus.NewDesc(name, help, nil, nil), kind, func(v *float64) float64 { return *v }}
}

func describePFCP(ch chan<- *prometheus.Desc) {
	describe(ch, pfcp)
	describe(ch, pfcpReceived)
	describe(ch, pfcpSent)
	describe(ch, pfcpDropped)
	describe(ch, pfcpEvents)
	describe(ch, pfcpAnswers)
	describe(ch, []family[float64]{aliasIn, aliasOut, aliasSessions, aliasRequests, aliasPeers})
}

func emitPFCP(ch chan<- prometheus.Metric, s *Snapshot) {
	name := func(c *Count) []string { return []string{c.Name} }
	none := func(*float64) []string { return nil }
	p := s.PFCP
	emit(ch, pfcp, []PFCP{*p}, func(*PFCP) []string { return nil })
	emit(ch, pfcpReceived, p.Received, name)
	emit(ch, pfcpSent, p.Sent, name)
	emit(ch, pfcpDropped, p.Dropped, name)
	emit(ch, pfcpEvents, p.Events, name)
	emit(ch, pfcpAnswers, p.Answers, func(a *Answers) []string { return []string{a.Message, a.Cause} })
	if s.Up {
		emit(ch, []family[float64]{aliasIn}, []float64{nodePackets(s.Nodes, "session-tunnel")}, none)
		emit(ch, []family[float64]{aliasOut}, []float64{nodePackets(s.Nodes, "gtpu-encap")}, none)
	}
	requests := 0.0
	for _, c := range p.Received {
		if c.Name == "session-establishment-request" {
			requests = float64(c.Count)
		}
	}
	emit(ch, []family[float64]{aliasRequests}, []float64{requests}, none)
	emit(ch, []family[float64]{aliasSessions}, []float64{float64(p.Sessions)}, none)
	emit(ch, []family[float64]{aliasPeers}, []float64{float64(p.Associations - p.FailedAssociations)}, none)
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
