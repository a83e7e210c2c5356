// SPDX-License-Identifier: Apache-2.0
// The contract between the control plane (isthmus) and the data plane (isthmus-dp).
//
// Transport: one Unix stream socket. Every message is a struct api_header followed by `length` bytes of body.
// The client sends a request and reads replies until one carries API_F_LAST. One request is in flight per connection,
// API_HELLO first.
// Byte order: host, except fields named *_be and address bytes, which are as on the wire. Padding is zero.
// Strings are NUL-terminated and zero-padded to their full size.
//
// A body is a sequence of parts, or empty. A part is a struct api_part_head, `count` structs of `size` bytes each, and
// zeros up to a multiple of 8 bytes. Structs that are parts grow at their end, so both sides read each other's:
// README.md, "How it grows".
//
// State is a set of objects, each named by (kind, key). An object's first part has the number of its kind; arrays
// follow for some kinds, in the order given there. Changes travel in one transaction: API_BEGIN, any number of API_PUT
// and API_DELETE, API_COMMIT. It is applied whole or not at all; the reply to API_COMMIT says which change was refused
// and why. API_LIST gives kind, key and digest of each object, so that a returning control plane sends only the
// difference.
#ifndef ISTHMUS_API_H
#define ISTHMUS_API_H

#include <stdint.h>

#define API_MAGIC 0x48545349u // "ISTH", little endian
#define API_VERSION 1u // highest that this header describes
#define API_VERSION_OLDEST 1u // lowest that programs made with it speak
#define API_NAME 32
#define API_TEXT 256
#define API_MRU_MIN 576 // of a subscriber: RFC 791 §3.1: every host takes so much; smaller only makes fragments
#define API_MAX_BODY (16u << 20) // one message
#define API_MAX_CHANGES (1u << 21) // one transaction

enum api_type {
	API_HELLO = 1, // api_hello, api_layout[] -> the same
	API_BEGIN = 2, // empty -> api_status
	API_PUT = 3, // api_object_head, parts of the object; no reply before COMMIT
	API_DELETE = 4, // api_object_head; no reply before COMMIT
	API_COMMIT = 5, // empty -> api_usage[] in any number of replies (final and queried reports), then api_status
	API_LIST = 6, // api_list -> api_digest[] in one or more replies
	// api_stats_request -> rows of a table, in one or more replies made as the client reads; rows that change
	// meanwhile may be missing or appear twice
	API_STATS = 7,
	API_STREAM = 8, // api_stream_command -> api_status (start and stop of synth streams)
	API_ABORT = 9, // empty -> api_status: forget the open transaction
	// Empty -> api_event[] in replies without end: unacknowledged ones first; one subscriber at a time
	API_SUBSCRIBE = 10,
	API_ACKNOWLEDGE = 11, // api_acknowledge, on the subscribed connection; no reply
	API_TRACE = 12, // api_trace, its keys, programs and frame -> api_trace_state
	API_TRACE_POLL = 13, // api_trace_poll -> api_trace_row[] in any number of replies, then api_trace_state
	// empty -> replies without end: api_frame_port[], first and at changes; subscribers' frames, each api_frame and
	// its api_frame_octets; one channel at a time
	API_CHANNEL = 14,
	API_CHANNEL_SEND = 15, // frames in the same form, on the connection that has the channel; no reply
};

#define API_F_LAST 1u // last reply to a request
#define API_F_ERROR 2u // body is api_status with a non-zero code
#define API_F_MORE 4u // with LAST, of a LIST: the limit was reached, more follows

struct api_header {
	uint32_t magic;
	uint16_t type; // enum api_type
	uint16_t flags;
	uint32_t length; // bytes of body
	uint32_t sequence; // copied into each reply
};

// Heads the structs of a part.
struct api_part_head {
	uint16_t part; // enum api_part
	uint16_t size; // of one struct as the sender knows it
	uint32_t count;
};

// The structs that are parts. Up to 63: of an object, the number of its kind; from 128 on: 128 + the table of its rows.
enum api_part {
	API_PART_ENGINE = 1,
	API_PART_PORT = 2,
	API_PART_INTERFACE = 3,
	API_PART_ROUTE = 4,
	API_PART_NEIGHBOUR = 5,
	API_PART_ACL = 6,
	API_PART_POLICER = 7,
	API_PART_SCHEDULER = 8,
	API_PART_INSTANCE = 9,
	API_PART_PATH = 10,
	API_PART_SESSION = 11,
	API_PART_SYNTH = 12,
	API_PART_NAT = 13,
	API_PART_MIRROR = 14,
	API_PART_COUNTER = 15,
	API_PART_NPTV6 = 16,
	API_PART_CLONE = 17,
	API_PART_GTSM = 18,
	API_PART_LINES = 19,
	API_PART_REMARK = 20,

	API_PART_HELLO = 64,
	API_PART_LAYOUT = 65,
	API_PART_STATUS = 66,
	API_PART_OBJECT_HEAD = 67,
	API_PART_DIGEST = 68,
	API_PART_USAGE = 69,
	API_PART_EVENT = 70,
	API_PART_ACKNOWLEDGE = 71,
	API_PART_STATS_REQUEST = 72,
	API_PART_STREAM_COMMAND = 73,
	API_PART_ACL_RULE = 74,
	API_PART_PDR = 75,
	API_PART_FAR = 76,
	API_PART_QER = 77,
	API_PART_URR = 78,
	API_PART_SDF = 79,
	API_PART_FAR_MORE = 80,
	API_PART_ADDRESS = 81,
	API_PART_ROUTE_HOP = 83,
	API_PART_LIST = 82,
	API_PART_TRACE = 84,
	API_PART_TRACE_KEY = 85,
	API_PART_TRACE_INSTRUCTION = 86,
	API_PART_TRACE_OCTETS = 87,
	API_PART_TRACE_POLL = 88,
	API_PART_TRACE_STATE = 89,
	API_PART_TRACE_ROW = 90,
	API_PART_FRAME = 91,
	API_PART_FRAME_OCTETS = 92,
	API_PART_FRAME_PORT = 93,
	API_PART_LINE_RANGE = 94,

	API_PART_PORT_ROW = 129,
	API_PART_NODE_ROW = 130,
	API_PART_DROP_ROW = 131, // also of the punt table
	API_PART_WORKER_ROW = 132,
	API_PART_SESSION_ROW = 133,
	API_PART_ROUTE_ROW = 134,
	API_PART_NEIGHBOUR_ROW = 135,
	API_PART_ACL_ROW = 136,
	API_PART_SCHEDULER_ROW = 137,
	API_PART_EDGE_ROW = 138,
	API_PART_SYNTH_ROW = 139,
	API_PART_TOTAL_ROW = 140,
	API_PART_PATH_ROW = 142,
	API_PART_RULE_ROW = 143,
	API_PART_URR_ROW = 144,
	API_PART_INSTANCE_ROW = 145,
	API_PART_EVENT_ROW = 146,
	API_PART_HOLDER_ROW = 147,
	API_PART_NAT_ROW = 148,
	API_PART_NAT_BLOCK_ROW = 149,
	API_PART_MIRROR_ROW = 150,
	API_PART_COUNTER_ROW = 151,
	API_PART_NPTV6_ROW = 152,
	API_PART_CLONE_ROW = 153,
	API_PART_GTSM_ROW = 154,
	API_PART_CHANNEL_ROW = 155,
	API_PART_TRAFFIC_ROW = 156,
	API_PART_MSS_ROW = 157,
	API_PART_REMARK_ROW = 158,
};

// What of a session a refusal is about (api_status.rule_kind).
enum api_rule { API_RULE_NONE = 0, API_RULE_PDR = 1, API_RULE_FAR = 2, API_RULE_QER = 3, API_RULE_URR = 4 };

// code: 0 or a positive errno. For a refused commit: kind and key of the object, rule_kind and rule within it; text
// says why, for people.
struct api_status {
	uint32_t code;
	uint32_t kind; // enum api_kind; 0: no single object is to blame
	char key[API_NAME];
	char text[API_TEXT];
	uint32_t rule_kind; // enum api_rule
	uint32_t rule; // id
};

// Each side sends its range of versions; both use the highest common one. Without one, or if a layout differs, the data
// plane refuses every request but HELLO.
struct api_hello {
	uint32_t version; // highest that the sender speaks
	uint32_t oldest; // lowest that it speaks
	uint64_t boot_id; // changes at every start of the data plane
	uint64_t start_ns; // CLOCK_REALTIME at start
	uint64_t tsc_hz;
	uint32_t objects; // held now
	uint32_t flags; // API_HELLO_*
	char build[API_NAME]; // version of the program
	char cpu[64];
	uint32_t pid;
	uint32_t pad;
};
#define API_HELLO_HUGE 1u // running on huge pages

// A part's layout in the sender's version, for each part and version that it speaks. The side with the longer struct
// compares: its own fields within `size` bytes must have this digest.
struct api_layout {
	uint16_t version;
	uint16_t part; // enum api_part
	uint32_t size;
	uint32_t digest; // FNV-1a 32 of names, types and places of the fields
	uint32_t pad;
};

