// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"isthmus/api"
	"isthmus/controlplane/access"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/intent"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/session"
	"isthmus/controlplane/testkit"
)

// gateway is a loop on the session layer, on a data plane that moves no packets.
type gateway struct {
	*bench
	manager *session.Manager
	outcome session.Outcome // of the last Synchronise
	lines   map[string]*rules.Shaping
	end     func()
}

func (g *gateway) run(t *testing.T, s *dptest.Server, store string) {
	set := &rules.Settings{Node: pfcp.NodeID{FQDN: "gw"}, Workers: 2, Lines: g.lines,
		Instances: []rules.Instance{{Name: "internet", Lookup: intent.Lookups["destination"]}}}
	m, err := session.Open(store, set, nil)
	testkit.Must(t, err)
	c, err := dp.Dial(t.Context(), s.Path)
	testkit.Must(t, err)
	t.Cleanup(func() { c.Close() })
	g.boot = 0 // the session layer sets it
	g.open(nil)
	g.Loop.opt.Sessions = m
	g.manager, g.end = m, testkit.Run(t, m.Run)
	g.Restore(m.SetLines(g.Loop)) // the data plane comes later
	g.settle()
	g.outcome, err = m.Synchronise(t.Context(), c, set, true, func([]api.Digest) []dp.Change { return nil })
	testkit.Must(t, err)
	go m.Follow(t.Context(), s.Path)
}

// settle waits until the session layer has answered everything.
func (g *gateway) settle() {
	g.until("answers", func() bool {
		for _, s := range g.by.seid {
			if s.busy || len(s.ops) > 0 {
				return false
			}
		}
		return true
	})
}

// until turns the loop until something is so.
func (g *gateway) until(what string, so func() bool) {
	g.t.Helper()
	testkit.Until(g.t, what, func() bool { g.turn(); return so() })
}

func (g *gateway) signInUp(r *access.Request) *home {
	h := &home{t: g.t}
	up := false
	g.SignIn(r, h, func(s access.Session, v *access.Verdict) {
		if h.signed(s, v); s != nil {
			s.Up(access.Families{V4: true, V6: true}, 1492, access.KeepAlive{},
				func(err error) { up = err == nil })
			s.Keep([]byte("state"))
		}
	})
	g.until("up", func() bool { return up })
	return h
}

// A subscriber's session is an object of the data plane, outlives the control plane, comes back to a data plane that
// lost everything, and is counted exactly meanwhile.
func TestOnTheSessionLayer(t *testing.T) {
	s := dptest.Start(t)
	store := filepath.Join(t.TempDir(), "sessions.db")
	g := &gateway{bench: start(t, nil)}
	g.run(t, s, store)
	h := g.signInUp(request("anna", 1))
	seid := seidOf(h.session.ID())
	key := dptest.ID{Kind: api.KindSession, Key: rules.Key(seid)}
	var head api.Session
	_, err := api.ReadRow(s.Held()[key], &head)
	testkit.Must(t, err)
	testkit.ErrorIf(t, head.STag != 100 || head.PPPoESession != 2 ||
		api.CString(head.Instance[0][:]) != "internet" || head.LCPOpened != 1,
		"%+v", head)
	s.Raise(api.Event{Type: api.EventTypeUsage, SEID: seid, Usage: api.Usage{SEID: seid, URR: 1,
		Bytes: [3]uint64{3, 1, 2}}})
	g.until("the event is in the store", func() bool { return s.Unacknowledged() == 0 })
	before := s.Held()[key]

	g.end() // the control plane restarts
	g.run(t, s, store)
	testkit.ErrorIf(t, len(g.front.restored) != 1 || string(s.Held()[key]) != string(before), "%d restored",
		len(g.front.restored))

	s.SetHeld(map[dptest.ID][]byte{}) // and again, with a data plane that has nothing
	g.end()
	g.run(t, s, store)
	testkit.ErrorIf(t, string(s.Held()[key]) != string(before), "the session is not back")

	s.Usage(func(id dptest.ID, was, is []byte) []api.Usage {
		if id == key && is == nil {
			return []api.Usage{{SEID: seid, URR: 1, Sequence: 1, Bytes: [3]uint64{30, 10, 20}}}
		}
		return nil
	})
	g.Clear("anna", access.AdminReset)
	g.until("the last record", func() bool { return len(g.judge.of(h.session.ID())) == 2 })
	r := g.judge.last()
	testkit.ErrorIf(t, r.Total.UpBytes != 11 || r.Total.DownBytes != 22 || s.Held()[key] != nil, "%+v", r)
	g.until("the record is gone at once", func() bool {
		contents, err := session.Inspect(store, nil)
		return err == nil && contents.Lines == 0 && contents.Sessions == 0
	})
}

