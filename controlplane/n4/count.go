// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"isthmus/controlplane/pfcp"
)

// reject is why a message was dropped or refused. Each such message raises one of them by one.
type reject uint8

const (
	accepted reject = iota
	rejectShort
	rejectVersion
	rejectLength
	rejectHeader
	rejectUnknownType
	rejectUnexpectedType
	rejectNotAllowed
	rejectNodeTaken
	rejectAssociations
	rejectNoAssociation
	rejectUnknownRate
	rejectPeerRate
	rejectQueue
	rejectCongestion
	rejectAnswersFull
	rejectUnmatched
	rejectResponse
	rejectHeartbeat
	rejectStopping
	rejectCause // + the cause: refused for what is in it
	rejects     = int(rejectCause) + causes
)

const (
	causes       = 80 // TS 29.244 §8.2.1
	messageTypes = 64
)

var rejectNames = [...]string{
	rejectShort:          "too-short",
	rejectVersion:        "version",
	rejectLength:         "length",
	rejectHeader:         "seid-flag",
	rejectUnknownType:    "unknown-type",
	rejectUnexpectedType: "unexpected-type",
	rejectNotAllowed:     "peer-not-allowed",
	rejectNodeTaken:      "node-id-taken",
	rejectAssociations:   "association-limit",
	rejectNoAssociation:  "no-association",
	rejectUnknownRate:    "rate-unknown-peers",
	rejectPeerRate:       "rate-peer",
	rejectQueue:          "queue-full",
	rejectCongestion:     "congestion",
	rejectAnswersFull:    "transactions-full",
	rejectUnmatched:      "response-unmatched",
	rejectResponse:       "response-malformed",
	rejectHeartbeat:      "heartbeat-malformed",
	rejectStopping:       "stopping",
}

var causeNames = map[pfcp.Cause]string{
	pfcp.CauseRejected: "rejected", pfcp.CauseContextNotFound: "session-not-found",
	pfcp.CauseMandatoryIEMissing: "mandatory-ie-missing", pfcp.CauseConditionalIEMissing: "conditional-ie-missing",
	pfcp.CauseInvalidLength: "invalid-length", pfcp.CauseMandatoryIEIncorrect: "mandatory-ie-incorrect",
	pfcp.CauseInvalidForwarding:      "invalid-forwarding-policy",
	pfcp.CauseInvalidFTEIDAllocation: "invalid-fteid-allocation",
	pfcp.CauseNoAssociation:          "no-association-for-node-id", pfcp.CauseRuleFailure: "rule-failure",
	pfcp.CauseCongestion: "session-layer-congestion", pfcp.CauseNoResources: "no-resources",
	pfcp.CauseServiceNotSupported: "service-not-supported", pfcp.CauseSystemFailure: "system-failure",
	pfcp.CauseRedirectionRequested: "redirection-requested", pfcp.CauseAllDynamicAddresses: "all-addresses-occupied",
}

func (r reject) String() string {
	if r < rejectCause {
		return rejectNames[r]
	}
	if n, ok := causeNames[pfcp.Cause(r-rejectCause)]; ok {
		return n
	}
	return fmt.Sprintf("cause-%d", r-rejectCause)
}

// causeReject is the counter of a refusal with a cause, "rejected" for unknown causes.
func causeReject(c pfcp.Cause) reject {
	if _, ok := causeNames[c]; !ok {
		c = pfcp.CauseRejected
	}
	return rejectCause + reject(c)
}

// event is what happened and is no refusal.
type event uint8

const (
	eventAssociated event = iota
	eventReleased
	eventPathFailed
	eventPathRestored
	eventRestarted
	eventHeadlessExpired
	eventAdopted
	eventRetransmitted // requests of ours, sent again
	eventTimedOut      // requests of ours, given up
	eventCached        // retransmissions answered from the cache
	eventInProgress    // retransmissions ignored
	eventEvicted       // answers dropped before their time
	eventSendFailed
	eventSendQueueFull
	eventReceiveFailed
	eventStoreFailed
	eventSEIDAlarm
	eventHeartbeatUnconfirmed // a newer time stamp that our own heartbeat did not confirm
	eventUnreadable           // a message with optional IEs that could not be read
	eventSetRefused           // a peer outside of an SMF set claimed it
	events
)