// Kinds are applied in numeric order and deleted in reverse, so a kind may refer to lower ones only.
enum api_kind {
	API_ENGINE = 1,
	API_PORT = 2,
	API_INTERFACE = 3,
	API_ROUTE = 4,
	API_NEIGHBOUR = 5,
	API_ACL = 6,
	API_POLICER = 7,
	API_SCHEDULER = 8,
	API_INSTANCE = 9,
	API_PATH = 10,
	API_SESSION = 11,
	API_SYNTH = 12,
	API_NAT = 13,
	API_MIRROR = 14,
	API_COUNTER = 15,
	API_NPTV6 = 16,
	API_CLONE = 17,
	API_GTSM = 18,
	API_LINES = 19,
	API_REMARK = 20,
	API_KIND_COUNT = 21,
};

// Heads every PUT (parts of the object follow) and DELETE (nothing follows).
struct api_object_head {
	uint32_t kind;
	uint32_t pad;
	char key[API_NAME];
};

// Asks for the digests of one kind whose keys lie in a range, ascending. Keys are ordered by a hash: FNV-1a 64 of their
// characters, mixed as in MurmurHash3.
//   x ^= x >> 33; x *= 0xff51afd7ed558ccd; x ^= x >> 33; x *= 0xc4ceb9fe1a85ec53; x ^= x >> 33
//
// Ranges of equal width hold about equally many keys, and neither side needs an index. The limit does not separate keys
// of equal order.
struct api_list {
	uint32_t kind; // enum api_kind
	uint32_t limit; // digests; 0, or more: API_LIST_MOST
	uint64_t first, last; // orders, both inclusive
};
#define API_LIST_MOST 65536u

// The digest is FNV-1a 64 of the object's contents; it does not depend on the structs' sizes. For each part with rows
// it covers the part's number (16 bits) and row count (32 bits). For each row it covers a length (16 bits) and the
// bytes up to the last non-zero byte.
struct api_digest {
	uint32_t kind;
	uint32_t pad;
	char key[API_NAME];
	uint64_t digest;
};

// ---- addresses ------------------------------------------------------------------------------------------------------

struct api_address {
	uint8_t family; // 0 none, 4, 6
	uint8_t prefix; // bits
	uint8_t pad[2];
	uint8_t bytes[16]; // IPv4 uses the first four
};

// ---- engine ---------------------------------------------------------------------------------------------------------

#define API_MAX_WORKERS 16

// Key "engine". Workers and limits are fixed for the life of the data plane process.
struct api_engine {
	uint32_t workers;
	int32_t cpu[API_MAX_WORKERS]; // -1: not pinned
	uint32_t packet_buffers; // mbufs in the pool
	uint32_t max_sessions;
	uint32_t max_flows; // per worker
	// Most packet buffers that may be held, whole process, by packets that ... (core/hold.h)
	uint32_t max_held; // wait for a neighbour
	uint32_t max_fragments; // are under reassembly
	uint32_t icmp_error_rate; // ICMP errors per second and worker
	uint32_t error_indication_rate; // GTP-U error indications per second and worker
	uint32_t echo_rate; // answered echo requests (ICMP, GTP-U) per second and worker
	uint32_t punt_rate; // packets per second and worker to the host path
	uint32_t flags; // API_ENGINE_*
	uint32_t buffer_size; // data room of one mbuf, bytes; 0: 2048 (larger frames are chained)
	uint32_t max_rules; // PDRs of all sessions; 0: four a session
	uint32_t max_urrs; // URRs of all sessions; 0: one a session
	uint32_t max_qers; // meters that several PDRs or sessions share, all sessions; 0: two a session
	uint32_t max_buffered; // packet buffers: downlink packets that wait for idle UEs (BAR)
	uint32_t max_scheduled; // packet buffers: schedulers' queues
	uint32_t max_handed_over; // packet buffers: on the way from worker to worker and from the control thread
	uint32_t max_punted; // packet buffers: on the way to the control thread
	uint32_t max_neighbours; // 0: 4096
	uint32_t max_unresolved; // of one interface's silent ones (RFC 6583); 0: an eighth
	uint32_t solicitation_rate; // ARP requests and neighbour solicitations for unknown hosts per second; 0: 1000
	uint32_t max_events; // events that wait for an acknowledgement; 0: 65536
	uint32_t event_rate; // unsolicited events of one kind per second, usage reports apart; 0: 10000
	uint32_t buffer_seconds; // a packet waits for an idle UE, where the FAR does not say how long; 0: 60
	uint32_t flow_rate; // new flows per second and worker; 0: no limit
	uint32_t subscriber_flow_rate; // new flows per second and session; 0: no limit
	uint32_t flow_idle; // seconds; an unused flow's entry is removed after one to two times that; 0: 60
	uint32_t flow_lifetime; // seconds, at most 15 times flow_idle; older entries always go; 0: no limit
	uint32_t max_routes; // ROUTE objects, both families; 0: API_ROUTES
	uint32_t channel_kib; // KiB of frames that wait for the control plane; 0: API_CHANNEL_KIB
	// Frames of access ports for the control plane per second, worker and reason; 0: API_PUNT_*
	uint32_t punt_subscriber_rate; // of a MAC address behind its tags
	uint32_t punt_line_rate; // behind both tags
	uint32_t punt_s_tag_rate;
	uint32_t punt_port_rate;
	uint32_t max_traffic; // rows of API_TABLE_TRAFFIC; 0: API_TRAFFIC
	uint32_t pad6;
};
#define API_CHANNEL_KIB 4096u
#define API_PUNT_SUBSCRIBER 40u
#define API_PUNT_LINE 100u
#define API_PUNT_S_TAG 5000u
#define API_PUNT_PORT 50000u
#define API_TRAFFIC 256u // what max_traffic 0 means
#define API_FLOW_IDLE 60u // what flow_idle 0 means
#define API_ROUTES (1280u << 10) // default of max_routes: 1 M of IPv4 and 256 K of IPv6
#define API_ENGINE_DROP_UE_GTPU 1u // drop any UDP/2152 sent by a subscriber (row G10)
#define API_ENGINE_IDLE_SLEEP 2u // a worker without work for a millisecond sleeps (shared or small machines)
// UDP checksums of received tunnel packets: ZERO6 accepts 0 over IPv6, by agreement of both ends (RFC 6936 §4); IGNORED
// verifies none.
#define API_ENGINE_UDP_SUM_ZERO6 4u
#define API_ENGINE_UDP_SUM_IGNORED 8u

// ---- ports ----------------------------------------------------------------------------------------------------------

enum api_role { API_ROLE_ACCESS = 1, API_ROLE_CORE = 2 };

#define API_MAX_MEMBERS 8

// A device below a bonding port.
struct api_port_member {
	char driver[API_NAME];
	char devargs[API_TEXT];
};

// Key: the port's name. What a device does with packets of sessions that are installed in it (rte_flow).
enum api_offload {
	API_OFFLOAD_NONE = 0,
	API_OFFLOAD_ENCAPSULATION = 1, // the tunnel header is removed, the software does the rest
	API_OFFLOAD_FULL = 2, // all, from port to port
	API_OFFLOAD_AUTO = 3, // what it can
};

struct api_port {
	// "synth", "inject", "share", or DPDK's: net_af_packet, net_af_xdp, net_tap, net_memif, net_pcap, net_bond, pci
	char driver[API_NAME];
	char devargs[API_TEXT]; // DPDK device arguments ("iface=veth0", "0000:01:00.0"); empty for synth
	uint32_t role; // enum api_role
	uint32_t mtu; // L3 bytes
	uint32_t queues; // receive queues; 0: one per worker where the device can
	uint32_t queue_size; // descriptors; 0: 1024
	uint8_t mac[6]; // zero: the device's own
	uint8_t promiscuous;
	uint8_t pad;
	char xconnect[API_NAME]; // not empty: every packet received here leaves there, untouched (port floor)
	uint32_t members; // of member; not 0: net_bond is made of them
	struct api_port_member member[API_MAX_MEMBERS];
	uint32_t offload; // enum api_offload: the most that the device is used for
	uint32_t pad2;
	uint32_t sign_in; // API_SIGN_IN_*; role access
	uint32_t pad3;
};
#define API_SIGN_IN_PACKET 1u // IP packets and ARP of unknown senders go to the control plane

// ---- interfaces, routes, neighbours ---------------------------------------------------------------------------------

#define API_MAX_ADDRESSES 8
#define API_MAX_VRFS 64 // the default one included

