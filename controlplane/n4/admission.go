// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"log/slog"
	"net/netip"
	"slices"
	"strings"

	"isthmus/controlplane/config"
)

// Rules of association: who, under which node id, in which SMF set. A message proves its source address only; the rest
// is a claim.

// configuredPeer returns the matching entry of the list of peers; an entry that names the node id has precedence.
// known: the address is in the list at all.
func (c *Config) configuredPeer(addr netip.Addr, id string) (p *config.PFCPPeer, known bool) {
	for i := range c.Peers {
		q := &c.Peers[i]
		if q.Address.Addr() != addr {
			continue
		}
		known = true
		if q.NodeID == id {
			return q, true
		}
		if q.NodeID == "" && p == nil {
			p = q
		}
	}
	return p, known
}

// nodesAt are the Node IDs that the list of peers has for an address.
func (c *Config) nodesAt(addr netip.Addr) string {
	var all []string
	for i := range c.Peers {
		if q := &c.Peers[i]; q.Address.Addr() == addr {
			all = append(all, q.NodeID)
		}
	}
	return strings.Join(all, ", ")
}

// peerOf returns the configured peer of a stored association, nil without one. Its other addresses are the peer's
// claim, so there its node id must be configured.
func (c *Config) peerOf(st StoredAssociation) *config.PFCPPeer {
	if p, _ := c.configuredPeer(st.Addr.Addr(), st.ID); p != nil {
		return p
	}
	for _, a := range st.Others {
		if p, _ := c.configuredPeer(a, st.ID); p != nil && p.NodeID == st.ID {
			return p
		}
	}
	return nil
}

// givesNode: the configuration assigns a node id to this address, or to others only. An entry without one has its
// address as node id.
func (c *Config) givesNode(addr netip.Addr, id string) (here, elsewhere bool) {
	for i := range c.Peers {
		if q := &c.Peers[i]; q.NodeID == id || q.NodeID == "" && q.Address.Addr().String() == id {
			here = here || q.Address.Addr() == addr
			elsewhere = true
		}
	}
	return here, elsewhere && !here
}

// givesSet returns the configured SMF set of a peer, and whether it may have the set that it claims, which is not a
// configured one.
func (c *Config) givesSet(peer *config.PFCPPeer, claim string) (set string, claimable bool) {
	if peer != nil && peer.Set != "" {
		return peer.Set, false
	}
	return "", claim != "" && !slices.ContainsFunc(c.Peers, func(q config.PFCPPeer) bool { return q.Set == claim })
}

// mayHave: a node id may be associated from an address (row A2). The configuration decides. Otherwise the node id and
// its sessions belong to its association, whether the path works or not: only that association's addresses take it
// over. A failed association of an unknown peer is free to all that may associate, since addresses change.
func (t *table) mayHave(from netip.Addr, id string, old *association) bool {
	here, elsewhere := t.cfg.givesNode(from, id)
	return here || old != nil && old.owns(from) || !elsewhere && (old == nil || old.configured == nil && old.failed())
}

// mayAssociate decides whether this node id may associate from this address.
func (t *table) mayAssociate(from netip.Addr, id string, peer *config.PFCPPeer, old *association) reject {
	switch {
	case peer == nil && !t.cfg.AllowUnknown:
		return rejectNotAllowed // the address is in the list, but with another node id
	case !t.mayHave(from, id, old):
		return rejectNodeTaken
	case old != nil:
		return accepted
	}
	// Row A3: an unconfigured peer cannot take a configured one's slot, nor all others.
	reserved, ofAddress := 0, 0
	for i := range t.cfg.Peers {
		if q := &t.cfg.Peers[i]; q != peer && !t.associated(q) {
			reserved++
		}
	}
	for _, a := range t.associations {
		if a.Addr.Addr() == from {
			ofAddress++
		}
	}
	if len(t.associations)+reserved >= t.cfg.Associations {
		return rejectAssociations
	}
	if (peer == nil || peer.NodeID == "") && ofAddress >= t.cfg.AssociationsPerAddress {
		return rejectAssociations
	}
	return accepted
}

func (t *table) associated(p *config.PFCPPeer) bool {
	for _, a := range t.associations {
		if a.configured == p {
			return true
		}
	}
	return false
}

// setOf decides which SMF set a CP function belongs to. Members share sessions, so a claim is not enough (row A4). A
// configured set has the members that it names. Another set belongs to its first claimant, and to peers whose address a
// member named as its other one (TS 29.244 §7.4.4.1, Alternative SMF IP Address).
func (t *table) setOf(id string, peer *config.PFCPPeer, from netip.Addr, claim string) string {
	claim = nodeName(claim)
	set, claimable := t.cfg.givesSet(peer, claim)
	taken := false
	for _, a := range t.associations {
		if claimable && a.Set == claim {
			if a.ID == id || a.owns(from) {
				return claim
			}
			taken = true
		}
	}
	if claimable && !taken {
		return claim
	}
	if claim != "" && set == "" {
		t.record(eventSetRefused, slog.LevelWarn, id, "from", from, "claimed", claim)
	}
	return set
}
