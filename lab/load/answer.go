// SPDX-License-Identifier: Apache-2.0

package load

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"isthmus/controlplane/pfcp"
)

// IE types of the answers (TS 29.244 §8.1.2).
const (
	ieCreatedPDR  = 8
	ieCause       = 19
	ieFTEID       = 21
	iePDRID       = 56
	ieFSEID       = 57
	ieNodeID      = 60
	ieUsageReport = 79 // of a Session Deletion Response
	ieURRID       = 81
)

// answer is what is checked in a response. Decoding into typed messages would cost more than the server's own work.
type answer struct {
	header  pfcp.Header
	at      time.Time // when it came in
	cause   pfcp.Cause
	node    bool
	seid    uint64 // the user plane's; 0: absent
	teid    uint32 // chosen for the uplink PDR; 0: absent
	address [16]byte
	usage   bool // a report of URR 1
}

var errCut = errors.New("an IE is cut off")

// walk calls f with each IE of a list.
func walk(b []byte, f func(ie uint16, v []byte) error) error {
	for len(b) > 0 {
		if len(b) < 4 {
			return errCut
		}
		n := int(binary.BigEndian.Uint16(b[2:]))
		if len(b) < 4+n {
			return errCut
		}
		if err := f(binary.BigEndian.Uint16(b), b[4:4+n]); err != nil {
			return err
		}
		b = b[4+n:]
	}
	return nil
}

// parse reads a response of a session.
func (a *answer) parse(h pfcp.Header, b []byte) error {
	*a = answer{header: h}
	return walk(b[headerSize:], func(ie uint16, v []byte) error {
		switch ie {
		case ieCause:
			if len(v) < 1 {
				return errCut
			}
			a.cause = pfcp.Cause(v[0])
		case ieNodeID:
			a.node = len(v) > 1
		case ieFSEID:
			if len(v) < 9 {
				return errCut
			}
			a.seid = binary.BigEndian.Uint64(v[1:])
		case ieCreatedPDR:
			return a.created(v)
		case ieUsageReport:
			return walk(v, func(ie uint16, v []byte) error {
				if ie == ieURRID && len(v) >= 4 && binary.BigEndian.Uint32(v) == 1 {
					a.usage = true
				}
				return nil
			})
		}
		return nil
	})
}

// created reads a Created PDR; of the uplink PDR the F-TEID counts.
func (a *answer) created(b []byte) error {
	id, teid, address := uint16(0), uint32(0), [16]byte{}
	err := walk(b, func(ie uint16, v []byte) error {
		switch {
		case ie == iePDRID && len(v) >= 2:
			id = binary.BigEndian.Uint16(v)
		case ie == ieFTEID && len(v) >= 9: // flags, TEID, then IPv4, IPv6 or both
			teid = binary.BigEndian.Uint32(v[1:])
			copy(address[:], v[5:])
		case ie == iePDRID || ie == ieFTEID:
			return errCut
		}
		return nil
	})
	if id == 1 {
		a.teid, a.address = teid, address
	}
	return err
}

const causeWord = "cause "

// check returns the fault of an answer to a request; empty: none.
func (a *answer) check(k kind, cp uint64) string {
	switch {
	case a.header.Type != requestTypes[k]+1:
		return fmt.Sprintf("message type %d answers a request of type %d", a.header.Type, requestTypes[k])
	case a.cause == 0:
		return "no cause"
	case a.cause != pfcp.CauseAccepted:
		return fmt.Sprint(causeWord, uint8(a.cause))
	case a.header.SEID != cp:
		return "the SEID is not that of the session"
	case k == establishment && !a.node:
		return "no node id"
	case k == establishment && a.seid == 0:
		return "no UP F-SEID"
	case k == establishment && a.teid == 0:
		return "no F-TEID although CHOOSE asked for one"
	case k == deletion && !a.usage:
		return "no usage report of the URR"
	}
	return ""
}
