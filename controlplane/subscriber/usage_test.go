// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"isthmus/api"
	"isthmus/controlplane/aaa"
	"isthmus/controlplane/access"
	"isthmus/controlplane/radius"
	"isthmus/controlplane/session"
	"isthmus/controlplane/testkit"
)

func (b *bench) subscriber(h *home) *Subscriber { return b.by.seid[seidOf(h.session.ID())] }

// Reports of another boot are counted from the start, in answers too; a quota goes on with its rest.
func TestDataPlaneRestarts(t *testing.T) {
	b := start(t, nil)
	plain := b.up(request("plain", 2))
	b.judge.verdict.Plan = access.Plan{Profile: "quota"}
	h := b.up(request("anna", 1))
	s := b.subscriber(h)
	var r stored
	testkit.Must(t, json.Unmarshal(b.layer.records[s.seid], &r))
	testkit.Equal(t, r.Boot, 5, "boot in the store")
	b.reports(h, usage(1, 0, 100, 200, api.UsagePerio))
	b.reports(h, usage(1, 1, 10, 0, api.UsagePerio))
	grant := b.object(h).URR[0].Grant
	b.layer.usage = []api.Usage{usage(1, 0, 20, 0, api.UsageImmer)}
	b.boot = 6
	b.LinesBoot(6)
	b.turn()
	urr := &b.object(h).URR[0]
	testkit.ErrorIf(t, *urr.VolumeQuota.Total != 690 || urr.Grant == grant, "%+v", urr)
	testkit.Equal(t, s.used[0].volume(), 330, "bytes")
	testkit.Must(t, json.Unmarshal(b.layer.records[b.subscriber(plain).seid], &r))
	testkit.Equal(t, r.Boot, 6, "boot in the store")
	b.reports(h, usage(1, 1, 1000, 0, api.UsagePerio))
	b.LinesBoot(7)
	b.turn()
	testkit.Equal(t, *b.object(h).URR[0].VolumeQuota.Total, 1, "quota of who has none left")
	puts := b.layer.puts
	b.boot = 6 // an event that is late
	acked := b.reports(h, usage(1, 2, 5, 5, api.UsagePerio))
	testkit.ErrorIf(t, !*acked || b.stats.reportsLost != 1 || s.boot != 7, "%+v", b.stats)
	b.LinesBoot(7)
	b.turn()
	testkit.Equal(t, b.layer.puts, puts, "changes by the same boot")
	b.layer.usage = []api.Usage{usage(1, 0, 7, 0, api.UsageTermr)}
	h.session.Down(access.UserRequest)
	b.turn()
	testkit.Equal(t, b.judge.last().Total.UpBytes, 1137, "uplink bytes")
}

// Usage of a data plane that is gone arrives before its successor's: it is counted once, for accounting and for the
// quota.
func TestUsageOfADataPlaneThatIsGone(t *testing.T) {
	b := start(t, nil)
	b.judge.verdict.Plan = access.Plan{Profile: "quota"}
	h := b.up(request("anna", 1))
	seid := seidOf(h.session.ID())
	b.reports(h, usage(1, 0, 100, 200, api.UsagePerio))
	told := 0
	lost := func(boot uint64) {
		list := []api.Usage{usage(1, 0, 90, 190, 0), usage(1, 1, 50, 0, 0), usage(2, 1, 30, 0, 0)}
		b.LineLost(seid, boot, list, func() { told++ })
	}
	lost(5)
	b.boot = 6
	b.LinesBoot(6)
	b.turn()
	testkit.Equal(t, *b.object(h).URR[0].VolumeQuota.Total, 650, "quota")
	var r stored
	testkit.Must(t, json.Unmarshal(b.layer.records[seid], &r))
	testkit.ErrorIf(t, told != 1 || r.Boot != 6 || r.Used[0].Bytes != [2]uint64{150, 200} ||
		r.Used[1].Bytes[0] != 30, "%d %+v", told, r)
	// The session layer ended before it knew that the event was delivered.
	records := []session.LineRecord{{SEID: seid, Data: b.layer.records[seid], Session: b.layer.sessions[seid]}}
	b.boot = 0
	b.open(nil)
	b.Restore(records)
	lost(5)
	b.LineLost(99, 5, nil, func() { told++ })
	b.LinesBoot(6)
	b.turn()
	testkit.Equal(t, told, 3, "told")
	testkit.Equal(t, b.subscriber(h).used[0].volume(), 350, "bytes")
	// A subscriber that is about to end has the usage in its last record; a failed write keeps it waiting.
	b.layer.keepFail = errors.New("full")
	b.LineLost(seid, 6, []api.Usage{usage(1, 0, 7, 0, 0)}, func() { told++ })
	b.turn()
	testkit.Equal(t, told, 3, "told, without a record")
	b.layer.keepFail = nil
	b.pass(2 * time.Second)
	testkit.Equal(t, told, 4, "told")
	testkit.Equal(t, b.subscriber(h).used[0].volume(), 357, "bytes")
}