// Key: the interface's name. Core: an L3 interface on a port or one of its VLANs. Access: gateway addresses that the
// port's subscribers see (ARP, ND, echo), in any encapsulation. Without a port: loopback addresses, on no link and
// without a network.
struct api_interface {
	char port[API_NAME]; // empty: none, and neither VLANs, MTU nor flags
	uint16_t outer_vlan; // 0 none
	uint16_t inner_vlan; // 0 none
	uint32_t count; // of address
	struct api_address address[API_MAX_ADDRESSES];
	uint32_t mtu; // L3 bytes, not above the port's; 0: the port's
	uint32_t flags; // API_INTERFACE_*
	char vrf[API_NAME]; // VRF of its addresses and of the routes of received packets; empty: the default one
};
// Core ports: no traffic; its networks and the routes by it are withdrawn. (On an access port sessions decide, not
// gateway addresses.)
#define API_INTERFACE_DOWN 1u
// RFC 3704 §2.2, §2.4: a packet's source must have a route; STRICT: by this interface. At most one of them; core ports.
#define API_INTERFACE_RPF_STRICT 2u
#define API_INTERFACE_RPF_LOOSE 4u
// Access ports: our MAC address answers ARP and neighbour discovery for the addresses of the interface's networks. So
// subscribers of a network reach each other through the gateway (local proxy ARP).
#define API_INTERFACE_LOCAL_PROXY 8u

// Key: prefix as text ("10.0.0.0/8"); of a VRF "prefix|vrf", shortened to fit. Prefixes that belong to an interface are
// routes of their own accord.
struct api_route {
	struct api_address prefix;
	struct api_address via; // family 0: directly attached. Of an IPv4 prefix also IPv6 (RFC 8950)
	// May be empty when via is in an interface's prefix; else via is on its link, in any network.
	char interface[API_NAME];
	char vrf[API_NAME]; // of its interface; empty: the default one
	uint32_t further, pad; // next hops of equal cost, of at most API_ROUTE_FURTHER
	uint32_t discard; // enum api_discard: packets end here; without via, interface, further
	uint32_t pad2;
	// The part api_route_hop[further] follows.
};
#define API_ROUTE_FURTHER 7

// What happens to a packet whose route discards on purpose, and which error its sender gets.
enum api_discard {
	API_DISCARD_NONE = 0, // the route leads somewhere
	API_DISCARD_BLACKHOLE = 1, // nothing
	API_DISCARD_UNREACHABLE = 2, // host unreachable (RFC 1812 §5.2.7.1); reject route (RFC 4443 §3.1)
	API_DISCARD_PROHIBIT = 3, // the same: communication administratively prohibited
	API_DISCARD_UNASSIGNED = 4, // nothing: no subscriber has the address of ours (RFC 4632 §5.1)
};

struct api_route_hop {
	struct api_address via;
	char interface[API_NAME]; // as in api_route
};

// Key: "interface|address" shortened to fit (FNV-1a 64 in hex). A static neighbour.
struct api_neighbour {
	char interface[API_NAME];
	struct api_address address;
	uint8_t mac[6];
	uint8_t pad[2];
};

// ---- firewall -------------------------------------------------------------------------------------------------------

enum api_action { API_DENY = 0, API_PERMIT = 1 };

struct api_acl_rule {
	struct api_address source; // prefix; family 0: any
	struct api_address destination; // same family as source when both are given
	uint16_t source_port[2]; // low, high (inclusive); 0..65535 any
	uint16_t destination_port[2];
	uint8_t protocol;
	uint8_t protocol_mask; // 0 any, 0xff exact
	uint8_t action; // enum api_action
	uint8_t pad;
	uint32_t priority; // higher wins
};

// Keys "uplink" and "downlink" (wireline), "in/NAME" (packets that enter network instance NAME on their way to a
// session). Matches the subscriber's IP header (inside PPPoE or GTP-U).
struct api_acl {
	uint32_t default_action; // enum api_action
	uint32_t count;
	// The part api_acl_rule[count] follows.
};

// ---- policers -------------------------------------------------------------------------------------------------------

enum api_meter { API_SRTCM = 1 /* RFC 2697 */, API_TRTCM = 2 /* RFC 2698 */ };
enum api_colour_action { API_COLOUR_PASS = 0, API_COLOUR_DROP = 1, API_COLOUR_REMARK = 2 };

// Key: the profile's name. Rates in bytes per second, bursts in bytes, both of IP packets (the inner header and up).
struct api_policer {
	uint32_t type; // enum api_meter
	uint32_t pad;
	uint64_t cir, cbs;
	uint64_t pir; // trTCM
	uint64_t pbs; // trTCM: peak burst; srTCM: excess burst (EBS)
	uint8_t action[3]; // green, yellow, red: enum api_colour_action
	uint8_t dscp[3]; // for REMARK
	uint8_t colour_aware; // 1: the packet's DSCP gives its colour (AFx1, AFx2, AFx3: RFC 2597)
	uint8_t pad2;
};

// ---- scheduler ------------------------------------------------------------------------------------------------------

#define API_MAX_SUBPORTS 64
#define API_MAX_PIPE_PROFILES 32
#define API_TRAFFIC_CLASSES 4 // 0 highest, strict; 3 best effort with API_BE_QUEUES weighted queues
#define API_BE_QUEUES 4
#define API_MAX_SCHEDULER_CLASSES 64

struct api_pipe_profile {
	char name[API_NAME];
	uint64_t rate; // bytes per second, all classes
	uint64_t burst; // bytes
	uint64_t class_rate[API_TRAFFIC_CLASSES];
	uint8_t weight[API_BE_QUEUES];
	uint8_t pad[4];
};

struct api_subport {
	uint64_t rate; // bytes per second
	uint64_t burst;
	uint64_t class_rate[API_TRAFFIC_CLASSES];
	uint32_t pipes; // subscribers; rounded up to a power of two
	uint32_t worker; // that owns this subport's pipes, and so its subscribers
};

// Random early detection (RFC 7567) in the queues of a traffic class, by a queue's average length. All 0: none.
struct api_red {
	uint16_t min, max; // packets: below min nothing is dropped, from max on everything
	uint8_t probability; // towards max one in so many packets is dropped, or marked if it is ECN-capable (RFC 3168)
	uint8_t weight; // weight of the present length in the average: one in 2 to the power of this
	uint8_t pad[2];
};

// Key: the port's name. Four levels: port, subport (service group), pipe (subscriber), traffic class with its queues.
struct api_scheduler {
	uint32_t subports, profiles; // used entries below
	uint64_t rate; // bytes per second
	uint32_t frame_overhead; // bytes on the wire per frame beside the frame itself (preamble, gap, FCS)
	uint32_t queue_size[API_TRAFFIC_CLASSES]; // packets, power of two
	uint32_t pad;
	uint8_t dscp_class[64]; // DSCP -> class << 2 | queue, where the QFI has no class of its own
	uint8_t qfi_class[64]; // QFI -> the same; 0xff: use the DSCP
	struct api_red red[API_TRAFFIC_CLASSES];
	struct api_subport subport[API_MAX_SUBPORTS];
	struct api_pipe_profile profile[API_MAX_PIPE_PROFILES];
	// Length of a queue from which on packets of a drop precedence (RFC 2597 §6: DSCPs AFx2, AFx3; yellow and red)
	// are dropped, packets; 0: queue_size.
	uint32_t precedence_size[2][API_TRAFFIC_CLASSES];
};

// ---- network instances (TS 29.244 §8.2.4) ---------------------------------------------------------------------------

#define API_INSTANCE_INTERFACES 8
#define API_INSTANCE_ENDPOINTS 4
#define API_INSTANCE_POOLS 16
#define API_INSTANCE_GUARDED 64

// How packets of its interfaces are looked up, unless they are GTP-U for one of its endpoints.
enum api_lookup {
	API_LOOKUP_NONE = 0, // routed
	API_LOOKUP_DESTINATION = 1, // to a UE: N6, SGi
	API_LOOKUP_SOURCE = 2, // from a UE: the radio side of an emulated gNB or eNodeB
};

#define API_INSTANCE_NO_UE_TO_UE 1u // packets from one UE to another are dropped, not turned round (row G21)
#define API_INSTANCE_UE_OUT 4u // they leave by the route, like other packets, and may enter again
#define API_INSTANCE_PIN_PEER 2u // a G-PDU must come from the address that the session's FAR sends to (row G13)

// Key: the network instance's name. Endpoints and interfaces belong to one instance each. A local address is either an
// instance's endpoint (F-TEIDs of mobile sessions) or the local end of a path of wireline sessions.
struct api_instance {
	uint32_t lookup; // enum api_lookup
	uint32_t flags; // API_INSTANCE_*
	uint32_t interfaces, endpoints, pools, guarded; // used entries below
	uint16_t udp_port; // outer header removal UDP/IP (TS 29.244 §8.2.64 values 2, 3): port of our end; 0: none
	uint16_t pad;
	char interface[API_INSTANCE_INTERFACES][API_NAME];
	struct api_address endpoint[API_INSTANCE_ENDPOINTS]; // GTP-U addresses of ours, each of one of its interfaces
	// UE addresses: a packet to an address without a session is dropped, not routed
	struct api_address pool[API_INSTANCE_POOLS];
	// Hosts that no UE of any instance may send to: N4, CP functions (row A11)
	struct api_address guard[API_INSTANCE_GUARDED];
	// By QFI: 1 + DSCP of IP packets that leave by the instance without a tunnel, where the FAR has none; 0: kept
	uint8_t qfi_dscp[64];
	uint16_t mss; // as in api_session, for sessions whose packets enter or leave by the instance
	uint16_t pad2;
};

