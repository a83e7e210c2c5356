// SPDX-License-Identifier: Apache-2.0
// Reasons for dropping packets of known sessions, which all session nodes share.
#include "core/node.h"
#include "session/match.h"

DROP_REASON(uplink_no_pdr, "uplink-no-pdr",
	"the session is known, but none of its uplink PDRs matches the packet. See show rule: the CP function's rules")
DROP_REASON(downlink_no_pdr, "downlink-no-pdr",
	"the session is known, but none of its downlink PDRs matches the packet. See show rule: the CP function's "
	"rules")
DROP_REASON(uplink_gate, "uplink-gate-closed",
	"the QER's uplink gate is closed. See show rule, column GATE: the session's QERs")
DROP_REASON(downlink_gate, "downlink-gate-closed",
	"the QER's downlink gate is closed. See show rule, column GATE: the session's QERs")
DROP_REASON(uplink_far, "uplink-far-drop",
	"the FAR says drop. See show rule, column ACTION: the session's FARs or access list")
DROP_REASON(downlink_far, "downlink-far-drop",
	"the FAR says drop. See show rule, column ACTION: the session's FARs or access list")
DROP_REASON(spoofed, "source-spoofed",
	"the subscriber sent from an address that it does not have. Compare it with show session: the file or the CP "
	"function may be wrong")
DROP_REASON(not_ue, "destination-not-ue",
	"the packet in the tunnel is not for an address of the session's UE. See show rule: the CP function's rules")
DROP_REASON(
	infrastructure, "subscriber-to-gateway", "the subscriber sent to an address of the gateway's own. On purpose")
DROP_REASON(gtpu, "subscriber-gtpu",
	"the subscriber sent GTP-U, which engine.drop_ue_gtpu forbids. On purpose: see engine.drop_ue_gtpu")
DROP_REASON(subscriber_flows, "new-flows-subscriber",
	"the first packet of a flow: the subscriber begins more than engine.rates.subscriber_new_flows. A scan or "
	"flood, or the limit is low: show session --sort uplink_dropped")
DROP_REASON(worker_flows, "new-flows-worker",
	"the first packet of a flow: the worker's subscribers together begin more than engine.rates.new_flows. A "
	"flood, or the limit is low: show session --sort uplink_dropped")

const struct reason *session_reason(enum session_why why, int uplink)
{
	static const struct reason *const reasons[WHY_COUNT][2] = {
		[WHY_NO_PDR] = {&downlink_no_pdr, &uplink_no_pdr},
		[WHY_GATE] = {&downlink_gate, &uplink_gate},
		[WHY_FAR] = {&downlink_far, &uplink_far},
		[WHY_SPOOFED] = {&not_ue, &spoofed},
		[WHY_GATEWAY] = {&infrastructure, &infrastructure},
		[WHY_GTPU] = {&gtpu, &gtpu},
		[WHY_SUBSCRIBER_FLOWS] = {&subscriber_flows, &subscriber_flows},
		[WHY_WORKER_FLOWS] = {&worker_flows, &worker_flows},
	};

	return reasons[why][uplink != 0];
}