// The data plane restarts while the control plane is away.
func TestBothRestart(t *testing.T) {
	b := start(t, nil)
	b.judge.verdict.Plan = access.Plan{Profile: "quota"}
	h := b.up(request("anna", 1))
	b.reports(h, usage(1, 0, 100, 200, api.UsagePerio))
	seid := seidOf(h.session.ID())
	records := []session.LineRecord{{SEID: seid, Data: b.layer.records[seid], Session: b.layer.sessions[seid]}}
	b.boot = 6
	b.open(nil)
	b.Restore(records)
	b.turn()
	testkit.Equal(t, *b.object(h).URR[0].VolumeQuota.Total, 700, "quota")
	b.reports(h, usage(1, 0, 1, 0, api.UsagePerio))
	testkit.Equal(t, b.subscriber(h).used[0].volume(), 301, "bytes")
}

// The control plane restarts alone: the data plane counts on, and what it measures then is of the same quota.
func TestQuotaOverARestart(t *testing.T) {
	b := start(t, nil)
	b.judge.verdict.Plan = access.Plan{Profile: "quota"}
	h, spent := b.up(request("anna", 1)), b.up(request("bob", 2))
	b.reports(h, usage(1, 0, 100, 200, api.UsagePerio))
	b.reports(spent, usage(1, 0, 600, 400, api.UsageVolqu))
	var records []session.LineRecord
	for seid, data := range b.layer.records {
		records = append(records, session.LineRecord{SEID: seid, Data: data, Session: b.layer.sessions[seid]})
	}
	puts := b.layer.puts
	b.open(nil)
	b.Restore(records)
	b.turn()
	testkit.ErrorIf(t, len(b.front.restored) != 2 || b.layer.puts != puts, "%d restored, %d sent again",
		len(b.front.restored), b.layer.puts-puts)
	testkit.ErrorIf(t, b.object(spent).FAR[0].Forwarding.Redirect == nil, "who used it up is let go")
	b.reports(h, usage(1, 1, 50, 0, api.UsagePerio))
	testkit.Equal(t, b.subscriber(h).left(), 650, "left")
	b.boot = 6
	b.LinesBoot(6)
	b.turn()
	testkit.Equal(t, *b.object(h).URR[0].VolumeQuota.Total, 650, "quota")
}

// A session's last usage is in its last record, also when the session layer ended it.
func TestEndedByTheSessionLayer(t *testing.T) {
	b := start(t, nil)
	h := b.up(request("anna", 1))
	b.LineEnded(seidOf(h.session.ID()), []api.Usage{usage(1, 0, 3, 4, api.UsageTermr)})
	b.turn()
	r := b.judge.last()
	testkit.ErrorIf(t, r.Kind != aaa.Stop || r.Total.DownBytes != 4 || h.cause != access.NASError, "%+v", r)
}

// Neither a reload nor a change frees a subscriber with a used-up quota; another quota does.
func TestQuotaStaysUsedUp(t *testing.T) {
	b := start(t, nil)
	b.judge.verdict.Plan.Profile = "quota"
	h := b.up(request("a", 1))
	b.reports(h, usage(1, 0, 600, 400, api.UsageVolqu))
	held := func() bool { return b.object(h).FAR[0].Forwarding.Redirect != nil }
	b.Configure(b.set)
	b.turn()
	testkit.ErrorIf(t, !held(), "a reload lets go")
	testkit.Equal(t, b.coa(h, attribute(radius.IdleTimeout, 0, 0, 0, 9)), aaa.OK, "result")
	testkit.ErrorIf(t, !held() || b.object(h).Inactivity != 9, "a change lets go")
	set := SettingsOf(parse(t, file))
	set.profiles["quota"].Quota = 5000
	b.Configure(set)
	b.turn()
	testkit.ErrorIf(t, held() || *b.object(h).URR[0].VolumeQuota.Total != 5000, "%+v", b.object(h).URR[0])
	testkit.Equal(t, b.subscriber(h).left(), 5000, "left")
}

