// SPDX-License-Identifier: Apache-2.0

package session

import (
	"net/netip"
	"path/filepath"
	"sync/atomic"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/testkit"
)

// lineOf is a subscriber's session.
func lineOf(seid uint64, ue string) *rules.Session {
	pdr := func(id uint16, from pfcp.Interface) pfcp.CreatePDR {
		return pfcp.CreatePDR{ID: id, Precedence: 100, FAR: ptr(uint32(id)),
			PDI: pfcp.PDI{Source: from, NetworkInstance: "internet", UEIP: []pfcp.UEIP{{IPv4: addr(ue)}}}}
	}
	far := func(id uint32, to pfcp.Interface) rules.FAR {
		w := &pfcp.Forwarding{Destination: &to}
		if to == pfcp.Core {
			w.NetworkInstance = ptr("internet")
		}
		return rules.FAR{CreateFAR: pfcp.CreateFAR{ID: id, Action: pfcp.ActionForward, Forwarding: w}}
	}
	s := &rules.Session{SEID: seid, Line: &api.Session{Encap: api.EncapQinQ, STag: 5, CTag: 6, MAC: [6]byte{2, 1}},
		PDR: []pfcp.CreatePDR{pdr(1, pfcp.Access), pdr(2, pfcp.Core)}, FAR: []rules.FAR{far(1, pfcp.Core),
			far(2, pfcp.Access)}}
	copy(s.Line.Port[:], "access")
	return s
}

type heard struct {
	events chan api.Event
	done   chan func()
	ended  chan uint64
	usage  []api.Usage // of the last that ended, set before ended
	boot   atomic.Uint64
	lost   []api.Usage // of data planes that are gone; each is counted at once, but for hold
	hold   bool
}

func (h *heard) LineEvent(e *api.Event, done func()) { h.events <- *e; h.done <- done }
func (h *heard) LinesBoot(id uint64)                 { h.boot.Store(id) }
func (h *heard) LineLost(_, _ uint64, usage []api.Usage, done func()) {
	if h.lost = append(h.lost, usage...); !h.hold {
		done()
	}
}
func (h *heard) LineEnded(seid uint64, usage []api.Usage) {
	h.usage = usage
	h.ended <- seid
}

func (b *bench) put(s *rules.Session, record string) error {
	b.t.Helper()
	ch := make(chan error, 1)
	b.PutLine(s, []byte(record), func(_ []api.Usage, err error) { ch <- err })
	return testkit.Receive(b.t, ch)
}

func TestLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := dptest.Start(t)
	b := startOn(t, s, path, testSettings())
	h := &heard{events: make(chan api.Event, 9), done: make(chan func(), 9), ended: make(chan uint64, 9)}
	testkit.Equal(t, len(b.SetLines(h)), 0, "records")
	go b.Follow(t.Context(), s.Path)
	testkit.Must(t, b.put(lineOf(77, "10.45.0.2"), `{"a":1}`))
	testkit.ErrorIf(t, b.put(lineOf(78, "10.45.0.2"), `{}`) == nil, "two have one address")
	phone := b.establish(smf1, request(1, "10.45.0.5"))
	wants(t, pfcp.CauseAccepted, phone)
	testkit.ErrorIf(t, b.put(lineOf(phone.UP.SEID, "10.45.0.3"), `{}`) == nil, "a SEID of PFCP is taken")
	taken := b.establish(smf1, request(2, "10.45.0.2"))
	testkit.ErrorIf(t, taken.Cause == pfcp.CauseAccepted, "over PFCP an address of a line is had")
	changed := lineOf(77, "10.45.0.2")
	changed.Line.MRU = 1492
	testkit.Must(t, b.put(changed, `{"a":2}`))
	var head api.Session
	_, err := api.ReadRow(s.Held()[heldID(77)], &head)
	testkit.ErrorIf(t, err != nil || head.MRU != 1492, "%+v %v", head, err)
	s.Raise(usageOf(77, 1))
	s.Raise(usageOf(999, 2)) // of no session: perhaps of a line that ended
	for _, seid := range []uint64{77, 999} {
		e := testkit.Receive(t, h.events)
		testkit.Equal(t, e.SEID, seid, "session")
		testkit.Receive(t, h.done)()
	}
	testkit.Until(t, "acknowledged", func() bool { return s.Unacknowledged() == 0 })
	b.checkConsistent()

	b.end()
	b = startOn(t, s, path, testSettings())
	records := b.SetLines(h)
	b.ReleaseOrphans()
	testkit.ErrorIf(t, len(records) != 1 || string(records[0].Data) != `{"a":2}` || records[0].Session == nil ||
		records[0].Session.Line.STag != 5, "%+v", records)
	usage := make(chan []api.Usage, 1)
	s.Usage(func(id dptest.ID, _, _ []byte) []api.Usage {
		if id != heldID(77) {
			return nil
		}
		return []api.Usage{{SEID: 77, URR: 1}}
	})
	b.DropLine(77, []byte(`{"ended":true}`), func(u []api.Usage, err error) { usage <- u })
	testkit.Equal(t, len(testkit.Receive(t, usage)), 1, "reports")
	kept := make(chan error, 1)
	testkit.Equal(t, testkit.Receive(t, h.ended), 77, "ended")
	c, err := Inspect(path, nil)
	testkit.ErrorIf(t, err != nil || c.Lines != 1, "%+v %v", c, err)
	b.KeepLine(77, nil, func(err error) { kept <- err })
	testkit.Must(t, testkit.Receive(t, kept))
	c, err = Inspect(path, nil)
	testkit.ErrorIf(t, err != nil || c.Lines != 0 || s.Held()[heldID(77)] != nil, "%+v %v", c, err)
	b.checkConsistent()
}

// A conflict with another subscriber is refused with both named. The other keeps its session, whatever PFCP may take
// over.
func TestLinesTheirs(t *testing.T) {
	set := testSettings()
	set.Takeover = true
	b := startOn(t, dptest.Start(t), "", set)
	named := func(seid uint64, ue, user string, routes ...string) *rules.Session {
		s := lineOf(seid, ue)
		s.UserID = user
		for i := range s.PDR {
			for _, r := range routes {
				s.PDR[i].PDI.FramedRoutes = append(s.PDR[i].PDI.FramedRoutes, netip.MustParsePrefix(r))
			}
		}
		return s
	}
	testkit.Must(t, b.put(named(77, "10.45.0.2", "anna", "198.51.100.0/24"), `{}`))
	testkit.Must(t, b.put(named(78, "10.45.0.3", ""), `{}`))
	for _, one := range []struct {
		s    *rules.Session
		want string
	}{
		{named(79, "10.45.0.4", "bob", "198.51.100.0/24"), "framed route 198.51.100.0/24 is anna's"},
		{named(79, "10.45.0.2", "bob"), "address 10.45.0.2 is anna's"},
		{named(79, "10.45.0.3", "bob"), "address 10.45.0.3 is n4.000000000000004e's"},
		{named(78, "10.45.0.2", ""), "address 10.45.0.2 is anna's"},
	} {
		err := b.put(one.s, `{}`)
		testkit.ErrorIf(t, err == nil || err.Error() != one.want, "%v, not %q", err, one.want)
	}
	testkit.Equal(t, b.Count(""), 2, "sessions")
}

