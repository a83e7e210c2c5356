// SPDX-License-Identifier: Apache-2.0

package network

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"
)

// zone is what the lab's name server knows.
type zone map[string][]netip.Addr

// DNS types, classes and codes (RFC 1035 §3.2, §4.1.1).
const (
	dnsHeader   = 12
	dnsA        = 1
	dnsAAAA     = 28
	dnsIN       = 1
	dnsQR       = 0x8000
	dnsAA       = 0x0400
	dnsRD       = 0x0100
	dnsFormErr  = 1
	dnsNXDomain = 3
	dnsNotImp   = 4
	dnsPointer  = 0xc000 | dnsHeader // to the name of the question
)

var errQuestion = errors.New("no question")

// answer makes the response to a query with one question.
func (z zone) answer(q []byte) ([]byte, error) {
	if len(q) < dnsHeader || binary.BigEndian.Uint16(q[2:])&dnsQR != 0 {
		return nil, errQuestion
	}
	flags := binary.BigEndian.Uint16(q[2:])
	reply := func(code uint16, question []byte, answers int, records []byte) []byte {
		b := binary.BigEndian.AppendUint16(nil, binary.BigEndian.Uint16(q))
		b = binary.BigEndian.AppendUint16(b, dnsQR|dnsAA|flags&(0x7800|dnsRD)|code)
		b = binary.BigEndian.AppendUint16(b, uint16(btoi(question != nil)))
		b = binary.BigEndian.AppendUint16(b, uint16(answers))
		b = append(b, 0, 0, 0, 0)
		return append(append(b, question...), records...)
	}
	if flags&0x7800 != 0 {
		return reply(dnsNotImp, nil, 0, nil), nil
	}
	name, n := dnsName(q[dnsHeader:])
	if n == 0 || binary.BigEndian.Uint16(q[4:]) != 1 || len(q) < dnsHeader+n+4 {
		return reply(dnsFormErr, nil, 0, nil), nil
	}
	question := q[dnsHeader : dnsHeader+n+4]
	kind := binary.BigEndian.Uint16(question[n:])
	addresses, found := z[name]
	if !found {
		return reply(dnsNXDomain, question, 0, nil), nil
	}
	var records []byte
	answers := 0
	for _, a := range addresses {
		if a.Is4() && kind != dnsA || a.Is6() && kind != dnsAAAA {
			continue
		}
		records = binary.BigEndian.AppendUint16(records, dnsPointer)
		records = binary.BigEndian.AppendUint16(records, kind)
		records = binary.BigEndian.AppendUint16(records, dnsIN)
		records = binary.BigEndian.AppendUint32(records, 60) // seconds to live
		records = binary.BigEndian.AppendUint16(records, uint16(a.BitLen()/8))
		records = append(records, a.AsSlice()...)
		answers++
	}
	return reply(0, question, answers, records), nil
}

// dnsName reads a name without compression, which questions do not have; 0 bytes: it is malformed.
func dnsName(b []byte) (name string, size int) {
	var labels []string
	for at := 0; at < len(b) && at < 255; {
		n := int(b[at])
		if n == 0 {
			return strings.ToLower(strings.Join(labels, ".")), at + 1
		}
		if n > 63 || at+1+n > len(b) {
			return "", 0
		}
		labels = append(labels, string(b[at+1:at+1+n]))
		at += 1 + n
	}
	return "", 0
}

// servePackets answers queries over UDP until the socket is closed.
func (z zone) servePackets(c net.PacketConn) {
	b := make([]byte, 4096)
	for {
		n, from, err := c.ReadFrom(b)
		if err != nil {
			return
		}
		if r, err := z.answer(b[:n]); err == nil {
			c.WriteTo(r, from)
		}
	}
}

// serveStreams answers queries over TCP (RFC 1035 §4.2.2: two bytes of length) until the listener is closed.
func (z zone) serveStreams(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			c.SetDeadline(time.Now().Add(10 * time.Second))
			var size [2]byte
			if _, err := io.ReadFull(c, size[:]); err != nil {
				return
			}
			q := make([]byte, binary.BigEndian.Uint16(size[:]))
			if _, err := io.ReadFull(c, q); err != nil {
				return
			}
			if r, err := z.answer(q); err == nil {
				c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(r))), r...))
			}
		}()
	}
}
