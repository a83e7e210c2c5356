// SPDX-License-Identifier: Apache-2.0

package session

import (
	"net/netip"

	"isthmus/api"
	"isthmus/controlplane/rules"
)

// finder finds sessions for reporting (interface sessions).
type finder struct{ *table }

func (p finder) subjectOf(seid uint64) subject {
	e, s, err := p.decoded(seid)
	if err != nil {
		return subject{seid: seid}
	}
	return subject{seid, s, e.recipient(s)}
}

// subjects are sessions, in this order, as they are at one moment.
func (p finder) subjects(seids []uint64) []subject {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]subject, len(seids))
	for i, seid := range seids {
		list[i] = p.subjectOf(seid)
	}
	return list
}

// sessionOf is the SEID of an event.
func sessionOf(e *api.Event) uint64 {
	if e.Type == api.EventTypeUsage && e.Usage.SEID != 0 {
		return e.Usage.SEID
	}
	return e.SEID
}

// about finds the session that an event concerns, and the CP function's id of the PDR.
func (p finder) about(e *api.Event) (s subject, pdr uint16) {
	p.mu.Lock()
	defer p.mu.Unlock()
	seid := sessionOf(e)
	if e.Type == api.EventTypeErrorIndication {
		t := rules.Tunnel{Addr: e.Peer.Netip().Addr(), TEID: e.TEID}
		if t.Addr.IsValid() {
			if last, known := p.x.toPeer(t); known {
				seid = last
			}
		}
	}
	if s = p.subjectOf(seid); s.session != nil && e.Type == api.EventTypeDownlinkData {
		pdr = s.session.RealPDR(p.set, p.pfds, uint16(e.Rule))
	}
	return s, pdr
}

func (p finder) there(seid uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.x.session[seid] != 0
}

// instanceOf is the network instance of an address of ours, "" for none.
func (p finder) instanceOf(local netip.Addr) string {
	if i := p.Settings().Owner(local); i != nil {
		return i.Name
	}
	return ""
}

// ofLine: an event is for Lines, of a line's session or of an ended one.
func (p finder) ofLine(e *api.Event) bool {
	seid := sessionOf(e)
	p.mu.Lock()
	defer p.mu.Unlock()
	x, there := p.x.at(seid)
	return seid != 0 && (!there || x.owner.id == LineOwner)
}
