// SPDX-License-Identifier: Apache-2.0

package dhcp

// Count is one counter for metrics and `show`.
type Count struct {
	Name, Doc string
	Value     uint64
}

// why a frame was not served, or what was.
type why uint8

const (
	malformed why = iota
	disabled
	foreignMAC
	giaddr
	untrusted
	tooManyHops
	tooMany
	waits
	penalised
	refusedBefore
	otherServer
	notTheirs
	taken
	circuitChanged
	unknownUpstream
	leaseShort
	leasesMany
	noAddress
	silent
	refusedByDataPlane
	offers
	acks
	naks
	advertises
	replies
	advertisements
	relayed
	notRelayed
	unanswered
	answered
	whys
)

var words = [whys][2]string{
	malformed:          {"malformed", "messages with wrong lengths, magic, hlen or without a type"},
	disabled:           {"disabled", "messages of a family that the port does not serve"},
	foreignMAC:         {"foreign_mac", "DHCPv4 messages with another chaddr than the frame's source"},
	giaddr:             {"giaddr", "DHCPv4 messages with the address of another relay"},
	untrusted:          {"untrusted", "option 82 or Relay-Forward from a port that is not trusted"},
	tooManyHops:        {"hops", "messages relayed too often"},
	tooMany:            {"limit", "new subscribers above a limit of their VLAN, circuit or in all"},
	waits:              {"merged", "messages that wait for an answer to an earlier one"},
	penalised:          {"penalised", "lines that declined every address, and wait"},
	refusedBefore:      {"refused", "messages of subscribers who were refused a moment ago"},
	otherServer:        {"other_server", "messages for another server"},
	notTheirs:          {"not_theirs", "messages about addresses that are not theirs"},
	taken:              {"line_taken", "messages of another MAC on a 1:1 line"},
	circuitChanged:     {"circuit_changed", "messages with another circuit id than that of the line's session"},
	unknownUpstream:    {"upstream_unknown", "answers from servers that were not asked"},
	leaseShort:         {"lease_short", "upstream answers with a lease of less than 30 s, dropped"},
	leasesMany:         {"leases_many", "upstream DHCPv6 answers with two addresses or prefixes, or temporary ones"},
	noAddress:          {"no_address", "requests for which there was no address"},
	silent:             {"silent", "subscribers without a lease who do not answer any more"},
	refusedByDataPlane: {"failed", "sessions that could not be changed"},
	offers:             {"offers", "DHCPOFFERs sent"},
	acks:               {"acks", "DHCPACKs sent"},
	naks:               {"naks", "DHCPNAKs sent"},
	advertises:         {"advertises", "DHCPv6 Advertises sent"},
	replies:            {"replies", "DHCPv6 Replies sent"},
	advertisements:     {"advertisements", "router advertisements sent"},
	relayed:            {"relayed", "messages relayed to upstream servers"},
	notRelayed:         {"relay_failed", "messages that could not be sent to an upstream server"},
	unanswered:         {"upstream_silent", "DHCPv4 clients whom no upstream server gave an address in time"},
	answered:           {"upstream_answers", "answers of upstream servers passed on"},
}

// Counts returns all counters.
func (s *Server) Counts() []Count {
	all := make([]Count, whys)
	for i := range all {
		all[i] = Count{words[i][0], words[i][1], s.counts[i]}
	}
	return all
}
