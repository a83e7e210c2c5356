// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"isthmus/api"
	"isthmus/controlplane/aaa"
	"isthmus/controlplane/access"
	"isthmus/controlplane/config"
	"isthmus/controlplane/session"
	"isthmus/controlplane/testkit"
)

// The profile's value, not that of its RADIUS answer.
func TestMSSOfTheProfile(t *testing.T) {
	for _, want := range []config.MSS{0, 1360, api.MSSPath} {
		b := start(t, func(s *Settings) { s.profiles["home"].MSS = want })
		testkit.Equal(t, b.object(b.up(request("anna", 1))).Line.MSS, uint16(want), "%s", want)
	}
}

func TestComesAndGoes(t *testing.T) {
	b := start(t, nil)
	h := b.up(request("anna", 1))
	a := h.session.Grant().Addresses
	testkit.ErrorIf(t, a.IPv4.String() != "10.64.0.2" || a.Gateway.String() != "10.64.0.1" || !a.IPv6.IsValid(),
		"%+v", a)
	o := b.object(h)
	l := o.Line
	testkit.ErrorIf(t, l.STag != 100 || l.CTag != 2 || l.PPPoESession != 2 || l.LCPMagic != 7 ||
		l.LCPInterval != 10 || l.MRU != 1492 || l.MSS != api.MSSPath ||
		l.Encap != api.EncapQinQPPPoE, "%+v", l)
	testkit.ErrorIf(t, len(o.PDR) != 2 || o.PDR[0].PDI.UEIP[0].IPv4 != a.IPv4 || o.QER[0].UplinkPolicer != "slow",
		"%+v", o)
	testkit.ErrorIf(t, !slices.Equal(b.judge.of(h.session.ID()), []aaa.Kind{aaa.Start}), "%v", b.judge.records)
	b.layer.usage = []api.Usage{usage(1, 0, 100, 200, api.UsageTermr), usage(2, 0, 30, 40, api.UsageTermr)}
	h.session.Down(access.UserRequest)
	b.turn()
	stop := b.judge.last()
	testkit.ErrorIf(t, stop.Kind != aaa.Stop || stop.Total.UpBytes != 100 || stop.Total.DownBytes != 200 ||
		stop.V6.UpBytes != 30 ||
		stop.Cause != access.UserRequest, "%+v", stop)
	b.turn()
	left := len(b.layer.sessions) + len(b.layer.records) + len(b.by.seid) + len(b.by.user) + len(b.by.line)
	testkit.Equal(t, left, 0, "what is left")
	testkit.Equal(t, b.pools.Rows()[0].Used, 0, "addresses")
	testkit.ErrorIf(t, !slices.Equal(b.events, []string{"subscriber.up anna", "subscriber.down anna"}), "%v",
		b.events)
}

// A subscriber that is accepted and never comes up leaves nothing; nor does one refused by the data plane.
func TestNeverUp(t *testing.T) {
	b := start(t, nil)
	h := b.signIn(request("anna", 1))
	b.pass(2 * time.Minute)
	testkit.ErrorIf(t, h.cause != access.LostService || len(b.by.seid) != 0 || b.pools.Rows()[0].Used != 0, "%v",
		h.cause)
	h = b.signIn(request("anna", 1))
	b.layer.refuse = errors.New("no room")
	var failed error
	h.session.Up(access.Families{V4: true}, 0, access.KeepAlive{}, func(err error) { failed = err })
	b.turn()
	testkit.ErrorIf(t, failed == nil, "a refused session is up")
	h.session.Down(access.NASError)
	b.turn()
	testkit.ErrorIf(t, len(b.by.seid) != 0 || b.pools.Rows()[0].Used != 0 || len(b.judge.records) != 0,
		"something is left")
	testkit.ErrorIf(t, len(b.Attempts("anna", 10)) != 3, "%+v", b.Attempts("anna", 10))
}