// ---- NAT44 ----------------------------------------------------------------------------------------------------------

enum api_nat_mode {
	API_NAT_BLOCKS = 1, // a subscriber gets blocks of ports as it needs them
	API_NAT_DETERMINISTIC = 2, // the n-th inside address has the n-th block (RFC 7422)
};
#define API_NAT_INSIDE 8
#define API_NAT_ADDRESSES 16
// Protocols without ports, translated by pairs of addresses.
#define API_NAT_GRE 1u
#define API_NAT_ESP 2u
#define API_NAT_6IN4 4u

// Key: the network instance by whose interfaces the packets leave (of destination look-up).
struct api_nat {
	uint32_t mode; // enum api_nat_mode
	uint16_t inside, addresses; // used entries below
	uint16_t port[2]; // external ports, first and last
	uint16_t block; // ports of a block, a power of two from 16 to 4096
	uint16_t blocks; // most blocks of a subscriber; deterministic: 1
	uint32_t mappings; // most at a time, evenly among the workers; 0: as many as there are ports
	// Seconds without a packet from the subscriber: UDP, TCP, TCP before and after the connection, ICMP queries.
	uint32_t udp, tcp, tcp_transitory, icmp;
	uint32_t hold; // seconds that a block rests between two subscribers
	struct api_address inside_prefix[API_NAT_INSIDE]; // IPv4: subscribers that are translated
	struct api_address address[API_NAT_ADDRESSES]; // IPv4 prefixes: external addresses
	uint32_t pairs; // most at a time, evenly among the workers; 0: none, and the next three are 0
	uint32_t pair_protocols; // API_NAT_GRE, ...
	uint32_t pairs_of_subscriber; // most at a time
	uint32_t pair_timeout; // seconds without a packet from the subscriber
};

// ---- NPTv6 ----------------------------------------------------------------------------------------------------------

#define API_NPTV6_PAIRS 16

// Key: the network instance by whose interfaces the packets leave (of destination look-up). RFC 6296: inside[i] becomes
// outside[i] and back. Both are IPv6 prefixes of equal length, 16 to 64 bits, without overlap.
struct api_nptv6 {
	uint32_t pairs; // used entries below
	struct api_address inside[API_NPTV6_PAIRS], outside[API_NPTV6_PAIRS];
};

// ---- mirrors --------------------------------------------------------------------------------------------------------

#define API_MAX_MIRRORS 64

enum api_mirror_to {
	API_MIRROR_PORT = 1, // frames as they came
	API_MIRROR_GTPU = 2, // IP packets in G-PDUs
	API_MIRROR_ERSPAN = 3, // frames as they came, ERSPAN type II (draft-foschiano-erspan)
};

enum api_mirror_direction { API_MIRROR_BOTH = 0, API_MIRROR_UPLINK = 1, API_MIRROR_DOWNLINK = 2 };

// Key: the mirror's name. Copies packets of sessions that name it or match `ue` and `instance`. A packet is copied at
// most once, however many mirrors its session has.
struct api_mirror {
	uint8_t to; // enum api_mirror_to
	uint8_t direction; // enum api_mirror_direction
	uint8_t protocol; // of packets; 0: any
	uint8_t dscp; // of the outer header, GTPU and ERSPAN
	uint32_t teid; // GTPU, host order
	char target[API_NAME]; // PORT: the port; GTPU: the path
	struct api_address collector; // ERSPAN: an address
	uint16_t session; // ERSPAN: session id, up to 1023
	uint16_t snap; // bytes of a copy at most; 0: whole
	uint32_t sample; // one packet in so many; 0: all
	uint32_t rate; // packets per second at most, all workers; 0: no limit
	struct api_address ue; // sessions whose UE address is in this prefix; family 0: any
	struct api_address remote; // packets to or from these hosts; family 0: any
	char instance[API_NAME]; // sessions with a rule that leads there, or a UE address there; empty: any
	uint16_t ue_port[2], remote_port[2]; // low, high (inclusive); 0..65535 any
};

// ---- counters -------------------------------------------------------------------------------------------------------

#define API_MAX_COUNTERS 64

// Key: the counter's name. Counts what sessions forward that name it or match `ue` and `instance`: their sum, or with
// `each` each session's. A count that reaches a watermark raises a WATERMARK event, once a period.
struct api_counter {
	uint64_t bytes, packets; // watermarks; 0: none. Bytes of IP packets
	uint32_t period; // seconds; 0: one without end
	uint32_t each; // 1: a session counts by one of these at most
	struct api_address ue; // sessions whose UE address is in this prefix; family 0: any
	char instance[API_NAME]; // sessions with a rule that leads there, or a UE address there; empty: any
	uint32_t pad;
};

// ---- clones -----------------------------------------------------------------------------------------------------

#define API_DEVICE 16 // IFNAMSIZ

// Key: the name of an interface of a core port. A kernel device (TAP) stands for it: it gets the packets that no node
// serves, and its packets leave by the interface. It outlives the data plane.
struct api_clone {
	char device[API_DEVICE];
	char netns[API_TEXT]; // file of the network namespace; empty: the data plane's own
};

// ---- GTSM -------------------------------------------------------------------------------------------------------

#define API_GTSM_HOPS 254

// Key: the name of an interface of a core port. BGP packets to our addresses must come from at most `hops` away: TTL or
// hop limit of at least 256 - hops (RFC 5082 §3).
struct api_gtsm {
	uint32_t hops; // 1: neighbours on the link
};

// Key: the name of an interface of a core port without offload. Packets that come in by it get this DSCP (RFC 2475).
struct api_remark {
	uint32_t dscp;
};

// ---- lines of access ports ------------------------------------------------------------------------------------------

#define API_MAX_LINES 256

// Key: an access port's name. Subscribers of its VLANs; the first range that matches a frame counts. Without a match,
// two tags identify one subscriber.
struct api_lines {
	uint32_t count, pad; // the part api_line_range[count] follows
};
struct api_line_range {
	uint16_t s_tag[2], c_tag[2]; // first and last; 0, 0: all, and none
	uint32_t flags; // API_LINE_*
	uint32_t pad;
};
#define API_LINE_ONE 1u // a VLAN is one subscriber's, with any MAC addresses; else each of these is one
#define API_LINE_TRUSTED 2u // circuit ids are the access node's

// ---- GTP-U paths ----------------------------------------------------------------------------------------------------

// Key: the path's name. A GTP-U peer (TS 29.281) and our end of the tunnel.
struct api_path {
	struct api_address local;
	struct api_address peer;
	uint16_t source_port; // 0: 2152
	uint8_t dscp; // of the outer header when the FAR has none
	uint8_t ttl; // 0: 64
	uint32_t echo_interval; // seconds between Echo Requests, 0 none (TS 29.281 §7.2.1: not below 60)
	uint8_t qfi_dscp[64]; // by QFI: 1 + DSCP of the outer header when the FAR has none; 0: dscp
};

// ---- sessions (words of TS 29.244) ----------------------------------------------------------------------------------

#define API_MAX_PDR 32
#define API_MAX_FAR 32
#define API_MAX_QER 32
#define API_MAX_URR 16
#define API_MAX_SDF 256 // of one session
#define API_MAX_ROUTES 16 // framed routes of one session
#define API_PDR_QERS 4
#define API_PDR_URRS 4
#define API_SESSION_INSTANCES 4
#define API_REDIRECT 128 // bytes of a redirect address

// TS 29.244 §8.2.2 (source) and §8.2.24 (destination)
enum api_source { API_FROM_ACCESS = 0, API_FROM_CORE = 1, API_FROM_SGI_LAN = 2, API_FROM_CP = 3 };
enum api_encap { API_ENCAP_NONE = 0, API_ENCAP_QINQ = 1, API_ENCAP_QINQ_PPPOE = 2 };

#define API_PDR_ENDPOINT 1u // matches the session's traffic endpoint (port, tags, PPPoE id, MAC)
#define API_PDR_FTEID 2u
#define API_PDR_UE_IP 4u // from access: source must be the UE's address; else: destination
#define API_PDR_QFI 8u
#define API_PDR_SDF 16u
#define API_PDR_UE4_ONLY 32u // with UE_IP: the IPv4 one of the UE's addresses only
#define API_PDR_UE6_ONLY 64u // with UE_IP: the IPv6 one of the UE's addresses only
#define API_PDR_FRAMED 128u // with UE_IP: addresses within the session's framed routes match as well

#define API_SDF_PROTOCOL 1u // the fields that a filter looks at
#define API_SDF_TOS 2u
#define API_SDF_SPI 4u
#define API_SDF_FLOW_LABEL 8u
#define API_SDF_DENY 16u // "deny": a packet that matches is none of the PDR's; later filters do not apply