// A subscriber that signed in again on its line has one session when we are killed and restart. Its object stays as it
// is, also if the front end permits the same packets before the data plane is there.
func TestKilledAfterSecondSignIn(t *testing.T) {
	s := dptest.Start(t)
	store := filepath.Join(t.TempDir(), "sessions.db")
	g := &gateway{bench: start(t, nil)}
	g.run(t, s, store)
	former := g.signInUp(request("anna", 1))
	seid := seidOf(former.session.ID())
	record := g.by.seid[seid].recordEnded(access.UserRequest, time.Now())
	former.session.Down(access.UserRequest)
	g.until("the former session gone", func() bool { return len(g.judge.of(former.session.ID())) == 2 })
	kept := false // killed before the store could forget it
	g.manager.KeepLine(seid, record, func(err error) { g.Post(func() { kept = err == nil }) })
	g.until("its record", func() bool { return kept })
	h := g.signInUp(request("anna", 1))
	g.settle()
	key := dptest.ID{Kind: api.KindSession, Key: rules.Key(seidOf(h.session.ID()))}
	before := s.Held()[key]
	c, err := session.Inspect(store, nil)
	testkit.ErrorIf(t, err != nil || c.Lines != 2 || c.Sessions != 1 || before == nil, "%+v %v", c, err)

	g.front.up = true
	left, err := os.ReadFile(store) // what a kill leaves
	testkit.Must(t, err)
	g.end()
	testkit.Must(t, os.WriteFile(store, left, 0o600))
	g.run(t, s, store)
	testkit.Equal(t, g.outcome, session.Outcome{}, "objects sent and deleted")
	testkit.ErrorIf(t, len(g.front.restored) != 1 || g.front.restored[0].session.ID() != h.session.ID(),
		"%d restored", len(g.front.restored))
	testkit.ErrorIf(t, len(g.by.find("anna")) != 1 || string(s.Held()[key]) != string(before), "%d on line",
		len(g.by.find("anna")))
}

// Many sign in at once, while the data plane is slow: the session layer takes them in large transactions.
func TestManyAtOnce(t *testing.T) {
	s := dptest.Start(t)
	g := &gateway{bench: start(t, nil)}
	g.run(t, s, "")
	g.set.Limits.Rate = 0
	const homes = 2000
	asked, up := 0, 0
	for i := range homes {
		r := request(fmt.Sprint("user", i), byte(i))
		r.Line.STag, r.Line.CTag = uint16(1+i%4000), uint16(1+i/4000)
		g.SignIn(r, &home{}, func(s access.Session, _ *access.Verdict) {
			asked++
			s.Up(access.Families{V4: true}, 1492, access.KeepAlive{}, func(err error) {
				if err == nil {
					up++
				}
			})
		})
	}
	s.Hold(func() { g.until("all signed in", func() bool { return asked == homes }) })
	g.until("all up", func() bool { return up == homes })
	testkit.ErrorIf(t, g.manager.Counts().Transactions > homes/100, "%d transactions",
		g.manager.Counts().Transactions)
}