func TestRefused(t *testing.T) {
	b := start(t, nil)
	for _, c := range []struct {
		v      access.Verdict
		reason string
		silent bool
	}{
		{access.Verdict{Why: "wrong password", Failure: "E=691"}, "authentication", false},
		{access.Verdict{Silent: true, Why: "no server"}, "no answer", true},
		{access.Verdict{Accept: true, Plan: access.Plan{Profile: "none"}}, "plan", false},
		{access.Verdict{Accept: true, Plan: access.Plan{Pool4: "none"}}, "address", false},
		{access.Verdict{Accept: true, Plan: access.Plan{ACLUp: "x"}}, "plan", false},
		{access.Verdict{Accept: true, Plan: access.Plan{Path: "upf"}}, "plan", false},
	} {
		b.judge.verdict = c.v
		h := b.signIn(request("bob", 0xab))
		testkit.ErrorIf(t, h.session != nil || h.verdict == nil || h.verdict.Silent != c.silent ||
			b.stats.failures[c.reason] == 0, "%s: %+v",
			c.reason, h.verdict)
		b.stats.failures = map[string]uint64{}
	}
	list := b.Attempts("02:00:00:00:00:ab", 10)
	testkit.ErrorIf(t, len(list) != 6 || b.pools.Rows()[0].Used != 0, "%+v", list)
	for _, what := range []string{"BOB", strings.ToUpper(list[0].MAC), strings.ToUpper(list[0].Line)} {
		testkit.Equal(t, len(b.Attempts(what, 10)), 6, "attempts of %s", what)
	}
}

// A home that no entry of access.ports serves is known by its line, with the reason; so is one by its circuit.
func TestHistoryOfUnserved(t *testing.T) {
	b := start(t, nil)
	frame := func(sTag, ether uint16) {
		b.Frame(&access.Frame{EtherType: ether, Line: access.Line{Port: "access", STag: sTag, CTag: 1,
			MAC: [6]byte{2, 0, 0, 0, 0, 9}}})
	}
	for range 3 {
		frame(4001, etherPPPoEDiscovery)
	}
	frame(4001, etherIPv6)
	list := b.Attempts("access:4001.1", 9)
	testkit.ErrorIf(t, len(list) != 2 || list[0].Count+list[1].Count != 4, "%+v", list)
	for _, a := range list {
		testkit.ErrorIf(t, a.Why != "no entry of access.ports has this port and these tags" || a.Last.IsZero() ||
			a.Kind != "pppoe" && a.Kind != "dhcpv6", "%+v", a)
	}
	b.judge.verdict = access.Verdict{Why: "wrong password"}
	b.signIn(request("bob", 0xab))
	list = b.Attempts("DSLAM 1/bob", 9)
	testkit.ErrorIf(t, len(list) != 1 || list[0].Why != "wrong password", "by circuit: %+v", list)
}

// Row B17: sign-ins are paced; a sign-in that waits too long gets no answer.
func TestAdmission(t *testing.T) {
	b := start(t, func(s *Settings) { s.Limits.Pending, s.Limits.Rate, s.profiles["home"].Max = 10, 1000, 0 })
	b.judge.hold = true
	var in, silent int
	for i := range 20000 {
		r := request(fmt.Sprint("user", i), byte(i))
		r.Line.STag, r.Line.CTag = uint16(1+i%4000), uint16(1+i/4000)
		b.SignIn(r, &home{}, func(s access.Session, v *access.Verdict) {
			switch {
			case s != nil:
				in++
			case v.Silent:
				silent++
			}
		})
	}
	b.turn()
	testkit.ErrorIf(t, len(b.judge.late) != 10 || silent != 20000-10-mostWaiting, "%d under way, %d silent",
		len(b.judge.late), silent)
	for range 1000 { // 10 s
		late := b.judge.late
		b.judge.late = nil
		for _, fn := range late {
			fn()
		}
		b.pass(10 * time.Millisecond)
	}
	testkit.ErrorIf(t, in < 4500 || in > 6000 || in+silent != 20000, "%d in, %d silent", in, silent)
	running, queued := b.admission.running, len(b.admission.queue)
	testkit.ErrorIf(t, running != 0 || queued != 0, "%d run, %d wait", running, queued)
}

// 10,000 sessions of one user name: as many as it may, the oldest go; or the new ones are refused.
func TestOneUserName(t *testing.T) {
	for _, replace := range []bool{true, false} {
		b := start(t, func(s *Settings) { s.Replace = replace })
		var homes []*home
		for i := range 10000 {
			r := request("shared", byte(i))
			r.Line.STag, r.Line.CTag = uint16(1+i%4000), uint16(1+i/4000)
			h := b.signIn(r)
			homes = append(homes, h)
		}
		b.pass(10 * time.Second)
		testkit.Equal(t, len(ringOf(b.by.user["shared"], ofUser, 99)), 2, "sessions")
		first, last := homes[0], homes[9999]
		testkit.ErrorIf(t, replace != (first.cause == access.NASRequest) || replace != (last.session != nil),
			"%v: %+v %+v", replace, first, last)
		testkit.Equal(t, b.pools.Rows()[0].Used, 2, "addresses")
	}
}

