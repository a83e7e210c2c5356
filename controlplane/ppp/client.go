// SPDX-License-Identifier: Apache-2.0

package ppp

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/ppp/chap"
)

// clientAuth does what the server asked for in LCP.
func (l *Link) clientAuth(now time.Duration) {
	a := &auth{Link: l, method: access.Method(l.method), deadline: now + l.config.AuthTimeout}
	a.at = a.deadline
	switch a.method {
	case access.None:
		l.admit()
		return
	case access.PAP:
		a.at = min(now+l.config.Restart, a.deadline)
		a.identifier = 1
		out := append(l.begin(papRequest, a.identifier), byte(len(l.config.User)))
		out = append(out, l.config.User...)
		out = append(append(out, byte(len(l.config.Password))), l.config.Password...)
		binary.BigEndian.PutUint16(out[2:], uint16(len(out)))
		a.outcome = append([]byte{}, out...)
	}
	l.auth = a
	a.sendProof()
}

// sendProof sends the PAP request or the CHAP response, if it exists. It is repeated until it is answered.
func (a *auth) sendProof() {
	if a.outcome == nil {
		return
	}
	protocol := uint16(CHAP)
	if a.method == access.PAP {
		protocol = PAP
	}
	a.send(protocol, append(a.config.Buffer, a.outcome...))
}

// admit opens the network control protocols that the client wants.
func (l *Link) admit() {
	l.auth, l.admitted = nil, true
	l.network.Families = l.config.Families
	l.openNetwork()
}

// impliedSuccess: a server that speaks of addresses has let the client in; its Success was lost.
func (l *Link) impliedSuccess() {
	if a := l.auth; a != nil && l.role == Client && a.outcome != nil && a.method != access.MSCHAPv2 {
		l.admit()
	}
}

func (a *auth) papAnswer(p packet) Discard {
	if p.id() != a.identifier || a.outcome == nil {
		return Stale
	}
	switch p.code() {
	case papAck:
		a.admit()
	case papNak:
		text, _, _ := prefixed(p.data())
		a.Close(access.UserError, "PAP: refused: "+string(text))
	}
	return Taken
}

func (a *auth) chapPacket(p packet) Discard {
	switch p.code() {
	case chapChallenge:
		return a.challenged(p)
	case chapSuccess:
		text := string(p.data())
		switch {
		case a.outcome == nil || p.id() != a.identifier:
			return Stale
		case !strings.HasPrefix(text, a.expected):
			a.Close(access.UserError, "MS-CHAPv2: the server does not know the password")
		default:
			a.admit()
		}
	case chapFailure:
		if a.outcome == nil || p.id() != a.identifier {
			return Stale
		}
		a.Close(access.UserError, fmt.Sprintf("CHAP: refused: %s", p.data()))
	}
	return Taken
}

func (a *auth) challenged(p packet) Discard {
	value, _, ok := prefixed(p.data())
	if !ok || a.method == access.MSCHAPv2 && len(value) != chap.ChallengeSize {
		return Malformed
	}
	a.identifier = p.id()
	a.expected = ""
	out := a.begin(chapResponse, a.identifier)
	if a.method == access.CHAP {
		answer := chap.MD5(a.identifier, a.config.Password, value)
		out = append(append(out, byte(len(answer))), answer[:]...)
	} else {
		challenge := [chap.ChallengeSize]byte(value)
		var r chap.Response
		binary.BigEndian.PutUint64(r.PeerChallenge[:], a.config.Random())
		binary.BigEndian.PutUint64(r.PeerChallenge[8:], a.config.Random())
		hash := chap.NTHash(a.config.Password)
		r.NT = chap.NTResponse(&challenge, &r.PeerChallenge, a.config.User, hash)
		a.expected = chap.AuthenticatorResponse(hash, &r.NT, &challenge, &r.PeerChallenge, a.config.User)
		out = r.Append(append(out, chap.ResponseSize))
	}
	out = append(out, a.config.User...)
	binary.BigEndian.PutUint16(out[2:], uint16(len(out)))
	a.outcome = append(a.outcome[:0], out...)
	a.at = min(a.config.Now()+a.config.Restart, a.deadline)
	a.sendProof()
	return Taken
}
