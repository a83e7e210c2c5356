// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"net/netip"

	"isthmus/api"
	"isthmus/controlplane/dp"
)

// Sessions of mobile functions, with a CP function's rules (TS 29.244): two PDRs and FARs, optionally a QER and a URR.
// They are put into the data plane directly, without PFCP: these profiles measure packets, not signalling.

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
	flows        int // not 0: two bearers a session, so that 5-tuples lead to rules; flows each way
	// each bearer's packets are policed and counted with the session's too, and policed with the slice's
	more bool
}

// each is how many flows each way a session has.
func (f *function) each() int { return max(f.flows, 1) }

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
	ruleBearer   = 2 // usage of the second bearer
	ruleSession  = 3
	ruleSlice    = 4
	secondPDRs   = 2 // the second bearer's have numbers that much higher
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
	pdrs := []api.PDR{f.pdr(0, &f.access, i), f.pdr(1, &f.core, i)}
	qers, urrs := f.measures(int(s.QERs), int(s.URRs))
	var sdfs []api.SDF
	if f.flows > 0 {
		pdrs = append(pdrs, f.bearer(pdrs[0]), f.bearer(pdrs[1]))
		// The second half of the server's ports (TS 29.244 §8.2.5, "permit out udp from any PORTS to
		// assigned").
		sdfs = []api.SDF{{Protocol: 17, Flags: api.SDFProtocol, LocalPort: [2]uint16{0, 65535},
			RemotePort: [2]uint16{basePort + bearerFlows, basePort + sessionWays - 1}}}
		s.PDRs, s.SDFs, s.QERs, s.URRs = uint16(len(pdrs)), uint16(len(sdfs)), uint16(len(qers)),
			uint16(len(urrs))
	}
	body := api.Body(&s)
	body = api.AppendRows(body, pdrs)
	body = api.AppendRows(body, []api.FAR{f.far(0, &f.core, i), f.far(1, &f.access, i)})
	body = api.AppendRows(body, qers)
	body = api.AppendRows(body, urrs)
	body = api.AppendRows(body, sdfs)
	return dp.Change{Kind: api.KindSession, Key: fmt.Sprintf("n4.%016x", s.SEID), Body: body}, nil
}

// measures are a session's QERs and URRs: without flows as given, with them one of each for each bearer, and the shared
// ones.
func (f *function) measures(qers, urrs int) (q []api.QER, u []api.URR) {
	policed := func(id uint32, flow byte, share uint32) api.QER {
		one := api.QER{ID: id, QFI: flow, Share: share}
		if f.usage {
			copy(one.UplinkPolicer[:], policerName)
			copy(one.DownlinkPolicer[:], policerName)
		}
		return one
	}
	counted := func(id uint32) api.URR {
		return api.URR{ID: id, Method: api.URRVolume, Triggers: api.URRVolth,
			VolumeThreshold: [3]uint64{1 << 62, 0, 0}}
	}
	if qers > 0 {
		q = append(q, policed(ruleUsage, f.qfi, 0))
	}
	if urrs > 0 {
		u = append(u, counted(ruleUsage))
	}
	if f.flows > 0 {
		q, u = append(q, policed(ruleBearer, f.qfi+1, 0)), append(u, counted(ruleBearer))
	}
	if f.more {
		q, u = append(q, policed(ruleSession, 0, 0), policed(ruleSlice, 0, 1)), append(u, counted(ruleSession))
	}
	return q, u
}

// bearer is the second bearer's rule, made of the first one's: it is looked at first, and takes what its filter takes.
func (f *function) bearer(p api.PDR) api.PDR {
	p.ID, p.Precedence, p.SDFCount = p.ID+secondPDRs, p.Precedence-1, 1
	p.Match |= api.PDRSDF
	p.QER[0], p.URR[0] = ruleBearer, ruleBearer
	return p
}

// pdr is the rule for packets from side n (0: access, 1: core). The last function of the chain checks the UE's address
// inside the tunnel, too.
func (f *function) pdr(n int, e *leg, i int) api.PDR {
	p := api.PDR{Precedence: 100, ID: ruleUplink, Source: api.SourceFromAccess, Instance: byte(n), FAR: ruleUplink,
		Match: api.PDRUEIP}
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
	if f.more {
		p.QERs, p.URRs = 3, 2
		p.QER[1], p.QER[2], p.URR[1] = ruleSession, ruleSlice, ruleSession
	}
	return p
}

// far is what sends out on the side opposite to PDR n.
func (f *function) far(n int, e *leg, i int) api.FAR {
	a := api.FAR{ID: ruleUplink, Action: api.FARForward, Destination: api.SourceFromCore, Outer: api.OuterNone,
		DSCP: 0xff, Instance: 1}
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
