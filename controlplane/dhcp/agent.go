// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"encoding/binary"

	"isthmus/controlplane/access"
)

const broadbandForum = 3561

// circuit is a trusted access node's id of a subscriber.
type circuit struct {
	counted string    // of circuitOf
	ids     [2]string // by DHCPv4, and by DHCPv6, which may write it differently; empty: unknown
}

// circuitOf is the key of Limits.PerCircuit; empty without the access node's tag.
func circuitOf(r *access.Request) string {
	if len(r.Agent.CircuitID) == 0 {
		return ""
	}
	return countedCircuit(r.Line.Port, string(r.Agent.CircuitID))
}

func countedCircuit(port, id string) string { return port + "\x00" + id }

func (c *circuit) of(kind access.Kind) *string {
	if kind == access.IPoE4 {
		return &c.ids[0]
	}
	return &c.ids[1]
}

// elsewhere: a message came by another circuit than the subscriber's. A missing circuit (access nodes omit it in
// unicast messages and router solicitations) does not count as another.
func (u *subscriber) elsewhere(r *access.Request) bool {
	if u.circuit == nil || len(r.Agent.CircuitID) == 0 {
		return false
	}
	id := *u.circuit.of(r.Kind)
	return id != "" && id != string(r.Agent.CircuitID)
}

// learn notes the circuit id of the first message that has one.
func (u *subscriber) learn(r *access.Request) {
	if len(r.Agent.CircuitID) == 0 {
		return
	}
	if u.circuit == nil {
		u.circuit = &circuit{counted: circuitOf(r)}
		u.s.circuits[u.circuit.counted]++
	}
	if id := u.circuit.of(r.Kind); *id == "" {
		*id = string(r.Agent.CircuitID)
		if u.kept != (access.Families{}) {
			u.keep(u.kept)
		}
	}
}

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
