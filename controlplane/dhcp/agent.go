// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"encoding/binary"

	"isthmus/controlplane/access"
)

const broadbandForum = 3561

// agent82 reads the relay agent information option: sub-options 1, 2 (RFC 3046) and 9 (RFC 4243) with the line's rates
// (TR-101 §3.9.3).
func agent82(b []byte) (a access.Agent, ok bool) {
	ok = each8(b, func(code byte, v []byte) bool {
		switch code {
		case 1:
			a.CircuitID = v
		case 2:
			a.RemoteID = v
		case 9:
			return vendors(v, &a)
		}
		return true
	})
	return a, ok
}

// each8 walks options of one byte of code and one of length.
func each8(b []byte, fn func(code byte, v []byte) bool) bool {
	for len(b) > 0 {
		if len(b) < 2 || len(b) < 2+int(b[1]) || !fn(b[0], b[2:2+int(b[1])]) {
			return false
		}
		b = b[2+int(b[1]):]
	}
	return true
}

func vendors(b []byte, a *access.Agent) bool {
	for len(b) > 0 {
		if len(b) < 5 || len(b) < 5+int(b[4]) {
			return false
		}
		if binary.BigEndian.Uint32(b) == broadbandForum && !each8(b[5:5+int(b[4])], rates(a)) {
			return false
		}
		b = b[5+int(b[4]):]
	}
	return true
}

func rates(a *access.Agent) func(code byte, v []byte) bool {
	into := map[byte]*uint32{0x81: &a.Up, 0x82: &a.Down, 0x83: &a.MinUp, 0x84: &a.MinDown, 0x85: &a.MaxUp,
		0x86: &a.MaxDown}
	return func(code byte, v []byte) bool {
		if at := into[code]; at != nil && len(v) == 4 {
			*at = binary.BigEndian.Uint32(v)
		}
		return true
	}
}
