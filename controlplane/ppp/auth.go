// SPDX-License-Identifier: Apache-2.0

package ppp

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/ppp/chap"
)

// Codes of PAP (RFC 1334 §2.2) and of CHAP (RFC 1994 §4, RFC 2759 §7).
const (
	papRequest = 1
	papAck     = 2
	papNak     = 3

	chapChallenge = 1
	chapResponse  = 2
	chapSuccess   = 3
	chapFailure   = 4
	chapChange    = 7 // Change-Password, which is refused
)

// maxName is what RADIUS can carry (RFC 2865 §5): names and passwords that are longer are refused unread.
const maxName = 253

// auth is one end's part of authentication. Of a server it lives until a network protocol is open, for the peer may
// not have heard the outcome and ask again.
type auth struct {
	*Link
	method     access.Method
	identifier uint8 // of CHAP
	judged     bool  // the owner of sessions decides, or has decided
	done       bool  // the outcome was sent
	retries    uint8 // MS-CHAPv2 attempts that were allowed after a failure
	challenge  [chap.ChallengeSize]byte
	outcome    []byte        // server: the packet with it; client: the Response
	expected   string        // client: of MS-CHAPv2's Success
	early      [3][]byte     // server without authentication: the peer's address requests meanwhile
	at         time.Duration // of the next retransmission; 0: none
	deadline   time.Duration
}

// keeps a request of a network control protocol until the line was authorised. The peer cannot know of the wait, and
// would repeat only after three seconds. A peer that must authenticate has to wait (row B5).
func (a *auth) keeps(n int, b []byte) bool {
	if a.method != access.None || !a.judged || a.done || len(b) > 256 {
		return false
	}
	a.early[n] = append([]byte{}, b...)
	return true
}

// beginAuth follows LCP.
func (l *Link) beginAuth() {
	now := l.config.Now()
	if l.role == Client {
		l.clientAuth(now)
		return
	}
	if l.auth != nil {
		return // the line was the proof, and is being looked at
	}
	a := &auth{Link: l, deadline: now + l.config.AuthTimeout, identifier: uint8(l.config.Random())}
	l.auth = a
	if l.layers[nLCP].asks&askAuth == 0 {
		a.judged = true
		l.env.Authenticate(&access.Credentials{})
		return
	}
	a.method = l.config.Methods[l.method-1]
	a.at = a.deadline
	if a.method != access.PAP {
		a.newChallenge()
		a.sendChallenge()
	}
}

func (a *auth) newChallenge() {
	binary.BigEndian.PutUint64(a.challenge[:], a.config.Random())
	binary.BigEndian.PutUint64(a.challenge[8:], a.config.Random())
}

func (a *auth) sendChallenge() {
	a.at = min(a.config.Now()+a.config.Restart, a.deadline)
	out := append(a.begin(chapChallenge, a.identifier), chap.ChallengeSize)
	out = append(out, a.challenge[:]...)
	a.send(CHAP, append(out, a.config.Name...))
}

// expired: a challenge or a response is sent again, or it is enough.
func (a *auth) expired() {
	switch now := a.config.Now(); {
	case now >= a.deadline:
		a.Close(access.UserError, "no authentication within "+a.config.AuthTimeout.String())
		a.at = 0
	case a.role == Client:
		a.at = min(now+a.config.Restart, a.deadline)
		a.sendProof()
	default:
		a.sendChallenge()
	}
}

// authPacket is one of PAP or CHAP.
func (l *Link) authPacket(protocol uint16, b []byte) Discard {
	p, ok := parse(b)
	if !ok {
		return Malformed
	}
	a := l.auth
	if l.layers[nLCP].state != opened || a == nil || (protocol == PAP) != (a.method == access.PAP) ||
		a.method == access.None {
		return Unexpected // RFC 1661 §3.5; row B5
	}
	switch {
	case l.role == Client && protocol == PAP:
		return a.papAnswer(p)
	case l.role == Client:
		return a.chapPacket(p)
	case protocol == PAP:
		return a.papRequest(p)
	}
	return a.chapResponse(p)
}

func (a *auth) papRequest(p packet) Discard {
	if p.code() != papRequest {
		return Unexpected
	}
	user, rest, ok := prefixed(p.data())
	password, _, ok2 := prefixed(rest)
	if !ok || !ok2 || len(user) > maxName || len(password) > maxName {
		return Malformed
	}
	if a.repeated(PAP, p) {
		return Taken
	}
	a.identifier = p.id()
	secret := append([]byte{}, password...)
	a.judge(&access.Credentials{Method: access.PAP, User: string(user), Password: secret})
	return Taken
}

// prefixed splits off what begins with an octet of its length.
func prefixed(b []byte) (value, rest []byte, ok bool) {
	if len(b) == 0 || int(b[0]) >= len(b) {
		return nil, nil, false
	}
	n := 1 + int(b[0])
	return b[1:n], b[n:], true
}