func TestLimitOfALine(t *testing.T) {
	b := start(t, func(s *Settings) { s.Limits.PerLine = 1 })
	one := b.up(request("a", 1))
	two := b.up(request("b", 1))
	testkit.ErrorIf(t, one.cause != access.NASRequest || two.cause != 0 || len(b.layer.sessions) != 1, "%v %v",
		one.cause, two.cause)
}

// Reports are counted once, by either way, and acknowledged when they are stored.
func TestAccounting(t *testing.T) {
	b := start(t, nil)
	b.judge.verdict.Plan.Local = true
	h := b.up(request("anna", 1))
	id := h.session.ID()
	acked := b.reports(h, usage(1, 0, 10, 20, api.UsagePerio))
	testkit.ErrorIf(t, !*acked, "not acknowledged")
	b.reports(h, usage(2, 0, 1, 2, api.UsageLiusa))
	b.pass(time.Second)
	r := b.judge.last()
	testkit.ErrorIf(t, r.Kind != aaa.Interim || !r.Local || r.Total.UpBytes != 10 || r.V6.DownBytes != 2, "%+v", r)
	b.reports(h, usage(1, 0, 10, 20, api.UsagePerio)) // repeated
	b.pass(599 * time.Second)
	testkit.Equal(t, len(b.judge.of(id)), 2, "records")
	b.pass(10 * time.Second) // the data plane is silent: a record all the same
	testkit.Equal(t, len(b.judge.of(id)), 3, "records")
	// The answer to the end overtakes an event.
	b.layer.usage = []api.Usage{usage(1, 2, 1, 0, api.UsageTermr), usage(2, 1, 0, 0, api.UsageTermr)}
	h.session.Down(access.UserRequest)
	b.turn()
	testkit.Equal(t, len(b.judge.of(id)), 3, "records")
	acked = b.reports(h, usage(1, 1, 1000, 0, api.UsagePerio))
	r = b.judge.last()
	testkit.ErrorIf(t, r.Kind != aaa.Stop || r.Total.UpBytes != 1011 || !*acked, "%+v", r)
}

// A report that stays missing does not hold the last record back.
func TestReportsLost(t *testing.T) {
	b := start(t, nil)
	h := b.up(request("anna", 1))
	b.layer.usage = []api.Usage{usage(1, 2, 1, 0, api.UsageTermr)}
	h.session.Down(access.UserRequest)
	b.pass(5 * time.Second)
	testkit.ErrorIf(t, b.judge.last().Kind != aaa.Stop || b.stats.reportsLost != 2, "%+v", b.judge.last())
}

func TestTimeouts(t *testing.T) {
	b := start(t, nil)
	b.judge.verdict.Plan.Profile = "timed"
	waits := b.signIn(request("c", 3))
	one, two := b.up(request("a", 1)), b.up(request("b", 2))
	up := b.now
	b.pass(time.Minute)
	testkit.Equal(t, one.session.Grant().Ends, up.Add(time.Hour), "the end of who is on line")
	testkit.Equal(t, waits.session.Grant().Ends, b.now.Add(time.Hour), "the end of who is not yet")
	waits.session.Down(access.UserRequest)
	testkit.Equal(t, b.up(request("d", 4)).session.Grant().Ends, b.now.Add(time.Hour), "the end of who came later")
	testkit.Equal(t, b.object(one).Inactivity, 60, "seconds")
	b.LineEvent(&api.Event{Type: api.EventTypeInactive, SEID: seidOf(two.session.ID())}, func() {})
	b.pass(time.Hour + time.Minute)
	testkit.ErrorIf(t, one.cause != access.SessionTimeout || two.cause != access.IdleTimeout, "%v %v", one.cause,
		two.cause)
}

