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
	ok = access.Options(b, func(code byte, v []byte) bool {
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

func vendors(b []byte, a *access.Agent) bool {
	for len(b) > 0 {
		if len(b) < 5 || len(b) < 5+int(b[4]) {
			return false
		}
		if binary.BigEndian.Uint32(b) == broadbandForum && !access.Options(b[5:5+int(b[4])], a.Characteristic) {
			return false
		}
		b = b[5+int(b[4]):]
	}
	return true
}
