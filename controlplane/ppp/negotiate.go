// SPDX-License-Identifier: Apache-2.0

package ppp

import (
	"bytes"
	"hash/crc32"

	"isthmus/controlplane/access"
)

// grade is what an option of the peer's request is worth.
type grade uint8

const (
	good grade = iota
	bad        // with a suggestion
	never
)

// layer is what is particular to LCP, IPCP or IPv6CP: the options of Configure packets.
type layer interface {
	request(b []byte) []byte // appends the options of our Configure-Request
	// judge checks an option of the peer's, without changes. For a bad one it returns another, in b.
	judge(kind uint8, value, b []byte) (grade, []byte)
	missing(in options, b []byte) []byte // appends options that the peer has to send
	accept(in options)                   // the peer's request is acknowledged
	// learn changes our option to the peer's value, or drops it (reject).
	learn(kind uint8, value []byte, reject bool)
}

// control is LCP, IPCP or IPv6CP of a link: its automaton at work.
type control struct {
	*Link
	*automaton
	layer
	n int
}

func (l *Link) control(n int) control {
	a := control{l, &l.layers[n], lcp{l}, n}
	switch n {
	case nIPCP:
		a.layer = ipcp{l}
	case nIPv6CP:
		a.layer = ipv6cp{l}
	}
	return a
}

var protocolOf = [...]uint16{nLCP: LCP, nIPCP: IPCP, nIPv6CP: IPv6CP}

func (a control) transmit(b []byte) { a.send(protocolOf[a.n], b) }

// receive takes a packet while the automaton is at work.
func (a control) receive(b []byte) Discard {
	p, ok := parse(b)
	if !ok {
		return Malformed
	}
	switch c := p.code(); {
	case c == configureRequest:
		return a.configureRequest(p)
	case c <= configureReject && c != 0:
		return a.configureAnswer(p)
	case c == terminateRequest:
		a.run(termReq, p, nil)
		if a.n == nLCP {
			// it heard our Terminate-Ack, or does not care
			a.finish(access.UserRequest, "the peer ended the link")
		}
	case c == terminateAck:
		a.run(termAck, p, nil)
	case c == codeReject:
		return a.codeRejected(p)
	case a.n == nLCP && c >= protocolReject && c <= timeRemaining:
		return lcp{a.Link}.only(p)
	default:
		a.run(unknown, p, nil)
	}
	return Taken
}

func (a control) configureRequest(p packet) Discard {
	in := options(p.data())
	if !in.sound() {
		return Malformed
	}
	if a.state == opened && a.agreed == crc32.ChecksumIEEE(p) {
		// Our Configure-Ack was lost, or the request came late: the same answer, without a restart. RFC 1661
		// would leave Opened, and two ends with a slow path might never meet.
		a.transmit(append(a.begin(configureAck, p.id()), in...))
		return Taken
	}
	if a.n == nLCP && (lcp{a.Link}).looped(in) {
		a.Close(access.LostCarrier, loopedBack)
		return Taken
	}
	e, reply := a.judged(p)
	if e == badReq && a.stubborn(p) {
		return Unexpected
	}
	a.run(e, p, reply)
	return Taken
}

// stubborn counts consecutive unacceptable requests. Above the bound the protocol is given up, and further ones get no
// answer.
func (a control) stubborn(p packet) bool {
	if a.bad == 0 || a.badID != p.id() { // a repetition counts once
		a.bad = min(a.bad+1, maxRounds+1)
		a.badID = p.id()
	}
	if a.bad <= maxRounds {
		return false
	}
	if a.state > stopping {
		a.giveUp("the peer insists on what it cannot have")
	}
	return true
}

// giveUp ends a protocol: the link, if it is LCP or no other is left.
func (a control) giveUp(why string) {
	if a.n == nLCP {
		a.Close(access.UserError, why)
		return
	}
	if other := nIPCP + nIPv6CP - a.n; a.layers[other].state < closing {
		a.blame(access.UserError, why)
	}
	a.run(fatal, nil, nil)
}

// judged makes the answer to a Configure-Request: Reject before Nak before Ack (RFC 1661 §5.2 to §5.4).
func (a control) judged(p packet) (event, []byte) {
	in := options(p.data())
	patient := a.naks < a.config.MaxFailure
	out := a.begin(configureAck, p.id())
	worst := good
	for rest := in; len(rest) > 0; {
		var kind uint8
		var value []byte
		kind, value, _, rest = rest.next()
		g, _ := a.judge(kind, value, out)
		if g == bad && !patient {
			g = never
		}
		worst = max(worst, g)
	}
	wanted := out[:head]
	if patient {
		wanted = a.missing(in, out)
	}
	if worst == good && len(wanted) == head {
		return goodReq, append(out, in...)
	}
	out[0] = configureNak
	if worst == never {
		out[0] = configureReject
	}
	for rest := in; len(rest) > 0; {
		var kind uint8
		var value, whole []byte
		kind, value, whole, rest = rest.next()
		g, longer := a.judge(kind, value, out)
		switch {
		case worst == never && (g == never || g == bad && !patient):
			out = append(out, whole...)
		case worst != never && g == bad:
			out = longer
		}
	}
	if worst != never && patient {
		out = a.missing(in, out)
	}
	return badReq, out
}