// The data plane reports a silent subscriber once. It is acknowledged when the end is stored: a control plane that dies
// before gets it again.
func TestSilenceIsToldAgain(t *testing.T) {
	for _, kind := range []uint32{api.EventTypeInactive, api.EventTypeLCPDown} {
		b := start(t, nil)
		h := b.up(request("anna", 1))
		h.silence = func() { h.session.Down(access.LostCarrier) }
		b.layer.away = true
		acked := 0
		silent := func() {
			e := api.Event{Type: kind, SEID: seidOf(h.session.ID()), BootID: b.boot}
			b.LineEvent(&e, func() { acked++ })
			b.turn()
		}
		silent()
		testkit.Equal(t, acked, 0, "acknowledged before the end is kept")
		b.layer.away = false
		b.pass(2 * time.Second)
		testkit.Equal(t, acked, 1, "acknowledged")
		testkit.Equal(t, b.judge.last().Kind, aaa.Stop, "last record")
		silent() // of a session that is gone
		testkit.Equal(t, acked, 2, "acknowledged")
	}
}

func TestQuota(t *testing.T) {
	b := start(t, nil)
	b.judge.verdict.Plan.Profile = "quota"
	h := b.up(request("a", 1))
	testkit.Equal(t, *b.object(h).URR[0].VolumeQuota.Total, 1000, "bytes")
	b.reports(h, usage(1, 0, 600, 400, api.UsageVolqu))
	o := b.object(h)
	testkit.ErrorIf(t, !slices.Contains(b.events, "subscriber.quota a"), "%v", b.events)
	testkit.ErrorIf(t, h.plans != 1 || o.FAR[0].Forwarding.Redirect == nil || o.URR[0].VolumeQuota != nil ||
		len(o.LineFilters) != 1, "%+v", o)
	b.judge.verdict.Plan = access.Plan{Profile: "quota", Quota: 500}
	b.set.profiles["quota"].Exhausted = "end"
	h = b.up(request("b", 2))
	b.reports(h, usage(1, 0, 600, 400, api.UsageVolqu))
	testkit.ErrorIf(t, h.cause != access.SessionTimeout, "%v", h.cause)
}

func TestPlanChanges(t *testing.T) {
	b := start(t, nil)
	h := b.up(request("anna", 1))
	s := b.by.seid[seidOf(h.session.ID())]
	said := *s.auth
	said.Down = access.Rate{CIR: 5000}
	plan, _, err := b.set.plan(&s.at.line, &said)
	testkit.Must(t, err)
	b.layer.usage = []api.Usage{usage(1, 0, 5, 5, api.UsageImmer)}
	s.change(everyone, said, plan, func(error) {})
	b.turn()
	o := b.object(h)
	testkit.ErrorIf(t, h.plans != 1 || o.QER[0].Downlink == nil || o.QER[0].Downlink.CIR != 625000 ||
		o.URR[0].Query != 1, "%+v", o.QER)
	testkit.ErrorIf(t, b.judge.last().Kind != aaa.Interim || b.judge.last().Total.UpBytes != 5, "%+v",
		b.judge.last())
	b.layer.refuse = errors.New("no room")
	said.Down.CIR = 6000
	plan.Down.CIR = 6000
	var failed error
	s.change(everyone, said, plan, func(err error) { failed = err })
	b.turn()
	testkit.ErrorIf(t, failed == nil || h.session.Grant().Plan.Down.CIR != 5000, "%+v", h.session.Grant().Plan)
}

// Framed-IP-Netmask replaces the pool's netmask.
func TestNetmask(t *testing.T) {
	b := start(t, nil)
	testkit.Equal(t, b.up(request("anna", 1)).session.Grant().Addresses.Mask, 16, "the pool's")
	b.judge.verdict.Plan.Mask = 22
	testkit.Equal(t, b.up(request("bert", 2)).session.Grant().Addresses.Mask, 22, "authentication's")
	b.judge.verdict.Plan.IPv4 = netip.MustParseAddr("192.0.2.9") // of no pool
	testkit.Equal(t, b.up(request("carl", 3)).session.Grant().Addresses.Mask, 22, "authentication's")
}

