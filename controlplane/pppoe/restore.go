// SPDX-License-Identifier: Apache-2.0

package pppoe

import (
	"encoding/binary"

	"isthmus/controlplane/access"
	"isthmus/controlplane/ppp"
)

const (
	stateVersion = 1
	stateSize    = 1 + 1 + 4 + 4 + 2 + 2 + 8
)

const (
	stateV4 = 1 << iota
	stateV6
	stateExtraV6
	stateExtraDelegated
	stateRelayed // a length and what v6 keeps follow
)

// state is what Restore needs, beside the session itself.
func (x *session) state() []byte {
	s := x.link.State()
	flags := byte(0)
	for i, on := range [5]bool{s.Open.V4, s.Open.V6, x.extra.V6, x.extra.Delegated, x.relayed} {
		if on {
			flags |= 1 << i
		}
	}
	b := append(make([]byte, 0, stateSize+len(x.relay)), stateVersion, flags)
	b = binary.BigEndian.AppendUint32(b, s.Magic)
	b = binary.BigEndian.AppendUint32(b, s.PeerMagic)
	b = binary.BigEndian.AppendUint16(b, s.MRU)
	b = binary.BigEndian.AppendUint16(b, s.PeerMRU)
	b = binary.BigEndian.AppendUint64(b, s.RemoteID)
	if x.relayed {
		var kept []byte
		if x.v6 != nil {
			kept = x.v6.State()
		}
		b = append(append(b, byte(len(kept))), kept...)
	}
	return append(b, x.relay...)
}

// Restore continues a session seamlessly: no PPP packet is sent, and the same packets pass without another request.
func (s *Server) Restore(of access.Session, r *access.Request, state []byte) access.Client {
	line, pppoe := r.Line, r.PPPoE
	if len(state) < stateSize || state[0] != stateVersion || pppoe == 0 || pppoe == 0xffff {
		return nil
	}
	who, p := s.peerOf(&line)
	k := key{who, pppoe}
	if s.sessions[k] != nil {
		return nil
	}
	get := binary.BigEndian
	open := access.Families{V4: state[1]&stateV4 != 0, V6: state[1]&stateV6 != 0}
	x := &session{server: s, config: s.config, port: p, tpid: line.TPID, key: k, session: of,
		circuit: string(r.Agent.CircuitID), relayed: state[1]&stateRelayed != 0}
	relay, kept := state[stateSize:], []byte(nil)
	if x.relayed {
		if len(relay) == 0 || len(relay) < 1+int(relay[0]) {
			return nil
		}
		kept, relay = relay[1:1+int(relay[0])], relay[1+int(relay[0]):]
	}
	if open.V6 {
		x.extra = access.Families{V6: state[1]&stateExtraV6 != 0, Delegated: state[1]&stateExtraDelegated != 0}
	}
	if len(relay) > 0 {
		x.relay = append(x.relay, relay...)
	}
	s.add(x, false)
	x.link.Resume(x, &x.config.PPP, ppp.State{Magic: get.Uint32(state[2:]), PeerMagic: get.Uint32(state[6:]),
		MRU: get.Uint16(state[10:]), PeerMRU: get.Uint16(state[12:]), RemoteID: get.Uint64(state[14:]),
		Open: open}, x.network())
	x.passing = x.passes(x.link.Possible())
	x.serve6(open.V6, kept)
	return x
}
