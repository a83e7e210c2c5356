// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

// The operator's text of each name: a name without one fails the test.
var (
	rejectTexts = [rejectCause]string{
		rejectShort:          "shorter than its header says: another program sends to the port",
		rejectVersion:        "another version than 1: it is answered with ours",
		rejectLength:         "the length of the header does not fit the datagram",
		rejectHeader:         "a session message without SEID, or a node message with one",
		rejectUnknownType:    "a message type that TS 29.244 does not have",
		rejectUnexpectedType: "a message that only a UP function sends",
		rejectNotAllowed:     "see `pfcp.peers` and `allow_unknown`: address and `node_id` must fit",
		rejectNodeTaken:      "another address has this node id: see `isthmus show association`",
		rejectAssociations:   "see `pfcp.limits.associations`",
		rejectNoAssociation:  "a session message of a peer without association: the peer sets one up first",
		rejectUnknownRate:    "see `pfcp.rates.heartbeats`: too much from unknown addresses",
		rejectPeerRate:       "see `pfcp.rates.requests`: too much from this peer",
		rejectQueue:          "a queue was full: CPU of the control plane",
		rejectCongestion:     "too many requests are in work: the peer waits and repeats",
		rejectAnswersFull:    "too many answers are kept for repetitions: a peer with very many requests",
		rejectUnmatched:      "a response that no request of ours waits for: it came late, or is forged",
		rejectResponse:       "a response that cannot be decoded: capture it",
		rejectHeartbeat:      "a heartbeat that cannot be decoded: capture it",
		rejectStopping:       "the control plane is ending: its successor answers the repetition",
	}
	causeTexts = map[pfcp.Cause]string{
		pfcp.CauseRejected:               "for a reason without a cause of its own",
		pfcp.CauseContextNotFound:        "the session does not exist, or belongs to another CP function",
		pfcp.CauseMandatoryIEMissing:     "an IE that must be there is missing",
		pfcp.CauseConditionalIEMissing:   "an IE that must be there in this case is missing",
		pfcp.CauseInvalidLength:          "the length of an IE is wrong",
		pfcp.CauseMandatoryIEIncorrect:   "the value of an IE cannot be used",
		pfcp.CauseInvalidForwarding:      "a FAR's forwarding policy is not known",
		pfcp.CauseInvalidFTEIDAllocation: "see `pfcp.fteid`: who gives F-TEIDs",
		pfcp.CauseNoAssociation:          "no association with this node id",
		pfcp.CauseRuleFailure:            "a rule cannot be installed: the refusal names it",
		pfcp.CauseCongestion:             "too many requests are in work",
		pfcp.CauseNoResources:            "no room: see `isthmus show total`, `pfcp.limits`, `engine.limits`",
		pfcp.CauseServiceNotSupported:    "the request needs a function that is not there",
		pfcp.CauseSystemFailure:          "the data plane is away, or refused the rules: see `isthmus status`",
		pfcp.CauseRedirectionRequested:   "another UP function is to be asked",
		pfcp.CauseAllDynamicAddresses:    "all UE addresses of the pool are given: see `instances[].pools`",
	}
	eventTexts = [events]string{
		eventAssociated:           "an association was set up",
		eventReleased:             "a CP function released its association",
		eventPathFailed:           "heartbeats are not answered",
		eventPathRestored:         "heartbeats are answered again",
		eventRestarted:            "the peer has a newer recovery time stamp: its sessions are gone",
		eventHeadlessExpired:      "`pfcp.headless` passed after a failure: the sessions are gone",
		eventAdopted:              "a member of the SMF set took over sessions",
		eventRetransmitted:        "a request of ours was sent again",
		eventTimedOut:             "a request of ours was given up",
		eventCached:               "a repeated request got the kept answer",
		eventInProgress:           "a repeated request was dropped: the first one is in work",
		eventEvicted:              "an answer was dropped before its time, for want of room",
		eventSendFailed:           "the kernel did not send a datagram: routes, addresses",
		eventSendQueueFull:        "the queue of a socket was full: CPU, a slow link",
		eventReceiveFailed:        "the kernel reported an error of the socket",
		eventStoreFailed:          "the store was not written: room on its file system",
		eventSEIDAlarm:            "many requests for sessions that do not exist",
		eventHeartbeatUnconfirmed: "a newer time stamp that our own heartbeat did not confirm",
		eventUnreadable:           "an optional IE was left out: it cannot be decoded",
		eventSetRefused:           "a peer claimed an SMF set that it is no member of",
	}
)

func TestReferencePFCP(t *testing.T) {
	name := func(s fmt.Stringer) string { return "`" + s.String() + "`" }
	var rejected, causes, happened [][]string
	for r := accepted + 1; r < rejectCause; r++ {
		rejected = append(rejected, []string{name(r), testkit.Sentence(rejectTexts[r])})
	}
	for _, c := range slices.Sorted(maps.Keys(causeNames)) {
		text := testkit.Sentence(causeTexts[c])
		causes = append(causes, []string{fmt.Sprint(uint8(c)), name(causeReject(c)), text})
	}
	for e := range events {
		happened = append(happened, []string{"`" + eventNames[e] + "`", testkit.Sentence(eventTexts[e])})
	}
	for _, row := range slices.Concat(rejected, causes, happened) {
		testkit.ErrorIf(t, row[len(row)-1] == "", "%v has no text", row)
	}
	var p testkit.Page
	p.Text("Names in `isthmus show n4` and in `isthmus_pfcp_…` metrics.")
	p.Section("Messages that were dropped")
	p.Table("rejected | meaning, what to look at", rejected)
	p.Section("Requests that were refused")
	p.Text("Causes of TS 29.244 §8.2.1.")
	p.Table("cause | rejected | meaning, what to look at", causes)
	p.Section("Events of associations and transactions")
	p.Table("event | meaning, what to look at", happened)
	p.Compare(t, "pfcp.md", "PFCP: refusals, causes, events")
}