// A profile's framed routes are the session's, until authentication names others.
func TestFramedRoutes(t *testing.T) {
	b := start(t, func(set *Settings) {
		set.profiles["home"].FramedRoutes = []config.Prefix{{Prefix: netip.MustParsePrefix("10.9.0.0/24")}}
	})
	h := b.up(request("anna", 1))
	testkit.Equal(t, fmt.Sprint(b.object(h).PDR[0].PDI.FramedRoutes), "[10.9.0.0/24]", "the profile's")
	b.judge.verdict.Plan.Routes = []netip.Prefix{netip.MustParsePrefix("10.8.0.0/24")}
	h = b.up(request("bert", 2))
	testkit.Equal(t, fmt.Sprint(b.object(h).PDR[0].PDI.FramedRoutes), "[10.8.0.0/24]", "the user's")
}

// After a restart of the control plane all subscribers are there, with their counts; unrestorable ones are ended.
func TestRestart(t *testing.T) {
	b := start(t, nil)
	h, g := b.up(request("anna", 1)), b.up(request("gone", 2))
	b.reports(h, usage(1, 0, 10, 20, api.UsagePerio))
	b.pass(time.Second)
	g.session.Keep(nil) // its front end cannot continue
	ended := b.up(request("ended", 3))
	seid := seidOf(ended.session.ID())
	record := b.by.seid[seid].recordEnded(access.UserRequest, b.now)
	ended.session.Down(access.UserRequest)
	b.turn()
	b.layer.records[seid] = record // killed before the store could forget it
	var records []session.LineRecord
	for seid, data := range b.layer.records {
		records = append(records, session.LineRecord{SEID: seid, Data: data, Session: b.layer.sessions[seid]})
	}
	testkit.Equal(t, len(records), 3, "records")
	puts := b.layer.puts
	b.judge.records = nil
	b.open(nil)
	b.Restore(records)
	b.turn()
	testkit.ErrorIf(t, len(b.front.restored) != 1 || b.layer.puts != puts, "%d restored, %d sent again",
		len(b.front.restored), b.layer.puts-puts)
	testkit.Equal(t, len(b.judge.of(g.session.ID())), 1, "last record of who is gone")
	testkit.Equal(t, len(b.judge.of(ended.session.ID())), 1, "last record of who had ended")
	again := b.front.restored[0]
	testkit.Equal(t, again.session.Grant().Addresses.IPv4, h.session.Grant().Addresses.IPv4, "address")
	b.reports(again, usage(1, 0, 10, 20, api.UsagePerio)) // repeated to the new control plane
	b.reports(again, usage(1, 1, 1, 1, api.UsagePerio))
	b.layer.usage = []api.Usage{usage(1, 2, 100, 0, api.UsageTermr)}
	b.Clear("anna", access.AdminReset)
	b.turn()
	stop := b.judge.last()
	testkit.ErrorIf(t, stop.Kind != aaa.Stop || stop.Total.UpBytes != 111 || again.cause != access.AdminReset,
		"%+v", stop)
}

// A restart after the clock was put back makes no session longer than its time-out from then.
func TestTimeoutOfAClockThatWasPutBack(t *testing.T) {
	b := start(t, nil)
	b.judge.verdict.Plan.Profile = "timed"
	seid := seidOf(b.up(request("a", 1)).session.ID())
	records := []session.LineRecord{{SEID: seid, Data: b.layer.records[seid], Session: b.layer.sessions[seid]}}
	b.now = b.now.Add(-24 * time.Hour)
	b.open(nil)
	b.Restore(records)
	b.turn()
	one := b.front.restored[0]
	testkit.Equal(t, one.session.Grant().Ends, b.now.Add(time.Hour), "the end")
	b.pass(time.Hour + time.Minute)
	testkit.Equal(t, one.cause, access.SessionTimeout, "cause")
	last := b.judge.last()
	testkit.ErrorIf(t, last.Kind != aaa.Stop || last.At.Before(last.Began), "%+v", last)
}