func attribute(kind radius.Type, value ...byte) radius.Attribute {
	return radius.Attribute{Type: kind, Value: value}
}

// change sends a CoA; result is set when it is answered.
func (b *bench) change(h *home, list ...radius.Attribute) *aaa.Result {
	result := new(aaa.Result)
	b.Change(&aaa.Selector{Session: h.session.ID()}, &aaa.Change{List: list},
		func(r aaa.Result, _ string) { *result = r })
	b.turn()
	return result
}

func (b *bench) coa(h *home, list ...radius.Attribute) aaa.Result { return *b.change(h, list...) }

// Simultaneous changes build on each other.
func TestChangesAtOnce(t *testing.T) {
	b := start(t, nil)
	h := b.up(request("anna", 1))
	b.layer.hold = true
	idle := b.change(h, attribute(radius.IdleTimeout, 0, 0, 0, 9))
	session := b.change(h, attribute(radius.SessionTimeout, 0, 0, 0, 99))
	set := SettingsOf(parse(t, file))
	set.profiles["home"].Interim = time.Minute
	b.Configure(set)
	for range 2 { // the second has what the file changed, too
		b.turn()
		testkit.Equal(t, len(b.layer.late), 1, "changes under way")
		answer := b.layer.late[0]
		b.layer.late = nil
		answer()
	}
	b.turn()
	p := h.session.Grant().Plan
	testkit.ErrorIf(t, *idle != aaa.OK || *session != aaa.OK || p.IdleTimeout != 9*time.Second ||
		p.SessionTimeout != 99*time.Second || p.Interim != time.Minute, "%+v", p)
}

// A CoA removes what the profile has; a later one restores it.
func TestChangeLiftsTheProfile(t *testing.T) {
	b := start(t, nil)
	set := SettingsOf(parse(t, file))
	p := set.profiles["home"]
	p.Captive, p.Redirect, p.Quota, p.SessionTimeout, p.IdleTimeout = true, "http://pay.test/", 1000, time.Hour,
		time.Minute
	b.Configure(set)
	h := b.up(request("anna", 1))
	plan := h.session.Grant().Plan
	testkit.ErrorIf(t, plan.Redirect == "" || plan.Quota == 0 || plan.SessionTimeout == 0, "%+v", plan)
	testkit.Equal(t, b.coa(h, pair("subscriber:redirect="), pair("subscriber:quota=0"),
		attribute(radius.SessionTimeout, 0, 0, 0, 0), attribute(radius.IdleTimeout, 0, 0, 0, 0),
		attribute(radius.AcctInterimInterval, 0, 0, 0, 0)),
		aaa.OK, "CoA")
	plan = h.session.Grant().Plan
	testkit.ErrorIf(t, plan.Redirect != "" || plan.Quota != 0 || plan.SessionTimeout != 0 ||
		plan.IdleTimeout != 0 || plan.Interim != 0, "%+v", plan)
	testkit.Equal(t, b.coa(h, pair("subscriber:redirect=http://other.test/"), pair("subscriber:quota=5kB")),
		aaa.OK, "CoA")
	plan = h.session.Grant().Plan
	testkit.ErrorIf(t, plan.Redirect != "http://other.test/" || plan.Quota != 5000, "%+v", plan)
}

