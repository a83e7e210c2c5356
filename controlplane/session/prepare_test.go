// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/testkit"
)

// shown is a replan, without what depends on the order in which it looked.
func (r *replan) shown(p *Manager) string {
	sorted := func(list []uint64) []uint64 {
		list = slices.DeleteFunc(slices.Clone(list), func(seid uint64) bool { return p.x.session[seid] == 0 })
		slices.Sort(list)
		return slices.Compact(list)
	}
	x := r.index
	named := func(m map[uint64]uint64) (n int) { return len(m) } // instances and addresses are numbered as they come
	users := maps.Clone(r.users)
	maps.DeleteFunc(users, func(_ string, n int) bool { return n == 0 })
	return fmt.Sprint("lost ", sorted(r.lost), " moved ", sorted(r.moved), named(x.local), x.peer, x.peer6,
		named(x.host), x.prefix.String(), users)
}

// A configuration prepared in parts between any requests has the same result as at once.
func TestReplanPreparedAmongRequests(t *testing.T) {
	for seed := range uint64(30) {
		p, err := Open("", testSettings(), nil)
		testkit.Must(t, err)
		p.Attach(&strict{t: t})
		b := &bench{Manager: p, t: t}
		r := rand.New(rand.NewPCG(seed, 9))
		set := testSettings()
		set.Workers = 2
		set.Instances = append([]rules.Instance{{Name: "first", Endpoints: []netip.Addr{addr("10.1.0.7")},
			Sources: []pfcp.Interface{pfcp.Access}}},
			set.Instances...)
		if seed%5 == 4 { // some sessions have no place any more
			set.Instances = slices.DeleteFunc(set.Instances, func(i rules.Instance) bool { return i.Name == "n9" })
		}
		next := uint32(0)
		var seids []uint64
		request1 := func() {
			switch n := r.IntN(10); {
			case n < 4 || len(seids) == 0:
				next++
				req := request(next, fmt.Sprintf("10.46.%d.%d", next>>8, next&255))
				if r.IntN(6) == 0 && seed%5 == 4 {
					req.PDR[0].PDI.LocalFTEID.IPv4 = addr("10.9.0.1")
				}
				if r.IntN(3) == 0 {
					req.QER[0].Correlation = ptr(r.Uint32N(3))
				}
				if answer := b.atOnce(req, 0); answer != 0 {
					seids = append(seids, answer)
				}
			case n < 7:
				i := r.IntN(len(seids))
				b.atOnce(&pfcp.SessionDeletionRequest{}, seids[i])
				seids = slices.Delete(seids, i, i+1)
			default:
				b.atOnce(&pfcp.SessionModificationRequest{UpdateFAR: []pfcp.UpdateFAR{{ID: 2,
					Forwarding: &pfcp.Forwarding{
						OuterHeader: &pfcp.OuterHeader{Description: pfcp.OuterGTPUIPv4, TEID: r.Uint32() | 1,
							IPv4: addr("10.1.0.98")}}}}},
					seids[r.IntN(len(seids))])
			}
		}
		for range 200 {
			request1()
		}
		first := newReplan(set)
		p.plans.prepared = first
		p.plans.prepareCompare()
		begun := 0
		p.bySome(func(seid uint64, e entry) bool {
			if p.plans.prepared != first {
				return false
			}
			first.take(p.table, seid, e)
			if begun++; begun%3 == 0 {
				p.mu.Unlock() // as between two portions
				request1()
				p.mu.Lock()
			}
			return true
		})
		testkit.FatalIf(t, seed%5 != 4 && p.plans.prepared != first, "begun anew without a reason")
		p.mu.Lock()
		for seid, d := range p.plans.digests {
			e, there := p.x.at(seid)
			if s, err := rules.Decode(e.data); !there || err != nil || api.BodyDigest(p.occupied(s).Body) != d {
				t.Fatalf("seed %d: the digest of %#x is out of date", seed, seid)
			}
		}
		ahead := p.plans.replan(set)
		atOnce := p.plans.replan(set)
		got, want := ahead.shown(p), atOnce.shown(p)
		testkit.FatalIf(t, got != want, "seed %d: prepared\n%s\nat once\n%s", seed, got, want)
		for _, seid := range atOnce.changed {
			testkit.FatalIf(t, !slices.Contains(ahead.changed, seid),
				"seed %d: %#x is not to be sent again", seed, seid)
		}
		p.mu.Unlock()
		p.Close()
	}
}

// A session that was to be lost to an older one's conflict is kept when the older one ends meanwhile.
func TestReplanPreparedLosesNobodyForOneThatEnded(t *testing.T) {
	set := testSettings()
	set.Instances = append(set.Instances, rules.Instance{Name: "ims", Lookup: api.LookupDestination,
		Sources: []pfcp.Interface{pfcp.Core}})
	b := start(t, "", set)
	older := b.establish(smf1, request(1, "10.46.0.1")).UP.SEID
	req := request(2, "10.46.0.1")
	req.PDR[1].PDI.NetworkInstance = "ims"
	b.establish(smf1, req)
	without := testSettings()
	without.Instances = append(without.Instances, rules.Instance{Name: "ims", Sources: []pfcp.Interface{pfcp.Core}})
	b.plans.prepare(without)
	b.mu.Lock()
	r := b.plans.prepared
	testkit.ErrorIf(t, r == nil || len(r.lost) != 1, "nobody would be lost: a poor test")
	b.mu.Unlock()
	b.delete(smf1, older)
	b.mu.Lock()
	changes, _, _ := b.plans.reconfigure(without)
	testkit.ErrorIf(t, len(changes) != 0, "%+v", changes)
	b.mu.Unlock()
}

