// SPDX-License-Identifier: Apache-2.0

package pfcp

import (
	"encoding/hex"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// Readers of the values that several messages share. Each gets a value whose length is within the IE's bounds.

func readCause(v []byte) (Cause, *Error) { return Cause(v[0]), nil }

func readUint8(v []byte) (uint8, *Error)   { return v[0], nil }
func readUint16(v []byte) (uint16, *Error) { return uint16(number(v)), nil }
func readUint32(v []byte) (uint32, *Error) { return uint32(number(v)), nil }

func readSeconds(v []byte) (time.Duration, *Error) {
	return time.Duration(number(v)) * time.Second, nil
}

// positiveSeconds refuses a threshold or period of 0, which would report without end (row P24).
func positiveSeconds(v []byte) (time.Duration, *Error) {
	if number(v) == 0 {
		return 0, incorrect("0 seconds")
	}
	return readSeconds(v)
}

const ntpEpoch = 2208988800 // seconds from 1900 to 1970

// readTime reads the seconds of RFC 5905 §6. They wrap in 2036; a value without the top bit is of the era that begins
// then (RFC 4330 §3).
func readTime(v []byte) (time.Time, *Error) {
	seconds := int64(number(v)) - ntpEpoch
	if v[0]&0x80 == 0 {
		seconds += 1 << 32
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// Forever is a timer that does not expire.
const Forever = time.Duration(math.MaxInt64)

// timerUnits are those of TS 29.244 §8.2.28 and §8.2.78; 7 is infinite, the rest count as minutes.
var timerUnits = [8]time.Duration{2 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 10 * time.Hour,
	time.Minute,
	time.Minute, 0}

func readTimer(v []byte) (time.Duration, *Error) {
	if v[0]>>5 == 7 {
		return Forever, nil
	}
	return time.Duration(v[0]&31) * timerUnits[v[0]>>5], nil
}

// timerValue is the shortest timer that is not shorter than d.
func timerValue(d time.Duration) byte {
	for unit, step := range timerUnits[:5] {
		if n := (d + step - 1) / step; d <= 31*step && n <= 31 {
			return byte(unit<<5) | byte(max(n, 0))
		}
	}
	return 7 << 5
}

// unicast refuses addresses that no host of a user plane has.
func unicast(addrs ...netip.Addr) *Error {
	for _, a := range addrs {
		if a.IsLoopback() {
			return incorrect("%s is no address of a host", a)
		}
	}
	return control(addrs...)
}

// control is for control plane addresses, which may be on our own host: loopback addresses are valid.
func control(addrs ...netip.Addr) *Error {
	for _, a := range addrs {
		if a.IsValid() && (a.IsUnspecified() || a.IsMulticast() || a.Is4() && a.As4()[0] >= 224) {
			return incorrect("%s is no address of a host", a)
		}
	}
	return nil
}

// readNodeID is TS 29.244 §8.2.38.
func readNodeID(v []byte) (NodeID, *Error) {
	c := cursor{b: v[1:]}
	var node NodeID
	switch v[0] & 15 {
	case 0:
		node.Addr = c.ipv4()
	case 1:
		node.Addr = c.ipv6()
	case 2:
		fqdn, refusal := name(c.take(len(v) - 1))
		node.FQDN = fqdn
		return node, refusal
	default:
		return node, incorrect("node id of type %d", v[0]&15)
	}
	if refusal := c.end(ieNodeID, len(v)); refusal != nil {
		return node, refusal
	}
	if node.Addr.IsUnspecified() {
		return node, incorrect("node id %s", node.Addr)
	}
	return node, nil
}

// pair reads an IPv4 and an IPv6 address, as flagged.
func (c *cursor) pair(v4, v6 bool) (a4, a6 netip.Addr) {
	if v4 {
		a4 = c.ipv4()
	}
	if v6 {
		a6 = c.ipv6()
	}
	return a4, a6
}

// readFSEID is TS 29.244 §8.2.37.
func readFSEID(v []byte) (FSEID, *Error) {
	c := cursor{b: v[1:]}
	f := FSEID{SEID: c.uint64()}
	f.IPv4, f.IPv6 = c.pair(v[0]&2 != 0, v[0]&1 != 0)
	if refusal := c.end(ieFSEID, len(v)); refusal != nil {
		return f, refusal
	}
	if !f.IPv4.IsValid() && !f.IPv6.IsValid() {
		return f, incorrect("F-SEID without an address")
	}
	return f, control(f.IPv4, f.IPv6)
}

// readFTEID is TS 29.244 §8.2.3.
func readFTEID(v []byte) (FTEID, *Error) {
	c := cursor{b: v[1:]}
	v4, v6 := v[0]&1 != 0, v[0]&2 != 0
	var f FTEID
	if v[0]&4 != 0 {
		f.Choose, f.WantIPv4, f.WantIPv6 = true, v4, v6
		if f.HasChooseID = v[0]&8 != 0; f.HasChooseID {
			f.ChooseID = c.byte()
		}
	} else {
		f.TEID = c.uint32()
		f.IPv4, f.IPv6 = c.pair(v4, v6)
	}
	if refusal := c.end(ieFTEID, len(v)); refusal != nil {
		return f, refusal
	}
	if !v4 && !v6 {
		return f, incorrect("F-TEID of neither IPv4 nor IPv6")
	}
	if !f.Choose && f.TEID == 0 { // TS 29.281 §5.1: 0 is for messages without a tunnel
		return f, incorrect("TEID 0")
	}
	return f, unicast(f.IPv4, f.IPv6)
}

// UE IP Address flags (TS 29.244 §8.2.62).
const (
	ueIPv6        = 1 << 0
	ueIPv4        = 1 << 1
	ueDestination = 1 << 2
	ueDelegated   = 1 << 3 // IPv6D
	ueChooseIPv4  = 1 << 4
	ueChooseIPv6  = 1 << 5
	ueLength      = 1 << 6 // IP6PL
)

// readUEIP is TS 29.244 §8.2.62.
func readUEIP(v []byte) (UEIP, *Error) {
	f, c := v[0], cursor{b: v[1:]}
	u := UEIP{Destination: f&ueDestination != 0, ChooseIPv4: f&ueChooseIPv4 != 0, ChooseIPv6: f&ueChooseIPv6 != 0}
	a4, a6 := c.pair(f&ueIPv4 != 0, f&ueIPv6 != 0)
	length := uint8(64)
	if f&ueDelegated != 0 { // how many bits shorter than a /64
		n := c.byte()
		if n > 64 {
			return u, incorrect("%d delegated bits", n)
		}
		length -= n
	}
	if f&ueLength != 0 {
		length = c.byte()
	}
	if refusal := c.end(ieUEIP, len(v)); refusal != nil {
		return u, refusal
	}
	if f&(ueIPv4|ueChooseIPv4) == ueIPv4|ueChooseIPv4 || f&(ueIPv6|ueChooseIPv6) == ueIPv6|ueChooseIPv6 ||
		f&(ueDelegated|ueLength) == ueDelegated|ueLength || f&(ueIPv4|ueIPv6|ueChooseIPv4|ueChooseIPv6) == 0 {
		return u, incorrect("UE IP address flags %#x", f)
	}
	if length == 0 || length > 128 {
		return u, incorrect("UE IPv6 prefix of length %d", length)
	}
	u.IPv4 = a4
	if a6.IsValid() {
		u.IPv6 = netip.PrefixFrom(a6, int(length)).Masked()
	}
	if u.ChooseIPv6 && length != 64 {
		u.ChooseLength = length
	}
	return u, unicast(a4, u.IPv6.Addr())
}

// readAddresses reads an address of each family, as flagged: CP PFCP Entity IP Address, Alternative SMF IP Address.
func readAddresses(v []byte) ([]netip.Addr, *Error) {
	c := cursor{b: v[1:]}
	a4, a6 := c.pair(v[0]&2 != 0, v[0]&1 != 0)
	if c.short || len(c.b) > 0 {
		return nil, &Error{Cause: CauseInvalidLength, Text: "addresses do not fit the flags"}
	}
	list := slices.DeleteFunc([]netip.Addr{a4, a6}, func(a netip.Addr) bool { return !a.IsValid() })
	return list, control(list...)
}

// readSNSSAI is TS 29.244 §8.2.176, shown as TS 23.003 §28.4.2 has it: SST, and the SD in hexadecimal unless it is
// FFFFFF.
func readSNSSAI(v []byte) (string, *Error) {
	text := strconv.Itoa(int(v[0]))
	if sd := v[1:4]; sd[0]&sd[1]&sd[2] != 0xff {
		text += "-" + hex.EncodeToString(sd)
	}
	return text, nil
}

// User ID (TS 29.244 §8.2.101) names IMSI, IMEI and MSISDN in digits, then NAI, SUPI, GPSI and PEI in text.
const (
	userNAI   = 3
	userKind  = 7
	maxDigits = 8 // octets: TS 23.003 §2.2, §6.2 have up to 16 digits
)

// readUserID reads the first identity present. It is for display: an unprintable one is omitted.
func readUserID(v []byte) (string, *Error) {
	c := cursor{b: v[1:]}
	user := ""
	for kind := range userKind {
		if v[0]&(1<<kind) == 0 {
			continue
		}
		value := c.take(int(c.byte()))
		text, ok := string(value), printable(value, false)
		if kind < userNAI {
			text, ok = digits(value)
			ok = ok && len(value) <= maxDigits
		}
		if user == "" && ok {
			user = text
		}
	}
	if c.short {
		return "", badLength(ieUserID, len(v))
	}
	return user, nil
}

// readFQCSID is TS 29.244 §8.2.45, kept as octets for comparison only. The number of CSIDs must fit.
func readFQCSID(v []byte) ([]byte, *Error) {
	address := 4 // IPv4, or MCC, MNC and an id of 12 bits
	switch v[0] >> 4 {
	case 0, 2:
	case 1:
		address = 16
	default:
		return nil, incorrect("FQ-CSID node id of type %d", v[0]>>4)
	}
	// The octet after the CSIDs is the node's type.
	if n := len(v) - 1 - address - 2*int(v[0]&15); v[0]&15 == 0 || n < 0 || n > 1 {
		return nil, badLength(ieFQCSID, len(v))
	}
	return append([]byte(nil), v...), nil
}