// One alternative of a PDR's filters; an IPFilterRule with lists of ports becomes several. The first match decides.
struct api_sdf {
	struct api_address remote; // the remote prefix, family 0 any
	struct api_address local; // the UE's, or of a network behind it; family 0 any
	uint16_t remote_port[2]; // low, high (inclusive); 0..65535 any
	uint16_t local_port[2]; // the UE's
	uint32_t spi; // host order
	uint32_t flow_label;
	uint8_t protocol;
	uint8_t flags; // API_SDF_*
	uint8_t tos, tos_mask;
	// Of a traffic endpoint: bit p, priority code point p of the outer, of the inner VLAN tag matches; 0: any.
	uint8_t s_pcp, c_pcp;
	uint8_t pad[2];
};

// Which outer headers are removed. If the FAR adds a new GTP-U header, it keeps the extension headers that are to be
// forwarded (TS 29.281 §5.2.1). API_REMOVAL_CONTAINER removes the PDU Session Container (TS 29.244 §8.2.64).
enum api_removal { API_REMOVAL_NOTHING = 0, API_REMOVAL_OUTER = 1, API_REMOVAL_CONTAINER = 2 };

struct api_pdr {
	uint32_t precedence; // lower wins (TS 29.244 §8.2.11)
	uint16_t id;
	uint8_t source; // enum api_source
	uint8_t outer_header_removal; // enum api_removal
	uint16_t match; // API_PDR_*
	uint8_t instance; // index into the session's; 0xff: any
	uint8_t qers, urrs; // used entries below
	uint8_t pad[3];
	uint32_t teid; // host order
	struct api_address local; // of the F-TEID
	uint16_t sdf_first, sdf_count; // its filters among the session's
	uint32_t far;
	uint64_t qfis; // bit q: QFI q matches
	uint32_t qer[API_PDR_QERS];
	uint32_t urr[API_PDR_URRS];
};

#define API_FAR_DROP 1u // TS 29.244 §8.2.26; one of drop, forward, buffer
#define API_FAR_FORWARD 2u
#define API_FAR_BUFFER 4u
#define API_FAR_NOTIFY 8u // NOCP, with buffer or drop: DOWNLINK_DATA event for the first packet
#define API_FAR_DUPLICATE 16u // DUPL: copies go out by the FAR's api_far_more

enum api_outer { API_OUTER_NONE = 0, API_OUTER_GTPU = 1, API_OUTER_ENDPOINT = 2, API_OUTER_UDP = 3 };
// Which container carries a QFI (TS 38.415). NONE: no container, neither a QER's nor the received one.
enum api_pdu_type { API_PDU_NONE = 0, API_PDU_DL = 1, API_PDU_UL = 2 };

struct api_far {
	uint32_t id;
	uint8_t action; // API_FAR_*
	uint8_t destination; // enum api_source: to access, core, ...
	uint8_t outer; // enum api_outer: header creation
	uint8_t dscp; // transport level marking; 0xff: the path's, without outer header the instance's
	uint32_t teid; // host order
	uint16_t port; // of the peer, for API_OUTER_UDP
	uint8_t instance; // index into the session's; 0xff: none
	uint8_t pdu_type; // enum api_pdu_type
	char path[API_NAME]; // for API_OUTER_GTPU and API_OUTER_UDP
	// When it differs from the old FAR's: End Marker on the old tunnel (TS 29.244 §5.2.3.2, SNDEM)
	uint32_t end_marker;
	uint16_t buffer_packets; // BAR: most packets that wait; 0: 64
	uint16_t notify_delay; // BAR: milliseconds from the first packet to the event
	uint32_t buffer_ms; // BAR: longest wait of a packet; 0: the engine's buffer_seconds, 0xffffffff: no end
	uint8_t more; // 1 + index of the FAR's api_far_more; 0: none
	uint8_t pad[3];
};

enum api_redirect { API_REDIRECT_NONE = 0, API_REDIRECT_IP4 = 1, API_REDIRECT_IP6 = 2, API_REDIRECT_URL = 3 };

// Rare parts of FARs: duplicating parameters (TS 29.244 §7.5.2.3, outer GTP-U or none) and redirect information.
struct api_far_more {
	uint8_t duplicate_outer; // enum api_outer
	uint8_t duplicate_dscp; // 0xff: the path's
	uint8_t redirect; // enum api_redirect; URL: TCP port 80 is answered with 302, all else is dropped
	uint8_t pad;
	uint32_t duplicate_teid;
	char duplicate_path[API_NAME];
	char redirect_to[API_REDIRECT]; // text: address or URL
};

#define API_QER_RQI 1u // reflective QoS: the RQI is in downlink packets (TS 29.244 §8.2.88, TS 23.501 §5.7.5)

struct api_qer {
	uint32_t id;
	uint8_t gate_uplink, gate_downlink; // 0 open, 1 closed (TS 29.244 §8.2.7)
	uint8_t qfi;
	uint8_t flags; // API_QER_*
	// QER correlation id: sessions with the same id on one worker share the meters; 0: not shared
	uint32_t share;
	char uplink_policer[API_NAME]; // empty: not policed
	char downlink_policer[API_NAME];
	uint32_t pad2; // URRs follow, which are aligned to 8 bytes
};

#define API_URR_VOLUME 1u // measurement method
#define API_URR_DURATION 2u
#define API_URR_EVENT 4u

// Reporting triggers (TS 29.244 §8.2.19): octet 5 in bits 0..7, octet 6 in 8..15, octet 7 in 16..23. Others are
// refused.
#define API_URR_PERIO (1u << 0)
#define API_URR_VOLTH (1u << 1)
#define API_URR_TIMTH (1u << 2)
#define API_URR_QUHTI (1u << 3)
#define API_URR_START (1u << 4)
#define API_URR_STOPT (1u << 5)
#define API_URR_DROTH (1u << 6)
#define API_URR_LIUSA (1u << 7)
#define API_URR_VOLQU (1u << 8)
#define API_URR_TIMQU (1u << 9)
#define API_URR_EVETH (1u << 12)
#define API_URR_EVEQU (1u << 13)
#define API_URR_QUVTI (1u << 15)

// Usage report triggers (TS 29.244 §8.2.41), in the same manner.
#define API_USAGE_PERIO (1u << 0)
#define API_USAGE_VOLTH (1u << 1)
#define API_USAGE_TIMTH (1u << 2)
#define API_USAGE_QUHTI (1u << 3)
#define API_USAGE_START (1u << 4)
#define API_USAGE_STOPT (1u << 5)
#define API_USAGE_DROTH (1u << 6)
#define API_USAGE_IMMER (1u << 7)
#define API_USAGE_VOLQU (1u << 8)
#define API_USAGE_TIMQU (1u << 9)
#define API_USAGE_LIUSA (1u << 10)
#define API_USAGE_TERMR (1u << 11)
#define API_USAGE_MONIT (1u << 12)
#define API_USAGE_EVETH (1u << 15)
#define API_USAGE_EVEQU (1u << 16)
#define API_USAGE_TEBUR (1u << 17)
#define API_USAGE_QUVTI (1u << 19)

// Usage information (TS 29.244 §8.2.59): which usage a report has.
#define API_USAGE_BEFORE 1u // BEF: until the monitoring time
#define API_USAGE_AFTER 2u // AFT: from the monitoring time on

#define API_URR_HAS_VOLUME_QUOTA 1u // api_urr.flags: a quota of 0 stops traffic at once, an absent quota does not
#define API_URR_HAS_TIME_QUOTA 2u
#define API_URR_HAS_EVENT_QUOTA 4u
#define API_URR_INACTIVE 8u // INAM: no measurement
#define API_URR_COUNT_PACKETS 16u // MNOP: packets are reported too
#define API_URR_BEFORE_QOS 32u // MBQE: counted before the QERs
#define API_URR_START_OF_TRAFFIC 64u // ISTM: measurement of time begins at once, not at the first packet
#define API_URR_IP6 128u // of a session with an IP core side: IPv6 packets alone, without thresholds and quotas

enum { API_TOTAL = 0, API_UPLINK = 1, API_DOWNLINK = 2 }; // indices of volumes

