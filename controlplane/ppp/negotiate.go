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

// layer is what is particular to LCP, IPCP or IPv6CP: ten methods, since RFC 1661 leaves as much to each of them.
type layer interface {
	protocol() uint16
	request(b []byte) []byte // appends the options of our Configure-Request
	// judge looks at an option of the peer's, and changes nothing. A bad one gets another in its place: in b.
	judge(kind uint8, value, b []byte) (grade, []byte)
	missing(in options, b []byte) []byte // appends options that the peer has to send
	accept(in options)                   // the peer's request is acknowledged
	naked(kind uint8, value []byte)      // the peer would have ours so
	refused(kind uint8)                  // the peer knows no such option
	up()
	down()
	finished()
}

// control takes a packet of a protocol whose automaton is at work.
func (l *Link) control(n int, b []byte) Discard {
	p, ok := parse(b)
	if !ok {
		return Malformed
	}
	switch c := p.code(); {
	case c == configureRequest:
		return l.configureRequest(n, p)
	case c <= configureReject && c != 0:
		return l.configureAnswer(n, p)
	case c == terminateRequest:
		l.run(n, termReq, p, nil)
		if n == nLCP {
			// it heard our Terminate-Ack, or does not care
			l.finish(access.UserRequest, "the peer ended the link")
		}
	case c == terminateAck:
		l.run(n, termAck, p, nil)
	case c == codeReject:
		return l.codeRejected(n, p)
	case n == nLCP && c >= protocolReject && c <= timeRemaining:
		return l.lcpOnly(p)
	default:
		l.run(n, unknown, p, nil)
	}
	return Taken
}

func (l *Link) configureRequest(n int, p packet) Discard {
	in := options(p.data())
	if !in.sound() {
		return Malformed
	}
	a := &l.layers[n]
	if a.state == opened && a.agreed == crc32.ChecksumIEEE(p) {
		// Our Configure-Ack was lost, or the request came late: the same answer, and nothing begins anew.
		// RFC 1661 would leave Opened, and two ends with a slow way between them might never meet.
		l.send(l.layer(n).protocol(), append(l.begin(configureAck, p.id()), in...))
		return Taken
	}
	if n == nLCP && l.looped(in) {
		l.Close(access.LostCarrier, loopedBack)
		return Taken
	}
	e, reply := l.judge(n, p)
	if e == badReq && l.stubborn(n, p) {
		return Unexpected
	}
	l.run(n, e, p, reply)
	return Taken
}

// stubborn counts requests in a row that cannot be acknowledged. After so many the protocol is given up, and nothing is
// said to more of them.
func (l *Link) stubborn(n int, p packet) bool {
	a := &l.layers[n]
	if a.bad == 0 || a.badID != p.id() { // one that came again counts once
		a.bad = min(a.bad+1, maxRounds+1)
		a.badID = p.id()
	}
	if a.bad <= maxRounds {
		return false
	}
	if a.state > stopping {
		l.giveUp(n, "the peer insists on what it cannot have")
	}
	return true
}

// giveUp ends a protocol: the link, if it is LCP or no other is left.
func (l *Link) giveUp(n int, why string) {
	if n == nLCP {
		l.Close(access.UserError, why)
		return
	}
	if other := nIPCP + nIPv6CP - n; l.layers[other].state < closing {
		l.blame(access.UserError, why)
	}
	l.run(n, fatal, nil, nil)
}

// judge makes the answer to a Configure-Request: Reject before Nak before Ack (RFC 1661 §5.2 to §5.4).
func (l *Link) judge(n int, p packet) (event, []byte) {
	y, in := l.layer(n), options(p.data())
	patient := l.layers[n].naks < l.config.MaxFailure
	out := l.begin(configureAck, p.id())
	worst := good
	for rest := in; len(rest) > 0; {
		var kind uint8
		var value []byte
		kind, value, _, rest = rest.next()
		g, _ := y.judge(kind, value, out)
		if g == bad && !patient {
			g = never
		}
		worst = max(worst, g)
	}
	wanted := out[:head]
	if patient {
		wanted = y.missing(in, out)
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
		g, longer := y.judge(kind, value, out)
		switch {
		case worst == never && (g == never || g == bad && !patient):
			out = append(out, whole...)
		case worst != never && g == bad:
			out = longer
		}
	}
	if worst != never && patient {
		out = y.missing(in, out)
	}
	return badReq, out
}

