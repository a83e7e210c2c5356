// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"isthmus/controlplane/bucket"
	"isthmus/controlplane/config"
	"isthmus/controlplane/pfcp"
)

// association is one PFCP association. The owner goroutine changes it; what others read is atomic or never changes.
type association struct {
	Association        // what the session layer sees; never changes, an update makes a new association value
	node               pfcp.NodeID
	k                  *socket // that it speaks to
	others             []netip.Addr
	configured         *config.PFCPPeer // nil: not in the list of peers
	since              time.Time
	*associationCounts // shared by the values that follow each other

	// The owner's alone.
	beat, headless *time.Timer
}

// associationCounts is what outlives an update of an association.
type associationCounts struct {
	recovery   atomic.Int64 // the peer's time stamp, s
	failedAt   atomic.Int64 // s; 0: the path works
	releasing  atomic.Bool  // we asked for the release, and the peer agreed
	confirming atomic.Bool  // a heartbeat of ours asks whether a newer time stamp is true
	requests   atomic.Uint64
	refused    atomic.Uint64
	heartbeats atomic.Uint64 // answered by the peer
	lost       atomic.Uint64 // not answered
	roundTrip  atomic.Int64  // of the last heartbeat, ns
	misses     atomic.Int64  // requests for unknown sessions in missSecond
	missSecond atomic.Int64
	window     window
	pending    map[gtpuPeer]*pfcp.NodeReportRequest // what the peer has not acknowledged; the owner's alone
}

func newCounts(q *requests) *associationCounts {
	return &associationCounts{window: window{requests: q}}
}

func (a *association) failed() bool { return a.failedAt.Load() != 0 }

// owns: a message from this address can be the association's (row A7, A2).
func (a *association) owns(addr netip.Addr) bool {
	return a.Addr.Addr() == addr || slices.Contains(a.others, addr)
}

func (a *association) stored() StoredAssociation {
	s := StoredAssociation{
		ID: a.ID, Set: a.Set, Addr: a.Addr, Others: a.others, Local: a.k.local, Features: a.Features,
		Recovery: time.Unix(a.recovery.Load(), 0).UTC(), Since: a.since,
	}
	if f := a.failedAt.Load(); f != 0 {
		s.FailedAt = time.Unix(f, 0).UTC()
	}
	return s
}

// index is where readers and workers look peers up. It is immutable; the owner replaces it.
type index struct {
	byID   map[string]*association
	byAddr map[netip.Addr]*source
}

// peers has the index of the moment.
type peers struct{ index atomic.Pointer[index] }

// source returns the known associations of an address, nil without any.
func (p *peers) source(addr netip.Addr) *source { return p.index.Load().byAddr[addr] }

// association returns a node id's, nil without one.
func (p *peers) association(id string) *association { return p.index.Load().byID[id] }

// source is an address that we know: of an association, or of a configured peer.
type source struct {
	associations []*association // by node id
	askers       []*Association // the same, as the session layer sees them
	rate         *bucket.Bucket
}

// find returns the association for a message without a node id. A peer sends from any port (TS 29.244 §6.3), so the
// port only distinguishes CP functions on one address. An association's own address has precedence over an alternative
// one. The session layer decides among all of the address.
func (s *source) find(from netip.AddrPort) (best *association) {
	if s == nil {
		return nil
	}
	for _, a := range s.associations {
		switch {
		case a.Addr == from:
			return a
		case best == nil, best.Addr.Addr() != from.Addr() && a.Addr.Addr() == from.Addr():
			best = a
		}
	}
	return best
}

// named returns the association of a node id, among those of the address.
func (s *source) named(id string) *association {
	if s == nil {
		return nil
	}
	for _, a := range s.associations {
		if a.ID == id {
			return a
		}
	}
	return nil
}

// table is the owner's.
type table struct {
	*journal
	cfg          *Config
	associations map[string]*association
	rates        map[netip.Addr]*bucket.Bucket // of the addresses in the index
}

// index is the table as readers and workers see it.
func (t *table) index() *index {
	x := &index{byID: make(map[string]*association, len(t.associations)), byAddr: make(map[netip.Addr]*source)}
	at := func(addr netip.Addr) *source {
		src := x.byAddr[addr]
		if src == nil {
			rate := t.rates[addr]
			if rate == nil {
				rate = &bucket.Bucket{}
			}
			src = &source{rate: rate}
			x.byAddr[addr] = src
		}
		return src
	}
	for i := range t.cfg.Peers {
		at(t.cfg.Peers[i].Address.Addr())
	}
	for _, id := range slices.Sorted(maps.Keys(t.associations)) {
		a := t.associations[id]
		x.byID[id] = a
		src := at(a.Addr.Addr())
		src.associations = append(src.associations, a)
		for _, o := range a.others {
			if o != a.Addr.Addr() {
				src := at(o)
				src.associations = append(src.associations, a)
			}
		}
	}
	rates := make(map[netip.Addr]*bucket.Bucket, len(x.byAddr))
	for addr, src := range x.byAddr {
		rates[addr] = src.rate
		for _, a := range src.associations {
			src.askers = append(src.askers, &a.Association)
		}
	}
	t.rates = rates
	return x
}

// members are the living members of an association's SMF set (TS 29.244 §5.22), itself first when it lives.
func (x *index) members(a *association) (list []*association) {
	for _, b := range x.byID {
		if !b.failed() && (b.ID == a.ID || a.Set != "" && b.Set == a.Set) {
			list = append(list, b)
		}
	}
	first := func(b *association) string {
		if b.ID == a.ID {
			return ""
		}
		return b.ID
	}
	slices.SortFunc(list, func(b, c *association) int { return cmp.Compare(first(b), first(c)) })
	return list
}