// A URR keeps its counts when its session changes; a changed threshold or quota starts again (TS 29.244 §5.2.2.2).
// Every report starts the measurement again. Volumes are bytes of IP packets.
struct api_urr {
	uint32_t id;
	uint16_t method; // API_URR_VOLUME | ...
	uint16_t flags; // API_URR_HAS_* and on
	uint32_t triggers; // API_URR_PERIO | ...
	uint32_t query; // when it differs from the old URR's: the commit answers a report with IMMER
	uint64_t volume_threshold[3]; // 0: none
	uint64_t volume_quota[3]; // 0 where API_URR_HAS_VOLUME_QUOTA is set and all are 0: stop; else 0: none
	uint64_t subsequent_volume_threshold[3]; // after the monitoring time
	uint64_t monitoring_time; // CLOCK_REALTIME seconds; 0: none
	uint32_t time_threshold, time_quota, subsequent_time_threshold; // seconds
	uint32_t holding_time; // QHT, seconds without a packet; 0: none
	uint32_t validity_time; // QVT, seconds: then a report, and nothing passes where there is a quota; 0: none
	uint32_t period; // seconds
	// Inactivity detection time: seconds without a packet that time does not count; 0: all counts
	uint32_t inactivity;
	uint32_t event_threshold, event_quota;
	uint32_t quota_far; // FAR that packets follow when the quota is used up; 0: they are dropped
	uint32_t linked[2]; // URRs whose report makes this one report with LIUSA
	// If it differs from the old URR's, thresholds and quotas start again even with equal values
	uint32_t grant;
	uint32_t dropped_packets; // dropped downlink traffic threshold (TS 29.244 §8.2.49), for DROTH; 0: none
	uint64_t dropped_bytes; // the same in bytes
};

// Key: the session's name. Parts follow in this order: api_pdr, api_far, api_qer, api_urr, api_sdf, api_far_more,
// api_address (framed routes); empty ones are left out.
struct api_session {
	uint64_t seid;
	uint16_t worker; // owner
	uint8_t encap; // enum api_encap; NONE: the session has no traffic endpoint (F-TEIDs and UE addresses only)
	uint8_t pad;
	uint16_t outer_tpid; // of what we send: 0x8100 or 0x88a8
	uint16_t s_tag, c_tag; // 0: none
	uint16_t pppoe_session;
	uint8_t mac[6]; // of the home gateway
	uint16_t mru; // L3 bytes the subscriber can take; 0: the port's MTU (minus 8 for PPPoE)
	char port[API_NAME]; // access port; encap NONE: core port that shapes the downlink into tunnels, empty: none
	struct api_address ue_ip4;
	struct api_address ue_ip6; // prefix
	uint32_t subport, pipe; // scheduler place at `port`; ignored when it has no scheduler
	char pipe_profile[API_NAME];
	char instance[API_SESSION_INSTANCES][API_NAME];
	uint32_t inactivity; // seconds without a packet after which an INACTIVE event is raised; 0: never
	uint16_t pdrs, fars, qers, urrs, sdfs, mores, routes;
	uint16_t discard; // when it differs from the old session's, packets that wait are dropped (§8.2.31, DROBU)
	// A number of the CP function, or set: where packets wait, none of these takes all of the room
	uint32_t association;
	uint32_t pad2;
	char mirror[API_NAME]; // its packets are copied if this mirror exists; empty: none
	char counter[API_NAME]; // they are counted there if this counter exists; empty: none
	// Of a PPPoE subscriber: LCP echo (RFC 1661 §5.8). We answer requests with our magic number and send one per
	// interval; so many unanswered ones cause an LCP_DOWN event. Any echo of the peer counts as an answer.
	uint32_t lcp_magic; // ours; 0: none was negotiated
	uint16_t lcp_interval; // seconds; 0: none are sent
	uint8_t lcp_count; // 0 with an interval: 3
	uint8_t lcp_opened; // 1: LCP is open, the data plane answers; 0: its echoes go to the control plane
	char dnn[API_NAME]; // under which they count in API_TABLE_TRAFFIC; cut, where it is longer
	// Upper limit of a SYN's Maximum Segment Size over IPv4; 20 less over IPv6. 0: unchanged; API_MSS_PATH: by the
	// MTU of both ways. The smallest of several limits counts.
	uint16_t mss;
	uint8_t pad3[6];
};
#define API_MSS_PATH UINT16_MAX
#define API_MSS_MIN 536u // RFC 9293 §3.7.1: a host's default

// ---- events ---------------------------------------------------------------------------------------------------------

// A URR's measurement since its last report. Times are CLOCK_REALTIME nanoseconds, 0: no packet.
struct api_usage {
	uint64_t seid;
	uint32_t urr;
	uint32_t sequence; // UR-SEQN: from 0, rises by one with each report of this URR
	uint32_t triggers; // API_USAGE_*
	uint32_t query; // api_urr.query of an immediate report
	uint32_t duration; // seconds
	uint32_t events;
	uint32_t information; // API_USAGE_BEFORE | ...
	uint32_t pad;
	uint64_t bytes[3], packets[3]; // total, uplink, downlink
	uint64_t start_ns, end_ns, first_ns, last_ns;
};

enum api_event_type {
	API_EVENT_USAGE = 1, // usage
	API_EVENT_DOWNLINK_DATA = 2, // rule (PDR), dscp, qfi: a packet waits for an idle UE (DLDR)
	API_EVENT_ERROR_INDICATION = 3, // teid and peer: the peer does not know this tunnel (ERIR)
	API_EVENT_PATH_DOWN = 4, // local, peer
	API_EVENT_PATH_UP = 5, // local, peer; rule = 1: the peer restarted
	API_EVENT_INACTIVE = 6, // user plane inactivity (UPIR)
	API_EVENT_BUFFER_FULL = 7, // rule (FAR): packets that wait for the UE were dropped; usage.packets, usage.bytes
	API_EVENT_MISSED = 8, // usage.packets[0]: events that the limits suppressed
	// A subscriber got or lost a block of ports: local is the external address, peer the subscriber's, rule the
	// first port << 16 | the last one, usage.start_ns the time.
	API_EVENT_NAT_ALLOCATE = 9,
	API_EVENT_NAT_RELEASE = 10,
	// A counter (its name) reached a watermark: usage has bytes[0], packets[0] and the period's start_ns. With
	// `each`: of the session.
	API_EVENT_WATERMARK = 11,
	API_EVENT_LCP_DOWN = 12, // the session does not answer LCP echo; once, until an echo arrives
};

// Kept until acknowledged, and sent again to the next subscriber. A deleted session may still have USAGE events, and no
// others.
struct api_event {
	uint64_t sequence; // rises by one
	uint64_t boot_id; // as in api_hello
	uint32_t type; // enum api_event_type
	uint32_t rule;
	uint64_t seid; // 0: of no session
	char session[API_NAME];
	uint32_t teid; // host order
	uint8_t dscp, qfi;
	uint8_t pad[2];
	struct api_address local, peer;
	struct api_usage usage;
	char counter[API_NAME];
};

// All events up to this one have been dealt with.
struct api_acknowledge {
	uint64_t sequence;
};

// ---- synth streams  -------------------------------------------------------------------------------------------------
// Packets are made inside the graph from a template and rules that vary fields per flow. Packets that leave are
// compared with a second template under the same rules. The expectation comes from the control plane's encoder, which
// shares no code with the gateway.

#define API_SYNTH_TEMPLATE 192 // bytes of header; the rest of the frame is filled with a pattern
#define API_SYNTH_FIELDS 12

enum api_field { API_FIELD_NONE = 0, API_FIELD_ADD = 1 /* base + i */, API_FIELD_IP4_SUM = 2 };

// value(flow) = template value + (flow / divide % modulo) * step, written big-endian at `offset`, `width` bytes.
// IP4_SUM: recompute the IPv4 header checksum of the header at `offset` (IHL 5), after all other fields.
struct api_synth_field {
	uint16_t offset;
	uint8_t width; // 1..8
	uint8_t type; // enum api_field
	uint32_t divide; // at least 1
	uint32_t modulo; // 0: none
	uint32_t step;
};

struct api_synth_template {
	uint16_t length; // bytes of template
	uint16_t fields;
	uint32_t pad;
	uint8_t bytes[API_SYNTH_TEMPLATE];
	uint8_t mask[API_SYNTH_TEMPLATE]; // expectation only: bits that must be equal
	struct api_synth_field field[API_SYNTH_FIELDS];
};

// Key: the stream's name. A tag of 16 bytes (magic, stream, flow, sequence) ends every frame's payload.
struct api_synth {
	char port[API_NAME]; // where packets enter
	char sink[API_NAME]; // where they must leave
	uint32_t flows;
	uint32_t share; // weight against the other streams of the same port
	uint32_t check_every; // compare one packet in so many; 0: none
	uint16_t sizes; // entries used below
	uint16_t random_order; // 1: pseudo-random flow order from `seed`, 0: in turn
	uint16_t size[8]; // frame bytes without FCS; every flow's n-th packet uses size[n % sizes]
	uint64_t seed;
	uint64_t rate; // packets per second, 0: as fast as the graph takes them
	uint64_t limit; // packets, 0: no end
	// Flows are owned by worker (flow / worker_divide) % worker_modulo, as RSS would deliver them; 0: any
	uint32_t worker_modulo;
	uint32_t worker_divide;
	struct api_synth_template in, out;
};

// ---- commands -------------------------------------------------------------------------------------------------------

struct api_stream_command {
	char name[API_NAME]; // empty: all
	uint32_t start; // 1 start, 0 stop
	uint32_t pad;
};

// ---- tables ---------------------------------------------------------------------------------------------------------