var eventNames = [events]string{
	"association-up", "association-released", "path-failed", "path-restored", "peer-restarted", "headless-expired",
	"sessions-adopted", "request-retransmitted", "request-timed-out", "answered-from-cache", "ignored-in-progress",
	"answer-evicted", "send-failed", "send-queue-full", "receive-failed", "store-failed", "session-id-guessing",
	"restart-not-confirmed", "ie-unreadable", "set-not-admitted",
}

// toldAs names the events of associations that are published (SetTell).
var toldAs = map[event]string{
	eventAssociated: "association.up", eventReleased: "association.released",
	eventPathFailed:   "association.path-failed",
	eventPathRestored: "association.path-restored", eventRestarted: "association.restarted",
	eventHeadlessExpired: "association.headless-expired", eventStoreFailed: "association.store-failed",
	eventSEIDAlarm: "association.guessing", eventSetRefused: "association.set-refused",
	eventHeartbeatUnconfirmed: "association.restart-unconfirmed",
}

// journal counts, logs and publishes events. Any goroutine adds.
type journal struct {
	log   *slog.Logger
	tell  func(kind, association string, args ...any) // takes events; may be nil
	peers *peers
	count counters
}

// counters is what the whole server counts.
type counters struct {
	received [256]atomic.Uint64 // by message type, header good
	sent     [256]atomic.Uint64
	answers  [messageTypes][causes]atomic.Uint64 // by type of the answer and cause
	rejected [rejects]atomic.Uint64
	events   [events]atomic.Uint64
	logged   [rejects]logGate
	refusals refusals
}

// answered counts an answer by its cause.
func (c *counters) answered(m pfcp.Message) {
	var cause pfcp.Cause
	switch r := m.(type) {
	case *pfcp.PFDManagementResponse:
		cause = r.Cause
	case *pfcp.AssociationSetupResponse:
		cause = r.Cause
	case *pfcp.AssociationUpdateResponse:
		cause = r.Cause
	case *pfcp.AssociationReleaseResponse:
		cause = r.Cause
	case *pfcp.SessionSetDeletionResponse:
		cause = r.Cause
	case *pfcp.SessionEstablishmentResponse:
		cause = r.Cause
	case *pfcp.SessionModificationResponse:
		cause = r.Cause
	case *pfcp.SessionDeletionResponse:
		cause = r.Cause
	}
	if t := m.MessageType(); cause > 0 && cause < causes && t < messageTypes {
		c.answers[t][cause].Add(1)
	}
}

// logGate passes one line per second and reason, and counts the rest.
type logGate struct {
	second atomic.Int64
	held   atomic.Uint64
}

func (g *logGate) open(now time.Time) (held uint64, ok bool) {
	last, s := g.second.Load(), now.Unix()
	if last == s || !g.second.CompareAndSwap(last, s) {
		g.held.Add(1)
		return 0, false
	}
	return g.held.Swap(0), true
}

// reject counts a message dropped without an answer; logging and publishing are rate limited.
func (j *journal) reject(why reject, from netip.AddrPort, text string) {
	j.count.rejected[why].Add(1)
	if held, ok := j.count.logged[why].open(time.Now()); ok {
		j.log.Warn("PFCP message dropped", "reason", why.String(), "from", from.String(), "detail", text, "not_logged",
			held)
		j.tellRefused(from, "reason", why.String(), "why", text, "more", held)
	}
}

func (j *journal) event(e event) { j.count.events[e].Add(1) }

// unreadable counts a message with unreadable optional IEs, which count as absent (TS 29.244 §7.6), and returns them.
func (j *journal) unreadable(m pfcp.Message) (ies []uint16) {
	if l, ok := m.(interface{ Unreadable() []uint16 }); ok {
		if ies = l.Unreadable(); len(ies) > 0 {
			j.event(eventUnreadable)
		}
	}
	return ies
}

// record counts and logs an event of an association.
func (j *journal) record(e event, level slog.Level, id string, args ...any) {
	j.event(e)
	if told, ok := toldAs[e]; ok && j.tell != nil {
		j.tell(told, id, args...)
	}
	j.log.Log(context.Background(), level, "PFCP "+eventNames[e], append([]any{"association", id}, args...)...)
}