// A prepared comparison gives the same result.
func TestComparePrepared(t *testing.T) {
	b := start(t, "", testSettings())
	var seids []uint64
	for i := range uint32(300) {
		seids = append(seids, b.establish(smf1, request(i+1, fmt.Sprintf("10.46.%d.%d", i>>8, i&255))).UP.SEID)
	}
	held, err := dp.Held(t.Context(), b.c, nil)
	testkit.Must(t, err)
	b.plans.prepareCompare()
	wants(t, pfcp.CauseAccepted, b.modify(smf1, seids[3], precedence(7)))
	b.delete(smf1, seids[4])
	b.mu.Lock()
	defer b.mu.Unlock()
	testkit.Equal(t, len(b.plans.digests), 298, "known digests")
	d := b.compare(held)
	testkit.ErrorIf(t, len(d.After) != 1 || len(d.After[0]) != 1 || d.After[0][0].Key != rules.Key(seids[3]),
		"%+v", d)
	testkit.ErrorIf(t, len(d.Before) != 1 || len(d.Before[0]) != 1 || d.Before[0][0].Key != rules.Key(seids[4]),
		"%+v", d)
	unknown := api.Digest{Kind: api.KindSession}
	copy(unknown.Key[:], rules.Prefix+"no-seid")
	if d := b.compare(append(held, unknown)); len(d.Before) != 1 ||
		!slices.ContainsFunc(d.Before[0], func(c dp.Change) bool { return c.Key == rules.Prefix+"no-seid" }) {
		t.Errorf("%+v", d)
	}
}

// Limits alone make nothing different of a session.
func TestReplanOfLimits(t *testing.T) {
	b := start(t, "", testSettings())
	b.establish(smf1, request(1, "10.45.0.5"))
	set := testSettings()
	set.Limits.Sessions, set.Takeover = 1, true
	b.plans.prepare(set)
	changes := b.reconfigured(set)
	b.mu.Lock()
	testkit.ErrorIf(t, len(changes) != 0 || len(b.commits.deferredJobs) != 0 || b.set != set,
		"%v %d", changes, len(b.commits.deferredJobs))
	b.mu.Unlock()
	wants(t, pfcp.CauseNoResources, b.establish(smf1, request(2, "10.46.0.2")))
}

// atOnce carries out one request on a Manager without Run, and returns the SEID of a new session.
func (b *bench) atOnce(m pfcp.Message, seid uint64, from ...*n4.Association) (made uint64) {
	b.t.Helper()
	if from == nil {
		from = []*n4.Association{smf1}
	}
	answered := 0
	switch m := m.(type) {
	case *pfcp.SessionEstablishmentRequest:
		b.Establish(from[0], m, func(r *pfcp.SessionEstablishmentResponse) { made = r.UP.SEID; answered++ })
	case *pfcp.SessionModificationRequest:
		b.Modify(from, seid, m, func(*pfcp.SessionModificationResponse, uint64) { answered++ })
	case *pfcp.SessionDeletionRequest:
		b.Delete(from, seid, func(*pfcp.SessionDeletionResponse, uint64) { answered++ })
	default:
		return 0
	}
	b.runBatch(nil)
	testkit.FatalIf(b.t, answered != 1, "%T answered %d times", m, answered)
	return made
}

// An SGW-U alone makes other rules, which is no limit.
func TestReplanOfRoles(t *testing.T) {
	b := start(t, "", testSettings())
	b.establish(smf1, request(1, "10.45.0.5"))
	set := testSettings()
	set.Roles = []string{"sgwu"}
	b.plans.prepare(set)
	changes := b.reconfigured(set)
	testkit.ErrorIf(t, len(changes) != 1, "%v", changes)
	b.checkConsistent()
}

// Another burst of MBRs changes the policers of existing sessions.
func TestReplanOfBursts(t *testing.T) {
	b := start(t, "", testSettings())
	seid := b.establish(smf1, request(1, "10.45.0.5")).UP.SEID
	before := string(b.s.Held()[heldID(seid)])
	set := testSettings()
	set.MBRBurst.Least = 64 << 10
	b.plans.prepare(set)
	b.reconfigured(set)
	testkit.Until(t, "the session has other policers",
		func() bool { return string(b.s.Held()[heldID(seid)]) != before })
	b.checkConsistent()
}

// Preparation for a configuration that was not applied is dropped at the next one.
func TestPreparedForNothing(t *testing.T) {
	b := start(t, "", testSettings())
	b.establish(smf1, request(1, "10.45.0.5"))
	set := testSettings()
	set.Instances[2].Name = "n9b"
	b.plans.prepare(set)
	b.plans.prepare(testSettings())
	testkit.ErrorIf(t, b.plans.prepared != nil, "kept")
}