// Sessions of lines without a record go; without a data plane no line is added.
func TestLinesWithoutRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := dptest.Start(t)
	b := startOn(t, s, path, testSettings())
	testkit.Must(t, b.put(lineOf(77, "10.45.0.2"), `{}`))
	kept := make(chan error, 1)
	b.KeepLine(77, nil, func(err error) { kept <- err })
	testkit.Must(t, testkit.Receive(t, kept))
	b.end()
	b = startOn(t, s, path, testSettings())
	testkit.Equal(t, len(b.SetLines(&heard{ended: make(chan uint64, 1)})), 0, "records")
	testkit.Until(t, "the session gone", func() bool { return b.Count("") == 0 })
	b.Attach(nil)
	testkit.ErrorIf(t, b.put(lineOf(78, "10.45.0.3"), `{}`) == nil, "without a data plane somebody comes")
}

// The end of a line's session carries its last usage, whatever ends it. Nothing ends it while the data plane is away.
// Lines know the data plane's boot.
func TestLinesEnded(t *testing.T) {
	s := dptest.Start(t)
	b := startOn(t, s, "", testSettings())
	h := &heard{ended: make(chan uint64, 9)}
	b.SetLines(h)
	testkit.Until(t, "the boot", func() bool { return h.boot.Load() == b.c.Hello().BootID })
	testkit.Must(t, b.put(lineOf(77, "10.45.0.2"), `{}`))
	testkit.Must(t, b.put(lineOf(78, "10.45.0.3"), `{}`))
	s.Usage(func(id dptest.ID, _, is []byte) []api.Usage {
		seid, ok := rules.SEIDOf(id.Key)
		if !ok || is != nil {
			return nil
		}
		return []api.Usage{{SEID: seid, URR: 1, Sequence: 4}}
	})
	b.Attach(nil)
	refused := make(chan error, 1)
	b.DropLine(77, nil, func(_ []api.Usage, err error) { refused <- err })
	testkit.ErrorIf(t, testkit.Receive(t, refused) == nil, "ended without a data plane")
	b.DropLine(79, nil, func(_ []api.Usage, err error) { refused <- err }) // there is none
	testkit.Must(t, testkit.Receive(t, refused))
	b.Attach(b.c)
	last := func(seid uint64) {
		t.Helper()
		testkit.Equal(t, testkit.Receive(t, h.ended), seid, "ended")
		testkit.ErrorIf(t, len(h.usage) != 1 || h.usage[0].SEID != seid, "%+v", h.usage)
	}
	b.forget(77)
	last(77)
	set := testSettings()
	set.Instances = set.Instances[:1] // no instance is left for it
	out, err := b.Synchronise(t.Context(), b.c, set, false, func([]api.Digest) []dp.Change { return nil })
	testkit.ErrorIf(t, err != nil || out.Ended != 1, "%+v %v", out, err)
	last(78)
	b.checkConsistent()
}

// A session changes while the data plane is away; the data plane gets the change later.
func TestLineWhileAway(t *testing.T) {
	s := dptest.Start(t)
	b := startOn(t, s, "", testSettings())
	b.SetLines(&heard{ended: make(chan uint64, 1)})
	testkit.Must(t, b.put(lineOf(77, "10.45.0.2"), `{}`))
	held, none := s.Held()[heldID(77)], func([]api.Digest) []dp.Change { return nil }
	b.Attach(nil)
	testkit.Must(t, b.put(lineOf(77, "10.45.0.2"), `{}`))
	out, err := b.Synchronise(t.Context(), b.c, testSettings(), true, none)
	testkit.ErrorIf(t, err != nil || out != Outcome{} || string(s.Held()[heldID(77)]) != string(held),
		"the same: %+v %v", out, err)
	b.Attach(nil)
	changed := lineOf(77, "10.45.0.2")
	changed.Line.MRU = 1492
	testkit.Must(t, b.put(changed, `{}`))
	out, err = b.Synchronise(t.Context(), b.c, testSettings(), true, none)
	var head api.Session
	api.ReadRow(s.Held()[heldID(77)], &head)
	testkit.ErrorIf(t, err != nil || out.Put != 1 || head.MRU != 1492, "another: %+v %v %d", out, err, head.MRU)
	b.checkConsistent()
}