// Name servers that a CoA names are those of the next answer.
func TestChangeOfDNS(t *testing.T) {
	b := start(t, nil)
	h := b.up(request("anna", 1))
	server := []netip.Addr{netip.MustParseAddr("192.0.2.99")}
	testkit.Equal(t, b.coa(h, pair("ip:dns-servers=192.0.2.99")), aaa.OK, "CoA")
	testkit.ErrorIf(t, !slices.Equal(h.session.Grant().Addresses.DNS, server) || h.plans != 1, "%v",
		h.session.Grant().Addresses.DNS)
	b.layer.refuse = errors.New("no room")
	testkit.Equal(t, b.coa(h, pair("ip:dns-servers=192.0.2.98")),
		aaa.NotPossible, "refused")
	testkit.ErrorIf(t, !slices.Equal(h.session.Grant().Addresses.DNS, server), "%v",
		h.session.Grant().Addresses.DNS)
}

// An impossible change is not acknowledged.
func TestChangeRefused(t *testing.T) {
	b := start(t, nil)
	h := b.up(request("anna", 1))
	puts := b.layer.puts
	for _, a := range []radius.Attribute{attribute(radius.FramedPool, 'x'), attribute(radius.FilterId, 'x'),
		attribute(radius.FramedIPAddress, 10, 64, 0, 9)} {
		testkit.Equal(t, b.coa(h, a), aaa.BadValue, "%s", a.Type)
	}
	last := b.Attempts("anna", 9)
	testkit.ErrorIf(t, len(last) != 3 || !slices.ContainsFunc(last, func(a Attempt) bool {
		return a.Why == `a change is refused: there is no access list "x"`
	}), "%+v", last)
	testkit.Equal(t, b.coa(h, attribute(radius.IdleTimeout, 1)), aaa.BadValue, "malformed")
	testkit.Equal(t, b.coa(h, attribute(radius.UserPassword, 1)), radius.UnsupportedAttribute, "unsupported")
	testkit.Equal(t, b.layer.puts, puts, "changes")
	testkit.Equal(t, b.coa(h, attribute(radius.FramedPool, []byte("homes")...)), aaa.OK, "the pool that it has")
	b.layer.refuse = errors.New("no room")
	testkit.Equal(t, b.coa(h, attribute(radius.IdleTimeout, 0, 0, 0, 9)), aaa.NotPossible, "refused")
}

// A report that the store would not take is tried again, and acknowledged then.
func TestStoreRefuses(t *testing.T) {
	b := start(t, nil)
	h := b.up(request("anna", 1))
	b.layer.keepFail = errors.New("too many requests wait")
	acked := b.reports(h, usage(1, 0, 10, 20, api.UsagePerio))
	testkit.ErrorIf(t, *acked, "acknowledged")
	b.layer.keepFail = nil
	b.pass(2 * time.Second)
	testkit.ErrorIf(t, !*acked, "not acknowledged")
}

// A family that opens or closes causes an accounting record with the counts until then; other changes do not.
func TestInterimOfFamilies(t *testing.T) {
	b := start(t, nil)
	h := b.up(request("anna", 1))
	both, four := access.Families{V4: true, V6: true}, access.Families{V4: true}
	for _, row := range []struct {
		f       access.Families
		records int
	}{{both, 1}, {four, 2}} {
		b.layer.usage = []api.Usage{usage(1, uint32(row.records-1), 7, 0, api.UsageImmer)}
		h.session.Up(row.f, 1400, access.KeepAlive{}, func(err error) { testkit.Must(t, err) })
		b.turn()
		last := b.judge.last()
		testkit.ErrorIf(t, len(b.judge.of(h.session.ID())) != row.records || row.records == 2 &&
			(last.Kind != aaa.Interim || last.Total.UpBytes != 14 || b.object(h).URR[0].Query != 1),
			"%v: %+v", row.f, last)
	}
}

// Reports in any order, compared with a set of received ones; the list of missing ones survives.
func TestSeenModel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	n, came, next := seen{}, map[uint32]bool{}, uint32(0)
	for range 100_000 {
		sequence := next - min(next, random.Uint32N(80)) + random.Uint32N(4)
		if random.Uint32N(1000) == 0 {
			sequence += random.Uint32N(200)
		}
		want := !came[sequence] && (sequence >= next || next-1-sequence < mostOwed)
		n = owes(n.next, n.list())
		testkit.FatalIf(t, n.fresh(sequence) != want, "%d of %d: not %v", sequence, next, want)
		if want {
			came[sequence] = true
		}
		next = max(next, sequence+1)
		testkit.Equal(t, n.next, next, "next")
	}
}