func TestFindsAndDrains(t *testing.T) {
	b := start(t, nil)
	h := b.up(request("anna", 1))
	b.up(request("bob", 2))
	a := h.session.Grant().Addresses
	for _, what := range []string{"anna", "02:00:00:00:00:01", a.IPv4.String(), a.IPv6.Addr().Next().String(),
		a.IPv6.String(),
		"dslam 1/anna", "access:100.2", h.session.ID()} {
		rows := b.Rows(what)
		testkit.ErrorIf(t, len(rows) != 1 || rows[0].User != "anna" || rows[0].State != "up", "%q: %+v", what,
			rows)
	}
	testkit.ErrorIf(t, len(b.Rows("nobody")) != 0 || len(b.Rows("")) != 2, "%+v", b.Rows(""))
	b.judge.hold = true
	asked := b.signIn(request("asked", 4))
	testkit.Equal(t, ended(b.Drain()), 2, "ended")
	testkit.Equal(t, b.Resume(), false, "resumed before all have ended")
	late := b.signIn(request("late", 3))
	b.judge.late[0]()
	b.pass(time.Minute)
	testkit.ErrorIf(t, !late.verdict.Silent || !asked.verdict.Silent || b.judge.last().Kind != aaa.Off ||
		len(b.layer.sessions) != 0, "%+v", b.judge.last())
	b.judge.hold = false
	for range 2 {
		testkit.Equal(t, b.Resume(), true, "resumed")
	}
	testkit.Equal(t, b.judge.last().Kind, aaa.On, "the record of a resume")
	b.up(request("late", 3))
	_, again := b.Drain()
	b.pass(time.Minute)
	<-again
	testkit.Equal(t, b.judge.last().Kind, aaa.Off, "the record of another drain")
}

func ended(n int, _ <-chan struct{}) int { return n }

func everyone(*access.Plan) bool { return true }

// A reload commits the sessions whose service is another, and ends those whose port or protocol is served no more.
func TestReload(t *testing.T) {
	b := start(t, nil)
	h := b.up(request("anna", 1))
	b.judge.verdict.Plan.Profile = "timed"
	timed := b.up(request("bob", 2))
	dhcp := request("carl", 3)
	dhcp.Kind = access.IPoE4
	b.up(dhcp)
	puts := b.layer.puts
	b.Configure(SettingsOf(parse(t, file)))
	b.pass(time.Second)
	testkit.Equal(t, b.layer.puts, puts, "transactions of an equal file")
	other := strings.Replace(file, "uplink_policer: slow, ", "", 1)
	b.Configure(SettingsOf(parse(t, other)))
	b.pass(time.Second)
	testkit.Equal(t, b.layer.puts, puts+1, "transactions of another policer")
	testkit.Equal(t, b.object(h).QER[0].UplinkPolicer, "", "anna's policer")

	b.Configure(SettingsOf(parse(t, strings.Replace(other, "ipoe: true, ", "", 1))))
	b.pass(time.Second)
	testkit.Equal(t, b.judge.last().Kind, aaa.Stop, "carl's last record")
	testkit.Equal(t, b.judge.last().Cause, access.AdminReset, "why")
	testkit.Equal(t, len(b.Rows("")), 2, "who is left")
	b.Configure(SettingsOf(parse(t, strings.Replace(other, "s_tags: 1-4000", "s_tags: 4000", 1))))
	b.pass(time.Second)
	testkit.Equal(t, len(b.Rows("")), 0, "who is left")
	testkit.Equal(t, timed.cause, access.AdminReset, "bob's front end hears")
}

// A data plane that deletes nothing delays a planned end by ten seconds; then accounting gets each end, once, and
// Accounting-Off.
func TestDrainIsBounded(t *testing.T) {
	b := start(t, nil)
	b.up(request("anna", 1))
	b.up(request("bob", 2))
	b.layer.away = true
	testkit.Equal(t, ended(b.Drain()), 2, "ended")
	b.pass(drainTime - time.Second)
	testkit.Equal(t, b.judge.last().Kind, aaa.Start, "the last record")
	testkit.Equal(t, ended(b.Drain()), 0, "ended by another drain")
	b.pass(2 * time.Second)
	b.layer.away = false
	b.pass(time.Minute)
	var kinds []aaa.Kind
	for _, r := range b.judge.records[len(b.judge.records)-3:] {
		kinds = append(kinds, r.Kind)
		testkit.ErrorIf(t, r.Kind == aaa.Stop && r.Cause != access.AdminReboot, "cause %d", r.Cause)
	}
	testkit.ErrorIf(t, !slices.Equal(kinds, []aaa.Kind{aaa.Stop, aaa.Stop, aaa.Off}), "%v", kinds)
	testkit.Equal(t, len(b.judge.records), 5, "records")
	testkit.Equal(t, len(b.layer.sessions)+len(b.Rows("")), 0, "left")
}