// configureAnswer takes Configure-Ack, -Nak and -Reject.
func (a control) configureAnswer(p packet) Discard {
	in := options(p.data())
	if !in.sound() {
		return Malformed
	}
	if a.state >= reqSent {
		if !a.waits || p.id() != a.id {
			return Stale
		}
		ours := options(a.request(a.config.Buffer))
		if p.code() == configureAck && !bytes.Equal(in, ours) {
			return Stale // RFC 1661 §5.2: must be what was asked
		}
		a.waits = false
		if p.code() != configureAck {
			a.learned(p.code() == configureReject, in, ours)
		}
	}
	if a.over {
		return Taken
	}
	if p.code() == configureAck {
		a.run(gotAck, p, nil)
	} else {
		a.run(gotNak, p, nil)
	}
	return Taken
}

// learned changes the next request. ours is in the buffer, which is reused if that closes the link.
func (a control) learned(reject bool, in, ours options) {
	for len(in) > 0 && a.state >= reqSent {
		var kind uint8
		var value []byte
		kind, value, _, in = in.next()
		if ours.has(kind) { // the peer may ask for more (RFC 1661 §5.3); we do not have it
			a.learn(kind, value, reject)
		}
	}
}

func (a control) codeRejected(p packet) Discard {
	if len(p.data()) == 0 {
		return Malformed
	}
	if c := p.data()[0]; c >= configureRequest && c <= codeReject {
		if a.n == nLCP {
			a.blame(access.UserError, "the peer rejects LCP")
		}
		a.run(fatal, p, nil)
	} else {
		a.run(rejected, p, nil)
	}
	return Taken
}

// run processes an event: p is its packet, reply the Configure-Ack, -Nak or -Reject from judge.
func (a control) run(e event, p packet, reply []byte) {
	s := table[e][a.state]
	if s == none || a.over {
		return
	}
	a.state = s & 15
	a.answer(s, p, reply)
	if s&tld != 0 && a.n == nLCP {
		lcp{a.Link}.down()
		if a.state != s&15 || a.over {
			return // it ended the link
		}
	}
	switch {
	case s&zrc != 0:
		a.counter = 0
		a.at = a.config.Now() + a.config.Restart
	case s&irc != 0 && s&str != 0:
		a.counter = a.config.MaxTerminate
	case s&irc != 0:
		a.counter = a.config.MaxConfigure
	}
	if s&scr != 0 {
		a.sendRequest(e == timeout)
	}
	if s&str != 0 {
		a.sendTerminate()
	}
	if s&tlf != 0 {
		a.finished()
	}
	if s&tlu != 0 && a.state == opened {
		a.at = a.config.Now()
		a.up()
	}
}

// up is "this layer up".
func (a control) up() {
	if a.n == nLCP {
		lcp{a.Link}.up()
		return
	}
	a.auth = nil
	a.wasUp = true
	a.env.Network(a.families())
}

// finished is "this layer finished": closed, or given up. A link without a network protocol is useless. A protocol that
// never opened is over for this link: its requests are rejected.
func (a control) finished() {
	switch {
	case a.n == nLCP:
		a.finish(access.LostCarrier, "the peer does not answer")
		return
	case a.wasUp:
		a.wasUp = false
	case a.n == nIPCP:
		*a.automaton, a.network.V4 = automaton{}, false
	default:
		*a.automaton, a.network.V6 = automaton{}, false
	}
	a.env.Network(a.families())
	for _, other := range []int{nIPCP, nIPv6CP} {
		if a.layers[other].state >= closing {
			return
		}
	}
	a.Close(access.UserError, "no network protocol is left")
}

// answer carries out the actions that send something back.
func (a control) answer(s step, p packet, reply []byte) {
	switch {
	case s&sca != 0:
		a.naks, a.bad, a.agreed = 0, 0, crc32.ChecksumIEEE(p)
		a.transmit(reply)
		a.accept(options(p.data()))
	case s&scn != 0:
		if reply[0] == configureNak && (a.naks == 0 || a.nakID != p.id()) {
			a.naks++
			a.nakID = p.id()
		}
		a.transmit(reply)
	case s&sta != 0:
		a.transmit(a.begin(terminateAck, p.id()))
	case s&scj != 0:
		out := a.begin(codeReject, a.nextID())
		a.transmit(append(out, p[:min(len(p), a.room(len(out)))]...))
	case s&ser != 0 && p.code() == echoRequest:
		out := a.begin(echoReply, p.id())
		out = append(out, byte(a.magic>>24), byte(a.magic>>16), byte(a.magic>>8), byte(a.magic))
		data := p.data()[min(4, len(p.data())):]
		a.transmit(append(out, data[:min(len(data), a.room(len(out)))]...))
	}
}

// sendRequest sends a Configure-Request. A repeated request keeps its identifier, so that a late answer counts.
func (a control) sendRequest(again bool) {
	now := a.config.Now()
	if !again || !a.waits {
		if now-a.at > settled { // since it was open, or given up
			a.rounds = 0
		}
		if a.rounds++; a.rounds > maxRounds {
			a.giveUp("negotiation has no end")
			return
		}
		a.id++
	}
	a.waits = true
	a.counter -= min(a.counter, 1)
	a.at = now + a.config.Restart
	a.transmit(a.request(a.begin(configureRequest, a.id)))
}

func (a control) sendTerminate() {
	a.id++
	a.waits = false
	a.counter -= min(a.counter, 1)
	a.at = a.config.Now() + a.config.Restart
	a.transmit(a.begin(terminateRequest, a.id))
}