enum api_table {
	API_TABLE_PORT = 1,
	API_TABLE_NODE = 2,
	API_TABLE_DROP = 3,
	API_TABLE_WORKER = 4,
	API_TABLE_SESSION = 5,
	API_TABLE_ROUTE = 6,
	API_TABLE_NEIGHBOUR = 7,
	API_TABLE_ACL = 8,
	API_TABLE_SCHEDULER = 9,
	API_TABLE_EDGE = 10,
	API_TABLE_SYNTH = 11,
	API_TABLE_TOTAL = 12,
	API_TABLE_PUNT = 13,
	API_TABLE_PATH = 14,
	API_TABLE_RULE = 15, // of one session (key), or of all
	API_TABLE_URR = 16,
	API_TABLE_INSTANCE = 17,
	API_TABLE_EVENT = 18,
	API_TABLE_HOLDER = 19, // of packet buffers
	API_TABLE_NAT = 20,
	API_TABLE_NAT_BLOCK = 21, // blocks that subscribers have, of one instance (key), or of all
	API_TABLE_MIRROR = 22,
	API_TABLE_COUNTER = 23,
	API_TABLE_NPTV6 = 24, // of one instance (key), or of all: a row for each pair of prefixes
	API_TABLE_CLONE = 25,
	API_TABLE_GTSM = 26,
	API_TABLE_CHANNEL = 27, // of frames between subscribers and the control plane
	API_TABLE_TRAFFIC = 28,
	API_TABLE_MSS = 29,
	API_TABLE_REMARK = 30,
	API_TABLE_COUNT = 31,
};

struct api_stats_request {
	uint32_t table; // enum api_table
	uint32_t limit; // rows, 0: all
	// One object's rows; empty: all. SESSION, RULE: a UE address, too. ROUTE: a prefix, or an address that it leads
	// to.
	char key[API_NAME];
};

// ---- traces ------------------------------------------------------------------------------------------------------

#define API_MAX_TRACES 4u
#define API_TRACE_SECONDS 3600u // most that one lasts
#define API_TRACE_SILENCE 5u // seconds without a poll after which a trace ends
#define API_TRACE_RATE 10000u // what rate 0 means
#define API_TRACE_INSTRUCTIONS 4096u // of one program
#define API_TRACE_KEYS 256u
#define API_TRACE_FRAME 9216u // bytes of a hypothetical packet
#define API_TRACE_SNAP 9216u

#define API_TRACE_STEPS 1u // rows of each stage with its words; else only of frames
#define API_TRACE_RECEIVED 2u // frames as received,
#define API_TRACE_INSIDE 4u // as IP packets behind what took the encapsulation off,
#define API_TRACE_SENT 8u // as sent or dropped
#define API_TRACE_LATE 16u // only packets that the fast path leaves: all that are dropped are among them
#define API_TRACE_HYPOTHETICAL 32u // nothing but the frame that follows, which is not sent
#define API_TRACE_EDGES 64u // nothing but the counts of api_edge_row

// Begins a trace. A packet is chosen if it came by the port, has one of the keys (if any) and matches one of the
// programs (if any). A program sees the frame, and the outer and inner IP packet.
struct api_trace {
	uint32_t flags; // API_TRACE_*
	uint32_t seconds; // it lasts at most
	uint32_t packets; // that it follows at most; 0: no limit
	uint32_t rate; // packets per second and worker that it follows at most; more are counted as missed
	uint32_t sample; // one packet of so many; 0: all
	uint32_t snap; // bytes of a frame's row at most
	uint32_t keys; // of api_trace_key
	uint32_t frame_code,
		packet_code; // of api_trace_instruction: classic BPF for frames of Ethernet, for IP packets
	uint32_t octets; // of the hypothetical frame
	char port[API_NAME]; // empty: any
	// The parts api_trace_key[keys], api_trace_instruction[frame_code], api_trace_instruction[packet_code],
	// api_trace_octets[] follow.
};

enum api_trace_by { API_TRACE_BY_ADDRESS = 1, API_TRACE_BY_TEID = 2, API_TRACE_BY_ENDPOINT = 3 };

struct api_trace_key {
	uint32_t by; // enum api_trace_by
	uint32_t teid; // of a G-PDU, host order
	struct api_address address; // prefix of an IP packet's source or destination, the outer or the inner one
	uint16_t s_tag, c_tag; // of a subscriber's endpoint
	uint16_t pppoe_session; // 0: none
	uint8_t mac[6]; // its source or destination
};

struct api_trace_instruction { // struct sock_filter
	uint16_t code;
	uint8_t jt, jf;
	uint32_t k;
};

struct api_trace_octets {
	uint8_t octet[64];
};

struct api_trace_poll {
	uint32_t trace; // api_trace_state.trace
	uint32_t stop; // 1: it ends
};

enum api_trace_end {
	API_TRACE_RUNS = 0,
	API_TRACE_TIME = 1,
	API_TRACE_PACKETS = 2,
	API_TRACE_STOPPED = 3, // by the client, or not polled
};

struct api_trace_state {
	uint32_t trace; // its number
	uint32_t end; // enum api_trace_end
	uint64_t packets; // followed
	uint64_t missed; // chosen, and not followed: more than `rate`
	uint64_t lost; // rows for which there was no room
	uint64_t tsc_hz;
};

enum api_trace_what {
	API_TRACE_ENTERED = 1, // by a port, or it was chosen behind the fast path
	API_TRACE_STEP = 2, // a stage, and to where it led
	API_TRACE_WENT = 3, // nothing follows: sent, dropped, punted, held
	API_TRACE_DATA = 4, // bytes of the row before it of the same packet and worker: a frame
};

// Rows of one packet come in order from one worker; after a hand-over they continue among another worker's.
struct api_trace_row {
	uint32_t packet; // number
	uint8_t what; // enum api_trace_what
	uint8_t worker;
	uint16_t length; // bytes of data
	uint64_t ns; // CLOCK_REALTIME
	uint32_t ticks; // per packet of the stage's vector
	uint32_t frame; // DATA: bytes of the frame; this row has a part
	uint16_t of; // DATA: API_TRACE_RECEIVED, _INSIDE, _SENT
	uint16_t outcome; // WENT: enum api_trace_outcome
	uint32_t traces; // bits: those that follow it
	char node[32], next[32];
	char port[API_NAME]; // by which it came or leaves
	uint8_t data[352]; // words: UTF-8
};

enum api_trace_outcome {
	API_TRACE_NOWHERE = 0, // held or consumed by the stage
	API_TRACE_LEFT = 1,
	API_TRACE_DROPPED = 2,
	API_TRACE_PUNTED = 3,
	API_TRACE_HANDED = 4, // to another worker
};

// ---- frames of subscribers ------------------------------------------------------------------------------------------

#define API_FRAME_MOST 9216u // octets of one
#define API_CHANNEL_MOST 32768u // bytes of one message's body, either way

// Why a frame comes up.
enum api_frame_reason {
	API_FRAME_PPPOE_DISCOVERY = 1,
	API_FRAME_PPP_CONTROL = 2,
	API_FRAME_DHCP = 3,
	API_FRAME_DHCP6 = 4,
	API_FRAME_ROUTER_SOLICITATION = 5,
	API_FRAME_FIRST_PACKET = 6,
	API_FRAME_NEIGHBOUR_ANSWER = 7, // a subscriber's, by ARP or neighbour discovery, to a question of ours
};

// A frame of an access port without its addresses and tags. The part api_frame_octets[(length + 7) / 8] follows, none
// when length is 0.
struct api_frame {
	char port[API_NAME];
	uint64_t seid; // up: of the session at this endpoint; 0: none
	uint32_t length; // octets behind the EtherType
	uint16_t ethertype;
	uint16_t tpid; // of the outer tag: 0x8100 or 0x88a8; 0 without tags
	uint16_t s_tag, c_tag; // 0: none
	uint8_t mac[6]; // up: its source; down: its destination, the source is the port's
	uint8_t reason; // enum api_frame_reason; down: 0
	uint8_t pad[5];
};

struct api_frame_octets {
	uint8_t octet[8];
};

struct api_frame_port {
	char name[API_NAME];
	uint8_t mac[6];
	uint8_t pad[2];
	uint8_t link_local[16]; // IPv6: the subscribers' router address, which they ask for
};

#define API_OFFLOAD_WHY 128
#define API_CLONE_WHY 128

// How received packets reach their subscribers' workers. A worker hands over packets of others.
enum api_steering {
	API_STEERING_NONE = 0, // there is one worker
	API_STEERING_SOFTWARE = 1, // nothing else
	API_STEERING_RSS = 2, // the device hashes the outer IP header
	API_STEERING_RSS_INNER = 3, // fields by which subscribers differ: TEID, inner IP header; PPPoE session, VLANs
	API_STEERING_FLOW_RULES = 4, // the same, by rules of rte_flow
};