// repeated answers an equal request as before (RFC 1334 §2.2.1, RFC 1994 §4.1); no answer while the decision is
// pending.
func (a *auth) repeated(protocol uint16, p packet) bool {
	if a.done {
		out := append(a.config.Buffer, a.outcome...)
		out[1] = p.id()
		a.send(protocol, out)
	}
	return a.judged
}

func (a *auth) chapResponse(p packet) Discard {
	switch {
	case p.code() == chapChange && a.method == access.MSCHAPv2 && !a.judged:
		a.judged = true
		a.fail("E=709 R=0 V=3 M=passwords are not changed here")
		return Taken
	case p.code() != chapResponse:
		return Unexpected
	}
	value, name, ok := prefixed(p.data())
	size := 16
	if a.method == access.MSCHAPv2 {
		size = chap.ResponseSize
	}
	if !ok || len(value) != size || len(name) > maxName {
		return Malformed
	}
	if p.id() != a.identifier {
		return Stale
	}
	if a.repeated(CHAP, p) {
		return Taken
	}
	a.judge(&access.Credentials{Method: a.method, User: string(name), Identifier: a.identifier,
		Challenge: append([]byte{}, a.challenge[:]...), Response: append([]byte{}, value...)})
	return Taken
}

func (a *auth) judge(c *access.Credentials) {
	a.judged, a.at = true, 0
	a.env.Authenticate(c)
}

// Result of what Env.Authenticate asked for.
type Result struct {
	Accept  bool
	Silent  bool   // not accepted, and without an answer: the peer may try again
	Why     string // of the link's end
	Message string
	Success string // of MS-CHAPv2, "S=…"
	Failure string // of MS-CHAPv2, "E=…"; empty: E=691, and another attempt
	Network Network
}

// Authenticated is the answer.
func (l *Link) Authenticated(r *Result) {
	a := l.auth
	if l.over || a == nil || !a.judged || a.done || l.admitted {
		return
	}
	defer l.wake()
	if !r.Accept {
		if r.Silent || a.method == access.None {
			l.Close(access.ServiceUnavailable, r.Why)
		} else {
			a.deny(r)
		}
		return
	}
	a.done = true
	l.cause, l.why = 0, "" // of attempts before
	l.proven = a.method != access.None
	l.admitted = true
	id := l.network.LocalID
	l.network = r.Network
	l.network.LocalID = id
	switch a.method {
	case access.PAP:
		a.tell(PAP, papAck, prefix(r.Message))
	case access.CHAP:
		a.tell(CHAP, chapSuccess, r.Message)
	case access.MSCHAPv2:
		text := r.Success
		if r.Message != "" {
			text += " M=" + r.Message
		}
		a.tell(CHAP, chapSuccess, text)
	}
	if l.layers[nLCP].state == opened {
		l.openNetwork()
	}
}

func (a *auth) deny(r *Result) {
	a.blame(access.UserError, r.Why)
	switch a.method {
	case access.PAP:
		a.tell(PAP, papNak, prefix(r.Message))
	case access.CHAP:
		a.tell(CHAP, chapFailure, r.Message)
	default:
		a.fail(r.Failure)
		return
	}
	a.Close(access.UserError, r.Why)
}

// fail is MS-CHAPv2's Failure (RFC 2759 §6): with R=1 the peer may try again, with another challenge and the next
// identifier.
func (a *auth) fail(text string) {
	if text == "" {
		text = "E=691 R=1"
	}
	f := parseFailure(text)
	again := f.retry && a.retries < a.config.Retries
	retry := byte('0')
	if again {
		retry = '1'
	}
	a.newChallenge()
	if len(f.challenge) == chap.ChallengeSize {
		a.challenge = [chap.ChallengeSize]byte(f.challenge)
	}
	a.tell(CHAP, chapFailure, fmt.Sprintf("E=%d R=%c C=%X V=3 M=%s", f.code, retry, a.challenge, f.message))
	if !again {
		a.Close(access.UserError, "MS-CHAPv2 failed")
		return
	}
	a.identifier++
	a.retries++
	a.judged, a.done = false, false
	a.at = a.deadline
}

type failure struct {
	code      uint64
	retry     bool
	challenge []byte
	message   string
}

func parseFailure(text string) (f failure) {
	words, message, _ := strings.Cut(text, "M=")
	f.message = message
	for _, word := range strings.Fields(words) {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "E":
			f.code, _ = strconv.ParseUint(value, 10, 32)
		case "R":
			f.retry = value == "1"
		case "C":
			f.challenge, _ = hex.DecodeString(value)
		}
	}
	return f
}

// Sends the outcome, and keeps it.
func (a *auth) tell(protocol uint16, code uint8, text string) {
	a.done = true
	out := append(a.begin(code, a.identifier), text[:min(len(text), 1000)]...)
	a.send(protocol, out)
	a.outcome = append([]byte{}, out...)
}

// prefix is PAP's Message (RFC 1334 §2.2.2).
func prefix(text string) string {
	n := min(len(text), 255)
	return string([]byte{byte(n)}) + text[:n]
}
