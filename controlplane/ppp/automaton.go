// SPDX-License-Identifier: Apache-2.0

package ppp

import "time"

// A step is a cell of RFC 1661's table: the new state in the low four bits, actions above. A step's actions run from
// the lowest bit up: answers first, since they are in the buffer; "up" last.
type step uint32

// The states of RFC 1661 §4.2, with its numbers.
const (
	initial step = iota
	starting
	closed
	stopped
	closing
	stopping
	reqSent
	ackRcvd
	ackSent
	opened
	none step = 15 // "-": cannot happen, or is ignored
)

// The actions of RFC 1661 §4.4.
const (
	sca step = 16 << iota // send Configure-Ack
	scn                   // send Configure-Nak or Configure-Reject
	sta                   // send Terminate-Ack
	scj                   // send Code-Reject
	ser                   // send Echo-Reply
	tld                   // this layer down
	irc                   // initialize the restart counter
	zrc                   // zero it: a pause before the end
	scr                   // send Configure-Request
	str                   // send Terminate-Request
	tls                   // this layer started
	tlf                   // this layer finished
	tlu                   // this layer up
)

// An event is a row of the table (§4.3).
type event uint8

const (
	up event = iota
	down
	open
	closeIt
	timeout  // TO+: the restart counter is not zero
	expired  // TO-
	goodReq  // RCR+
	badReq   // RCR-
	gotAck   // RCA
	gotNak   // RCN: Configure-Nak or -Reject
	termReq  // RTR
	termAck  // RTA
	unknown  // RUC: unknown code
	rejected // RXJ+: Code- or Protocol-Reject that can be lived with
	fatal    // RXJ-
	echo     // RXR: Echo-Request, Echo-Reply, Discard-Request
	events
)

// table is RFC 1661 §4.1: rows are events, columns the states of `initial` to `opened`. The options r, p and x of the
// printed table (restart, passive, crossed connection) have no effect here.
var table = [events][10]step{
	up:   {closed, irc | scr | reqSent, none, none, none, none, none, none, none, none},
	down: {none, none, initial, tls | starting, initial, starting, starting, starting, starting, tld | starting},
	open: {tls | starting, starting, irc | scr | reqSent, stopped, stopping, stopping, reqSent, ackRcvd,
		ackSent, opened},
	closeIt: {initial, tlf /* and initial */, closed, closed, closing, closing, bye, bye, bye, tld | bye},

	timeout: {none, none, none, none, str | closing, str | stopping, scr | reqSent, scr | reqSent, scr | ackSent,
		none},
	expired: {none, none, none, none, tlf | closed, tlf | stopped, tlf | stopped, tlf | stopped, tlf | stopped,
		none},

	goodReq: {none, none, sta | closed, irc | scr | sca | ackSent, closing, stopping,
		sca | ackSent, sca | tlu | opened, sca | ackSent, tld | scr | sca | ackSent},
	badReq: {none, none, sta | closed, irc | scr | scn | reqSent, closing, stopping,
		scn | reqSent, scn | ackRcvd, scn | reqSent, tld | scr | scn | reqSent},
	gotAck: {none, none, sta | closed, sta | stopped, closing, stopping,
		irc | ackRcvd, scr | reqSent, irc | tlu | opened, tld | scr | reqSent},
	gotNak: {none, none, sta | closed, sta | stopped, closing, stopping,
		irc | scr | reqSent, scr | reqSent, irc | scr | ackSent, tld | scr | reqSent},

	termReq: {none, none, sta | closed, sta | stopped, sta | closing, sta | stopping,
		sta | reqSent, sta | reqSent, sta | reqSent, tld | zrc | sta | stopping},
	termAck: {none, none, closed, stopped, tlf | closed, tlf | stopped, reqSent, reqSent, ackSent,
		tld | scr | reqSent},

	unknown: {none, none, scj | closed, scj | stopped, scj | closing, scj | stopping,
		scj | reqSent, scj | ackRcvd, scj | ackSent, scj | opened},
	rejected: {none, none, closed, stopped, closing, stopping, reqSent, reqSent, ackSent, opened},
	fatal: {none, none, tlf | closed, tlf | stopped, tlf | closed, tlf | stopped,
		tlf | stopped, tlf | stopped, tlf | stopped, tld | irc | str | stopping},
	echo: {none, none, closed, stopped, closing, stopping, reqSent, ackRcvd, ackSent, ser | opened},
}

const bye = irc | str | closing

// automaton is one protocol's state: LCP, IPCP or IPv6CP.
type automaton struct {
	state   step
	id      uint8 // of the last Configure- or Terminate-Request; of the next answer that is taken
	waits   bool  // for an answer with that id; repeated or late ones do not count
	counter uint8 // sendings left (§4.6)
	naks    uint8 // sent in a row, the last one to nakID
	nakID   uint8
	bad     uint8 // requests in a row that could not be acknowledged, the last one badID
	badID   uint8
	rounds  uint8 // Configure-Requests since the protocol was last open for a while
	asks    uint8 // options that go into our Configure-Request: bits of the protocol
	wasUp   bool
	agreed  uint32        // checksum of the peer's last request that was acknowledged
	at      time.Duration // the restart timer's end; of an open protocol, when it opened
}

// running: the restart timer runs.
func (a *automaton) running() bool { return a.state >= closing && a.state < opened }