// A sign-in without a limit owes nothing to a later limit.
func TestRateThatComesLater(t *testing.T) {
	b := start(t, func(s *Settings) { s.Limits.Pending, s.Limits.Rate, s.profiles["home"].Max = 10, 10, 0 })
	b.signIn(request("first", 0))
	b.set.Limits.Rate = 0
	for i := range 40 {
		b.signIn(request(fmt.Sprint("u", i), byte(i+1)))
	}
	b.set.Limits.Rate = 10
	b.pass(time.Second)
	h := b.signIn(request("late", 99))
	testkit.ErrorIf(t, h.session == nil, "%+v", h.verdict)
}

func TestFramesGoWhereTheyAreServed(t *testing.T) {
	b := start(t, nil)
	for _, f := range []access.Frame{{Line: access.Line{Port: "access", STag: 5}, EtherType: 0x8863},
		{Line: access.Line{Port: "access", STag: 4005}, EtherType: 0x8863}, {Line: access.Line{Port: "other"},
			EtherType: 0x0800}} {
		b.Frame(&f)
	}
	testkit.ErrorIf(t, b.front.frames != 1 || b.Counts().NobodyThere != 2, "%+v", b.Counts())
}

// A user is the name of authentication's answer: another name does not pass its limit.
func TestLimitOfTheNameThatAuthenticationSays(t *testing.T) {
	b := start(t, func(s *Settings) { s.Replace = false })
	b.judge.verdict.Plan.User = "one"
	for i := range 4 {
		b.signIn(request(fmt.Sprintf("alias%d", i), byte(i)))
	}
	testkit.Equal(t, len(ringOf(b.by.user["one"], ofUser, 99)), 2, "sessions")
}

// Families that come and go bring their pools' name servers once.
func TestNameServersDoNotGrow(t *testing.T) {
	b := start(t, nil)
	six := pool("six", "internet", "2001:db8:100::/48")
	six.DNS = []config.Address{{Addr: netip.MustParseAddr("2001:db8:53::53")}}
	b.pools.Configure([]config.AddressPool{
		pool("homes", "internet", "10.64.0.0/16"),
		six,
	})
	h := b.up(request("anna", 1))
	for range 5 {
		for _, f := range []access.Families{{V4: true}, {V4: true, V6: true}} {
			h.session.Want(f, nil, func(err error) { testkit.Must(t, err) })
			b.turn()
		}
	}
	testkit.Equal(t, len(h.session.Grant().Addresses.DNS), 1, "name servers")
}

// An address from a DHCPv6 server is taken from no pool, belongs to one subscriber, and passes.
func TestGivenIPv6(t *testing.T) {
	b := start(t, nil)
	b.pools.Configure([]config.AddressPool{
		pool("homes", "internet", "10.64.0.0/16"),
		pool("six", "internet", "2001:db8:100::/48"),
	})
	b.judge.verdict.Plan.Pool6 = "six"
	given := &access.Addresses{IPv6: netip.MustParsePrefix("2001:db8:5::7/128"),
		Delegated: netip.MustParsePrefix("2001:db8:6::/56"),
		DNS:       []netip.Addr{netip.MustParseAddr("2001:db8::53")}}
	h := b.up(request("anna", 1))
	h.session.Want(access.Families{V4: true}, nil, func(err error) { testkit.Must(t, err) })
	b.turn()
	had := len(h.session.Grant().Addresses.DNS)
	all := access.Families{V4: true, V6: true, Delegated: true}
	h.session.Want(all, &access.Request{Given: given}, func(err error) { testkit.Must(t, err) })
	h.session.Up(all, 1500, access.KeepAlive{}, func(err error) { testkit.Must(t, err) })
	b.pass(time.Second)
	a := h.session.Grant().Addresses
	testkit.Equal(t, a.IPv6, given.IPv6, "address")
	testkit.Equal(t, a.Delegated, given.Delegated, "prefix")
	testkit.Equal(t, len(a.DNS), had+1, "name servers")
	pdi := object{h.session}.session().PDR[0].PDI
	testkit.Equal(t, pdi.UEIP[1].IPv6, given.IPv6, "the data plane's address")
	testkit.Equal(t, pdi.FramedRoutes[0], given.Delegated, "the data plane's prefix")
	other, denied := b.up(request("bert", 2)), 0
	for _, g := range []*access.Addresses{given, {Delegated: netip.MustParsePrefix("2001:db8:6:8::/64")}} {
		f := access.Families{V4: true, V6: g.IPv6.IsValid(), Delegated: true}
		other.session.Want(f, &access.Request{Given: g}, func(err error) {
			if err != nil {
				denied++
			}
		})
		b.turn()
	}
	testkit.Equal(t, denied, 2, "what another has")
	h.session.Want(access.Families{V4: true}, nil, func(err error) { testkit.Must(t, err) })
	other.session.Want(all, &access.Request{Given: given}, func(err error) { testkit.Must(t, err) })
	b.turn()
	testkit.Equal(t, other.session.Grant().Addresses.IPv6, given.IPv6, "address that is free again")
}

