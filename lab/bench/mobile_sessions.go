// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"net/netip"

	"isthmus/api"
	"isthmus/controlplane/dp"
)

// Sessions of mobile functions, as a CP function's rules would have them (TS 29.244): two PDRs and FARs, where wanted a QER
// and a URR. They are put into the data plane directly, without PFCP: these profiles measure packets, not signalling.

// sessionBatch is how many sessions go into one transaction.
const sessionBatch = 16384

// leg is one side of a function: a tunnel to a peer, or IP where local is empty.
type leg struct {
	instance string // network instance
	local    string // our address of the tunnel
	teid     uint32 // that we gave for the first session
	peers    []string
	peerTEID uint32 // that the peer gave for the first session
}

func (e *leg) tunnel() bool { return e.local != "" }

// path is the key of the tunnel to a session's peer: peers take turns.
func (e *leg) path(i int) string { return fmt.Sprintf("n4.%s.%d", e.instance, i%len(e.peers)) }

// function is a UP function with one session for each UE.
type function struct {
	name         string
	first        uint64 // what SEIDs count from
	access, core leg
	usage        bool // each session has a policer and a volume URR
	qfi          byte // PDU Session Container on the access side; 0: none
	workers      int
}

// policerName is the profile of all sessions' MBR, far above what can be sent.
const policerName = "mbr"

// paths are the GTP-U peers, as the control plane makes them on demand.
func (f *function) paths() []dp.Change {
	var list []dp.Change
	for _, e := range []*leg{&f.access, &f.core} {
		for i, peer := range e.peers {
			body := api.Path{Local: address(e.local), Peer: address(peer), TTL: 64}
			list = append(list, dp.Change{Kind: api.KindPath, Key: e.path(i), Body: api.Body(&body)})
		}
	}
	return list
}

func address(s string) api.Address { return api.FromAddr(netip.MustParseAddr(s)) }

// Rules of a session by number.
const (
	ruleUplink   = 1
	ruleDownlink = 2
	ruleUsage    = 1
	noInstance   = 0xff
)

// session is UE i's session.
func (f *function) session(i int) (dp.Change, error) {
	s := api.Session{
		SEID: f.first + uint64(i+1), Worker: uint16(i % max(f.workers, 1)), Encap: api.EncapNone, PDRs: 2, FARs: 2,
	}
	if !f.access.tunnel() || !f.core.tunnel() { // an SGW-U does not know UEs' addresses
		s.UEIP4 = address(ue(i))
	}
	if f.qfi != 0 || f.usage {
		s.QERs = 1
	}
	if f.usage {
		s.URRs = 1
	}
	for n, e := range []*leg{&f.access, &f.core} {
		if err := api.PutCString(s.Instance[n][:], e.instance); err != nil {
			return dp.Change{}, err
		}
	}
	body := api.Body(&s)
	body = api.AppendRows(body, []api.PDR{f.pdr(0, &f.access, i), f.pdr(1, &f.core, i)})
	body = api.AppendRows(body, []api.FAR{f.far(0, &f.core, i), f.far(1, &f.access, i)})
	if s.QERs > 0 {
		q := api.QER{ID: ruleUsage, QFI: f.qfi}
		if f.usage {
			copy(q.UplinkPolicer[:], policerName)
			copy(q.DownlinkPolicer[:], policerName)
		}
		body = api.AppendRow(body, &q)
	}
	if s.URRs > 0 {
		body = api.AppendRow(body, &api.URR{ID: ruleUsage, Method: api.URRVolume, Triggers: api.URRVolth,
			VolumeThreshold: [3]uint64{1 << 62, 0, 0}})
	}
	return dp.Change{Kind: api.KindSession, Key: fmt.Sprintf("n4.%016x", s.SEID), Body: body}, nil
}

// pdr is the rule for packets from side n (0: access, 1: core). The last function of the chain checks the UE's address
// inside the tunnel, too.
func (f *function) pdr(n int, e *leg, i int) api.PDR {
	p := api.PDR{Precedence: 100, ID: ruleUplink, Source: api.SourceFromAccess, Instance: byte(n), FAR: ruleUplink, Match: api.PDRUEIP}
	if n == 1 {
		p.ID, p.Source, p.FAR = ruleDownlink, api.SourceFromCore, ruleDownlink
	}
	if e.tunnel() {
		p.Match, p.TEID, p.Local, p.OuterHeaderRemoval = api.PDRFTEID, e.teid+uint32(i), address(e.local), 1
		if n == 0 && !f.core.tunnel() {
			p.Match |= api.PDRUEIP
		}
	}
	if f.qfi != 0 || f.usage {
		p.QERs, p.QER[0] = 1, ruleUsage
	}
	if f.usage {
		p.URRs, p.URR[0] = 1, ruleUsage
	}
	return p
}

// far is what sends out on the side opposite to PDR n.
func (f *function) far(n int, e *leg, i int) api.FAR {
	a := api.FAR{ID: ruleUplink, Action: api.FARForward, Destination: api.SourceFromCore, Outer: api.OuterNone, DSCP: 0xff, Instance: 1}
	if n == 1 {
		a.ID, a.Destination, a.Instance = ruleDownlink, api.SourceFromAccess, 0
	}
	if e.tunnel() {
		a.Outer, a.TEID = api.OuterGTPU, e.peerTEID+uint32(i)
		copy(a.Path[:], e.path(i))
		if f.qfi != 0 && n == 1 {
			a.PDUType = api.PDUTypeDL
		}
	}
	return a
}

// put brings paths and n sessions into a data plane that has the configuration.
func (f *function) put(ctx context.Context, d *dataPlane, n int) error {
	if err := d.Apply(ctx, f.paths()); err != nil {
		return err
	}
	batch := make([]dp.Change, 0, sessionBatch)
	for i := range n {
		c, err := f.session(i)
		if err != nil {
			return err
		}
		if batch = append(batch, c); len(batch) < sessionBatch && i+1 < n {
			continue
		}
		if err := d.Apply(ctx, batch); err != nil {
			return err
		}
		batch = batch[:0]
	}
	return nil
}