struct api_port_row {
	char name[API_NAME];
	char driver[API_NAME];
	uint32_t role, mtu, up, speed_mbps;
	uint8_t mac[6];
	uint8_t pad[2];
	uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes;
	uint64_t rx_missed, rx_no_buffer, tx_dropped;
	uint32_t offload; // enum api_offload: in force
	uint32_t offload_entries; // that the device has now
	uint64_t offload_refused; // flows left to the software, for its own reasons or its surroundings'
	char offload_why[API_OFFLOAD_WHY]; // not more
	uint32_t steering; // enum api_steering: in force
	uint32_t gone; // 1: its device was taken away
	uint64_t rx_errors, tx_errors; // frames that the device found bad, and did not send
};

struct api_node_row {
	char name[64];
	uint32_t worker, pad;
	uint64_t calls, packets, ticks;
};

struct api_edge_row {
	char from[64];
	char to[64];
	uint64_t packets; // while the edges are watched (API_TRACE_EDGES); they only rise
};

struct api_drop_row { // also the punt table
	char name[64];
	char text[192];
	uint64_t packets;
};

struct api_worker_row {
	uint32_t worker;
	int32_t cpu;
	uint64_t walks, busy_ticks, idle_ticks, packets;
	uint64_t sessions, flows, flow_inserts, flow_evictions, handed_over;
	uint64_t longest_us, stalls,
		stalled_us; // the longest walk; walks of more than 10 ms and sleeps as late, all of them together
};

// in + originated = out + punted + held + dropped + merged
struct api_total_row {
	uint64_t in, originated, out, punted, held, dropped, merged;
	uint64_t buffers, buffers_free;
	uint64_t sessions, commits, refused_commits;
	uint64_t clients,
		clients_closed; // of the control socket: now; closed because they kept it waiting, or were too many
};

struct api_holder_row {
	char name[API_NAME];
	uint64_t held, limit; // packet buffers
};

struct api_session_row {
	char name[API_NAME];
	uint64_t seid;
	uint32_t worker, pdrs;
	char port[API_NAME];
	uint16_t s_tag, c_tag, pppoe_session, encap;
	uint8_t mac[6];
	uint8_t pad[2];
	struct api_address ue_ip4, ue_ip6;
	uint32_t teid_local, teid_peer; // of the first PDR and FAR
	uint64_t uplink_packets, uplink_bytes, downlink_packets, downlink_bytes;
	uint64_t uplink_dropped, downlink_dropped; // by its own rules, as api_rule_row.dropped
	uint64_t buffered; // packets that wait now
	uint32_t subport, pipe; // of the scheduler of `port`
	char pipe_profile[API_NAME]; // empty: the session has no pipe
};

#define API_NO_QFI UINT32_MAX // in rows

// Of a rule now.
#define API_ROW_GATE_CLOSED 1u // nothing passes
#define API_ROW_QUOTA_USED 2u // the same: a quota of one of its URRs is used up
#define API_ROW_REDIRECTS 4u // the FAR's action is to redirect

struct api_rule_row {
	char session[API_NAME];
	uint32_t pdr, far, precedence, source, destination, action;
	uint32_t teid_local, teid_peer;
	struct api_address local, peer;
	// Each packet counts once: forwarded or answered; dropped by its gate, FAR, meters, quotas, redirection, buffer
	// or limit of flows; waiting.
	uint64_t packets, bytes, dropped, buffered;
	uint32_t qers, urrs; // used entries below: ids
	uint32_t qer[API_PDR_QERS];
	uint32_t urr[API_PDR_URRS];
	uint32_t qfi; // API_NO_QFI: none
	uint32_t pad;
	uint64_t mbr; // bytes a second above which its meters drop; 0: they never do
	uint32_t flags; // API_ROW_*
	uint32_t pad2;
};

// Counts since the last report, and the rest of the quota (UINT64_MAX: no quota).
struct api_urr_row {
	char session[API_NAME];
	uint32_t urr, sequence;
	uint64_t bytes[3], packets[3];
	uint64_t quota_left[3];
	uint32_t duration, exhausted;
};

struct api_instance_row {
	char name[API_NAME];
	uint32_t lookup, tunnels, ue_addresses, pad;
	uint64_t unknown_ue, unknown_teid;
};

struct api_event_row {
	uint32_t type, subscribers;
	uint64_t raised, acknowledged, suppressed, waiting;
};

struct api_nat_row {
	char name[API_NAME]; // instance
	uint32_t mode, addresses, block, blocks; // blocks: of all addresses
	uint32_t used, resting, subscribers, pad; // blocks; subscribers that have one
	uint64_t mappings, made; // now; since start
	uint64_t unreported; // block events that wait for room in the queue of events
	uint64_t pairs, pairs_made, pairs_refused; // now; since start; packets that would have made one
};

struct api_nat_block_row {
	char name[API_NAME];
	char session[API_NAME];
	struct api_address outside, inside; // inside: whom it was given for
	uint16_t port[2];
	uint32_t worker, mappings, pad;
};

struct api_nptv6_row {
	char name[API_NAME]; // instance
	struct api_address inside, outside;
	uint64_t packets_out, packets_in; // translated
};

struct api_mirror_row {
	char name[API_NAME];
	char target[API_NAME]; // port or path
	struct api_address collector;
	uint32_t to; // enum api_mirror_to
	uint64_t packets, bytes; // copies, and their bytes without what was put in front
	uint64_t limited, no_buffer,
		failed; // not copied: beyond the rate, no packet buffer; copied, and there was no way
};

struct api_counter_row {
	char name[API_NAME];
	uint32_t each, sessions; // sessions: that count now
	uint64_t packets, bytes; // since it came
	uint64_t period_packets, period_bytes; // 0 with `each`
	uint64_t reached; // watermarks
	uint64_t mark_packets, mark_bytes;
};

struct api_clone_row {
	char name[API_NAME]; // of the interface
	char device[API_DEVICE];
	char netns[API_TEXT];
	uint32_t attached; // 0: why says what is missing
	uint32_t link; // of the port, as set in the kernel
	uint32_t mtu; // of the interface
	uint32_t pad;
	uint64_t to_kernel, from_kernel; // frames
	uint64_t refused; // frames that the kernel did not take
	uint64_t dropped; // frames of the kernel's that could not leave
	char why[API_CLONE_WHY];
};

struct api_gtsm_row {
	char name[API_NAME]; // of the interface
	uint32_t hops, pad;
	uint64_t passed, dropped; // BGP packets to our addresses
};

struct api_remark_row {
	char name[API_NAME]; // of the interface
	uint32_t dscp, pad;
	uint64_t packets, remarked; // that came in; those of them with another DSCP
};

struct api_channel_row {
	char name[API_NAME]; // of the reason; "down": from the control plane
	uint64_t frames; // that the control plane, or the port's worker, was given
	// Dropped: over the limit of the subscriber, line, S-tag, port
	uint64_t over_subscriber, over_line, over_s_tag, over_port;
	uint64_t full; // dropped: there was no room
	uint64_t refused; // up: the channel has no reader; down: not for an access port, or malformed
};

// Packets forwarded by rules, including those of deleted sessions; each is in one row. Counts are some seconds old.
struct api_traffic_row {
	char instance[API_NAME]; // by which packets came; empty: none, or any
	char dnn[API_NAME]; // of the session; empty: none
	uint32_t qfi; // of the rule; API_NO_QFI: none
	uint32_t other; // 1: traffic without a row of its own; the names are empty
	uint64_t uplink_packets, uplink_bytes, downlink_packets, downlink_bytes;
};

// SYNs whose MSS was lowered, by the network instance that they leave by (uplink) or entered by (downlink); empty:
// none.
struct api_mss_row {
	char name[API_NAME];
	uint64_t uplink, downlink;
	uint64_t malformed; // left alone: their options cannot be read
};

struct api_route_row {
	struct api_address prefix, via;
	char interface[API_NAME];
	uint32_t resolved, pad;
	char vrf[API_NAME];
	uint32_t discard, pad2; // enum api_discard
};

struct api_neighbour_row {
	char interface[API_NAME];
	struct api_address address;
	uint8_t mac[6];
	uint8_t state; // 1 incomplete, 2 reachable, 3 stale, 4 static
	uint8_t pad;
	uint32_t age_s, held;
};

struct api_acl_row {
	char name[API_NAME];
	uint32_t rule; // index in the object; 0xffffffff: the default action
	uint32_t action;
	uint64_t packets;
};

struct api_scheduler_row {
	char port[API_NAME];
	uint32_t subport, pipe; // pipe 0xffffffff: whole subport
	uint32_t traffic_class, queued;
	uint64_t packets, bytes, dropped_packets, dropped_bytes;
	uint64_t dropped_yellow, dropped_red; // of dropped_packets; of a whole subport
};

struct api_synth_row {
	char name[API_NAME];
	uint64_t offered, offered_bytes, received, received_bytes;
	uint64_t checked, wrong, lost, stray;
	uint8_t wrong_frame[256]; // the first wrong frame, for the report
	uint32_t wrong_length, wrong_offset;
};

struct api_path_row {
	char name[API_NAME];
	struct api_address local, peer;
	uint64_t echo_sent, echo_received, error_indications_sent, error_indications_received;
	uint32_t recovery, alive;
};

#endif