// A subscriber without an address yet (PPP with relayed DHCPv6, IPv6 alone) has a session: its control packets are
// punted. The core side has no rule for it, which would match no packet.
func TestWithoutAddress(t *testing.T) {
	b := start(t, nil)
	r := request("anna", 1)
	r.Wants = access.Families{}
	h := b.signIn(r)
	h.session.Up(access.Families{}, 1492, access.KeepAlive{}, func(err error) { testkit.Must(t, err) })
	b.pass(time.Second)
	o := object{h.session}.session()
	testkit.Equal(t, len(o.PDR), 1, "rules")
	testkit.Equal(t, o.PDR[0].ID, uint16(uplinkRule), "the rule")
}

// A pool of another network instance gives nothing: its addresses would be given back to the profile's.
func TestPoolOfAnotherInstance(t *testing.T) {
	b := start(t, nil)
	b.pools.Configure([]config.AddressPool{
		pool("homes", "internet", "10.64.0.0/16"),
		pool("far", "other", "10.99.0.0/16"),
	})
	b.judge.verdict.Plan.Pool4 = "far"
	h := b.signIn(request("anna", 1))
	b.pass(time.Second)
	testkit.ErrorIf(t, h.session != nil || !strings.Contains(h.verdict.Why, "of network instance"), "%+v",
		h.verdict)
}

// The access node's words count where the port trusts them.
func TestUntrustedLine(t *testing.T) {
	b := start(t, func(s *Settings) { s.ports["access"][0].Trusted = false })
	h := b.up(request("anna", 1))
	testkit.Equal(t, len(h.session.at.agent.CircuitID), 0, "circuit id")
}

// A front end's refusal is an attempt and an event, like authentication's.
func TestFailedIsTold(t *testing.T) {
	b := start(t, nil)
	r := request("", 1)
	b.Failed(r, "another circuit")
	testkit.Equal(t, fmt.Sprint(b.events), "[subscriber.refused 02:00:00:00:00:01]", "events")
	list := b.history.attempts(9, func(*past) bool { return true })
	testkit.Equal(t, len(list) == 1 && list[0].why == "failed: another circuit", true, "attempts")
}

// A client's claimed address counts if it is of the plan's pool, as a hint.
func TestHint(t *testing.T) {
	b := start(t, nil)
	hint := access.Addresses{IPv4: netip.MustParseAddr("10.64.3.3"),
		IPv6: netip.MustParsePrefix("2001:db8:100:7::9/128")}
	r := request("anna", 1)
	r.Hint, r.Wants = hint, access.Families{V4: true}
	h := b.up(r)
	testkit.Equal(t, h.session.Grant().Addresses.IPv4, hint.IPv4, "address at sign-in")
	all := access.Families{V4: true, V6: true}
	h.session.Want(all, &access.Request{Hint: hint}, func(err error) { testkit.Must(t, err) })
	b.turn()
	testkit.Equal(t, h.session.Grant().Addresses.IPv6, netip.MustParsePrefix("2001:db8:100:7::/64"),
		"prefix, later")

	r = request("bert", 2)
	r.Hint = hint
	testkit.Equal(t, b.up(r).session.Grant().Addresses.IPv4, netip.MustParseAddr("10.64.0.2"), "what another has")
	b.judge.verdict.Plan.IPv4 = netip.MustParseAddr("10.64.0.77")
	r = request("carl", 3)
	r.Hint.IPv4 = netip.MustParseAddr("10.64.0.78")
	testkit.Equal(t, b.up(r).session.Grant().Addresses.IPv4, b.judge.verdict.Plan.IPv4, "what authentication gives")
}
