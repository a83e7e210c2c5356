// SPDX-License-Identifier: Apache-2.0

package radius

import "time"

// Counters are of one server since it was configured.
type Counters struct {
	Requests, Retransmitted        uint64 // packets sent the first time, and again
	Accepts, Rejects, Challenges   uint64
	Responses                      uint64 // of accounting
	Timeouts                       uint64 // requests that this server never answered
	Probes, ProbeAnswers           uint64 // Status-Server
	Deaths                         uint64 // times that it was given up
	ConnectFailures                uint64 // connections, sockets and packets that the system refused
	Disconnects                    uint64 // TLS
	QueueFull                      uint64 // requests refused: all identifiers and the queue are taken
	WrongAddress                   uint64 // answers dropped: from another address
	UnknownID, Late                uint64 // unexpected; expected once
	WrongAuthenticator             uint64
	Unsigned, WrongSignature       uint64 // Message-Authenticator
	SignatureLate                  uint64 // not the first attribute
	Malformed, UnexpectedCode      uint64
	Outstanding, Queued, PeakQueue int // now; the most
}

// Bounds of round-trip times, of all but the last bucket.
var Bounds = [...]time.Duration{
	250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second,
}

// Histogram of round-trip times: from the first sending to the answer.
type Histogram struct {
	Counts [len(Bounds) + 1]uint64 // up to each of Bounds, and above
	Sum    time.Duration
}

func (h *Histogram) observe(d time.Duration) {
	i := 0
	for i < len(Bounds) && d > Bounds[i] {
		i++
	}
	h.Counts[i]++
	h.Sum += d
}

// ServerState is what one server is doing.
type ServerState struct {
	Name, Address, Transport string
	Priority                 int
	Alive                    bool
	Since                    time.Time // when Alive became so
	LastAnswer               time.Time
	Sockets                  int // sockets or connections
	Counters                 Counters
	RTT                      Histogram
}

// failed counts an answer that is not believed.
func (c *Counters) failed(err error) {
	switch err {
	case errAddress:
		c.WrongAddress++
	case errOther:
		c.UnexpectedCode++
	case errGarbled:
		c.Malformed++
	case ErrAuthenticator:
		c.WrongAuthenticator++
	case ErrUnsigned:
		c.Unsigned++
	case ErrSignature:
		c.WrongSignature++
	case ErrSignatureLate:
		c.SignatureLate++
	}
}

// Dropped are the packets that were no answers, by reason.
func (c *Counters) Dropped() map[string]uint64 {
	return map[string]uint64{"authenticator": c.WrongAuthenticator,
		"signature": c.Unsigned + c.WrongSignature + c.SignatureLate, "source": c.WrongAddress,
		"unknown-id": c.UnknownID, "late": c.Late, "malformed": c.Malformed, "code": c.UnexpectedCode}
}

func (c *Counters) answered(code Code) {
	switch code {
	case AccessAccept:
		c.Accepts++
	case AccessReject:
		c.Rejects++
	case AccessChallenge:
		c.Challenges++
	case AccountingResponse:
		c.Responses++
	}
}