// configureAnswer takes Configure-Ack, -Nak and -Reject.
func (l *Link) configureAnswer(n int, p packet) Discard {
	a, y, in := &l.layers[n], l.layer(n), options(p.data())
	if !in.sound() {
		return Malformed
	}
	if a.state >= reqSent {
		if !a.waits || p.id() != a.id {
			return Stale
		}
		ours := options(y.request(l.config.Buffer))
		if p.code() == configureAck && !bytes.Equal(in, ours) {
			return Stale // RFC 1661 §5.2: must be what was asked
		}
		a.waits = false
		if p.code() != configureAck {
			l.learn(a, y, p.code() == configureReject, in, ours)
		}
	}
	if l.over {
		return Taken
	}
	if p.code() == configureAck {
		l.run(n, gotAck, p, nil)
	} else {
		l.run(n, gotNak, p, nil)
	}
	return Taken
}

// learn changes what is asked for next. ours is in the buffer, which is another's when the link is closed by that.
func (l *Link) learn(a *automaton, y layer, reject bool, in, ours options) {
	for len(in) > 0 && a.state >= reqSent {
		var kind uint8
		var value []byte
		kind, value, _, in = in.next()
		switch {
		case !ours.has(kind): // the peer may ask for more (RFC 1661 §5.3); we do not have it
		case reject:
			y.refused(kind)
		default:
			y.naked(kind, value)
		}
	}
}

func (l *Link) codeRejected(n int, p packet) Discard {
	if len(p.data()) == 0 {
		return Malformed
	}
	if c := p.data()[0]; c >= configureRequest && c <= codeReject {
		if n == nLCP {
			l.blame(access.UserError, "the peer rejects LCP")
		}
		l.run(n, fatal, p, nil)
	} else {
		l.run(n, rejected, p, nil)
	}
	return Taken
}

// run has an event happen: p is the packet that it came from, reply the Configure-Ack, -Nak or -Reject that judge made.
func (l *Link) run(n int, e event, p packet, reply []byte) {
	a := &l.layers[n]
	s := table[e][a.state]
	if s == none || l.over {
		return
	}
	a.state = s & 15
	y := l.layer(n)
	l.answer(a, y, s, p, reply)
	if s&tld != 0 {
		y.down()
		if a.state != s&15 || l.over {
			return // it ended the link
		}
	}
	switch {
	case s&zrc != 0:
		a.counter = 0
		a.at = l.config.Now() + l.config.Restart
	case s&irc != 0 && s&str != 0:
		a.counter = l.config.MaxTerminate
	case s&irc != 0:
		a.counter = l.config.MaxConfigure
	}
	if s&scr != 0 {
		l.sendRequest(n, e == timeout)
	}
	if s&str != 0 {
		l.sendTerminate(a, y)
	}
	if s&tlf != 0 {
		y.finished()
	}
	if s&tlu != 0 && a.state == opened {
		a.at = l.config.Now()
		y.up()
	}
}

// answer carries out the actions that send something back.
func (l *Link) answer(a *automaton, y layer, s step, p packet, reply []byte) {
	switch {
	case s&sca != 0:
		a.naks, a.bad, a.agreed = 0, 0, crc32.ChecksumIEEE(p)
		l.send(y.protocol(), reply)
		y.accept(options(p.data()))
	case s&scn != 0:
		if reply[0] == configureNak && (a.naks == 0 || a.nakID != p.id()) {
			a.naks++
			a.nakID = p.id()
		}
		l.send(y.protocol(), reply)
	case s&sta != 0:
		l.send(y.protocol(), l.begin(terminateAck, p.id()))
	case s&scj != 0:
		out := l.begin(codeReject, a.nextID())
		l.send(y.protocol(), append(out, p[:min(len(p), l.room(len(out)))]...))
	case s&ser != 0 && p.code() == echoRequest:
		out := l.begin(echoReply, p.id())
		out = append(out, byte(l.magic>>24), byte(l.magic>>16), byte(l.magic>>8), byte(l.magic))
		data := p.data()[min(4, len(p.data())):]
		l.send(y.protocol(), append(out, data[:min(len(data), l.room(len(out)))]...))
	}
}

// sendRequest sends a Configure-Request. One that is sent again keeps its identifier, so that a late answer counts.
func (l *Link) sendRequest(n int, again bool) {
	a, y, now := &l.layers[n], l.layer(n), l.config.Now()
	if !again || !a.waits {
		if now-a.at > settled { // since it was open, or given up
			a.rounds = 0
		}
		if a.rounds++; a.rounds > maxRounds {
			l.giveUp(n, "negotiation has no end")
			return
		}
		a.id++
	}
	a.waits = true
	a.counter -= min(a.counter, 1)
	a.at = now + l.config.Restart
	l.send(y.protocol(), y.request(l.begin(configureRequest, a.id)))
}

func (l *Link) sendTerminate(a *automaton, y layer) {
	a.id++
	a.waits = false
	a.counter -= min(a.counter, 1)
	a.at = l.config.Now() + l.config.Restart
	l.send(y.protocol(), l.begin(terminateRequest, a.id))
}
