// SPDX-License-Identifier: Apache-2.0

package aaa

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/radius"
)

// Kind of an accounting record (Acct-Status-Type).
type Kind uint8

const (
	Start   Kind = 1
	Stop    Kind = 2
	Interim Kind = 3
	On      Kind = 7 // Accounting-On: no earlier session continues
	Off     Kind = 8
)

func (k Kind) String() string {
	return map[Kind]string{Start: "start", Stop: "stop", Interim: "interim", On: "on", Off: "off"}[k]
}

// Counters are what the data plane counted, up: from the subscriber.
type Counters struct{ UpBytes, DownBytes, UpPackets, DownPackets uint64 }

// Record is one event of accounting.
type Record struct {
	Kind      Kind
	Session   string          // Acct-Session-Id, 1 to 64 bytes; On and Off have none
	At        time.Time       // when it happened
	Began     time.Time       // the session
	User      string          // as authenticated
	Request   *access.Request // line, agent, kind; nil with On and Off
	Addresses access.Addresses
	Class     [][]byte
	CUI       []byte
	Total     Counters // of both families
	V6        Counters // IPv6's part of Total
	Cause     access.Cause
	Local     bool // no RADIUS server let the subscriber in
}

const authenticLocal, authenticRADIUS = 2, 1 // Acct-Authentic

// attributes of a record, all but what a client adds.
func (r *Record) attributes(s *setup) []radius.Attribute {
	p := &radius.Packet{Attributes: make([]radius.Attribute, 0, 40)}
	p.Integer(radius.AcctStatusType, uint32(r.Kind))
	identify(p, s.config.RADIUS.NAS.Identifier, s.config.RADIUS.NAS.Address.Addr)
	p.Integer(radius.EventTimestamp, uint32(r.At.Unix()))
	if r.Kind == On || r.Kind == Off { // RFC 2866 §5.5: every record has one
		p.Text(radius.AcctSessionId, fmt.Sprintf("%s-%x", r.Kind, r.At.Unix()))
		return p.Attributes
	}
	p.Text(radius.AcctSessionId, r.Session)
	p.Text(radius.UserName, r.User)
	authentic := uint32(authenticRADIUS)
	if r.Local || s.auth == nil {
		authentic = authenticLocal
	}
	p.Integer(radius.AcctAuthentic, authentic)
	if r.Request != nil {
		describe(p, r.Request)
	}
	for _, c := range r.Class {
		p.Add(radius.Class, c)
	}
	p.Add(radius.ChargeableUserIdentity, r.CUI)
	r.addresses(p)
	if r.Kind != Start {
		r.counters(p)
	}
	if r.Kind == Stop {
		p.Integer(radius.AcctTerminateCause, uint32(r.Cause))
	}
	return p.Attributes
}

func (r *Record) addresses(p *radius.Packet) {
	a := &r.Addresses
	p.Address(radius.FramedIPAddress, a.IPv4)
	if a.IPv6.IsValid() && a.IPv6.Bits() == 128 {
		p.Address(radius.FramedIPv6Address, a.IPv6.Addr())
	} else {
		p.Prefix(radius.FramedIPv6Prefix, a.IPv6)
	}
	p.Prefix(radius.DelegatedIPv6Prefix, a.Delegated)
	if a.InterfaceID != 0 {
		p.Add(radius.FramedInterfaceId, binary.BigEndian.AppendUint64(nil, a.InterfaceID))
	}
}

// counters are RFC 2866's and 2869's for both families, and those of Juniper's ERX for IPv6's part.
func (r *Record) counters(p *radius.Packet) {
	p.Integer(radius.AcctSessionTime, uint32(max(0, r.At.Sub(r.Began))/time.Second))
	wide := func(low, high radius.Type, v uint64) {
		p.Integer(low, uint32(v))
		p.Integer(high, uint32(v>>32))
	}
	wide(radius.AcctInputOctets, radius.AcctInputGigawords, r.Total.UpBytes)
	wide(radius.AcctOutputOctets, radius.AcctOutputGigawords, r.Total.DownBytes)
	p.Integer(radius.AcctInputPackets, uint32(r.Total.UpPackets))
	p.Integer(radius.AcctOutputPackets, uint32(r.Total.DownPackets))
	wide(radius.ERXIPv6AcctInputOctets, radius.ERXIPv6AcctInputGigawords, r.V6.UpBytes)
	wide(radius.ERXIPv6AcctOutputOctets, radius.ERXIPv6AcctOutputGigawords, r.V6.DownBytes)
	p.Integer(radius.ERXIPv6AcctInputPackets, uint32(r.V6.UpPackets))
	p.Integer(radius.ERXIPv6AcctOutputPackets, uint32(r.V6.DownPackets))
}

// The stored form of a record: version, kind, time (nanoseconds since 1970), length of the session's name, the name,
// attributes as in a packet.
const (
	keptVersion = 1
	keptHeader  = 11
	maxKept     = 4000 // what a packet has room for
)

// record waits to be sent.
type record struct {
	id      uint64
	kind    Kind
	at      time.Time
	session string
	kept    []byte
	late    bool // not waiting any more
	ahead   int  // of On and Off: records of sessions that are older, and are not taken yet
}

func encode(r *Record, s *setup) (*record, error) {
	if len(r.Session) > 64 || (r.Session == "") != (r.Kind == On || r.Kind == Off) {
		return nil, fmt.Errorf("a session of the name %q", clip(r.Session))
	}
	kept := make([]byte, 0, 512)
	kept = append(kept, keptVersion, byte(r.Kind))
	kept = binary.BigEndian.AppendUint64(kept, uint64(r.At.UnixNano()))
	kept = append(kept, byte(len(r.Session)))
	kept = append(kept, r.Session...)
	kept, err := radius.AppendAttributes(kept, r.attributes(s))
	if err != nil {
		return nil, err
	}
	if len(kept) > maxKept {
		return nil, fmt.Errorf("a record of %d octets: the classes of session %s are too long", len(kept),
			clip(r.Session))
	}
	return &record{kind: r.Kind, at: r.At, session: r.Session, kept: kept}, nil
}

func decode(id uint64, b []byte) (*record, error) {
	if len(b) < keptHeader || b[0] != keptVersion || len(b) < keptHeader+int(b[10]) {
		return nil, errors.New("an accounting record that was kept cannot be read")
	}
	r := &record{id: id, kind: Kind(b[1]), at: time.Unix(0, int64(binary.BigEndian.Uint64(b[2:]))),
		session: string(b[keptHeader : keptHeader+int(b[10])]), kept: append([]byte(nil), b...)}
	if _, err := r.packet(); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *record) packet() (*radius.Packet, error) {
	list, err := radius.ParseAttributes(r.kept[keptHeader+len(r.session):])
	return &radius.Packet{Code: radius.AccountingRequest, Attributes: list, Since: r.at}, err
}
