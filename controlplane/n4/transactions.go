// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"net/netip"
	"time"

	"isthmus/controlplane/pfcp"
)

// transactions are the requests of peers (TS 29.244 §6.4): each is carried out once, and answered.
type transactions struct {
	*journal
	cfg      *Config
	recovery time.Time // ours
	answers  *answers
}

var errNoAssociation = &pfcp.Error{Cause: pfcp.CauseNoAssociation, Text: "no association from this address"}

// turnAway refuses a request without a transaction. The header's SEID is the peer's from the request, else 0
// (§7.2.2.4.2).
func (t *transactions) turnAway(p *packet, why reject, e *pfcp.Error) {
	t.refused(why, p.from, p.h.Type, e)
	p.h.SEID = 0
	if p.h.Type == pfcp.SessionEstablishmentRequestType {
		p.h.SEID = pfcp.CPSEID(p.b)
	}
	t.respond(p.k, p.from, p.h, t.refusal(p.h.Type, e))
}

// begin registers a request; false: it was a retransmission, and is handled (row A8).
func (t *transactions) begin(p *packet, key transactionKey) bool {
	state, answer, evicted := t.answers.begin(key, p.b)
	t.count.events[eventEvicted].Add(uint64(evicted))
	switch state {
	case inProgress:
		t.event(eventInProgress)
	case answered:
		t.event(eventCached)
		p.k.send(p.from, answer)
	case full:
		t.reject(rejectAnswersFull, p.from, "")
	}
	return state == fresh
}

// respond encodes and sends an answer that is not kept for repetition.
func (t *transactions) respond(k *socket, to netip.AddrPort, h pfcp.Header, m pfcp.Message) {
	if out := t.encoded(h, m); out != nil {
		t.count.answered(m)
		k.put(datagram{to, out.b, out})
	}
}

// conclude ends a transaction with its answer: keeps it for repetitions, then sends it. Without an answer the request
// is forgotten.
func (t *transactions) conclude(k *socket, to netip.AddrPort, h pfcp.Header, key transactionKey, m pfcp.Message) {
	out := t.encoded(h, m)
	if out == nil && m != nil {
		m = t.refusal(key.typ, &pfcp.Error{Cause: pfcp.CauseSystemFailure})
		out = t.encoded(h, m)
	}
	if out == nil {
		t.answers.forget(key)
		return
	}
	t.count.answered(m)
	t.count.events[eventEvicted].Add(uint64(t.answers.finish(key, out.b))) // a copy: what is sent is the writer's
	k.put(datagram{to, out.b, out})
}

// encoded is nil for an answer that cannot be encoded.
func (t *transactions) encoded(h pfcp.Header, m pfcp.Message) *outgoing {
	if m == nil {
		return nil
	}
	h.Type = m.MessageType()
	out := outgoings.Get().(*outgoing)
	var err error
	if out.b, err = pfcp.Append(out.b[:0], h, m); err != nil {
		outgoings.Put(out)
		t.log.Error("PFCP message of ours cannot be encoded", "type", h.Type, "error", err)
		return nil
	}
	return out
}

// refuse counts and returns a refusal; why is 0 when the cause is the reason.
func (t *transactions) refuse(p *packet, why reject, e *pfcp.Error) (pfcp.Message, reject) {
	why = t.refused(why, p.from, p.h.Type, e)
	return t.refusal(p.h.Type, e), why
}

// refusal is the answer to a request that is refused; nil when there is no such answer.
func (t *transactions) refusal(typ pfcp.MessageType, e *pfcp.Error) pfcp.Message {
	m := pfcp.Respond(typ, e, t.cfg.Node)
	if r, ok := m.(*pfcp.AssociationSetupResponse); ok {
		r.Recovery, r.FromUP, r.Features = t.recovery, true, t.cfg.Features
	}
	return m
}
