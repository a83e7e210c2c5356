// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/testkit"
)

// synchronised is a Manager whose sessions are in a data plane as the agent brings them there.
func synchronised(t *testing.T, s *dptest.Server, path string, lines Lines) *bench {
	t.Helper()
	p, err := Open(path, testSettings(), nil)
	testkit.Must(t, err)
	if lines != nil {
		p.SetLines(lines)
	}
	b := &bench{Manager: p, s: s, t: t, end: testkit.Run(t, p.Run)}
	testkit.Must(t, p.KeepAssociation(n4.StoredAssociation{ID: "smf1"}))
	b.join()
	return b
}

// join connects to the present data plane.
func (b *bench) join() {
	b.t.Helper()
	if b.c != nil {
		b.Attach(nil)
		b.c.Close()
	}
	c, err := dp.Dial(b.t.Context(), b.s.Path)
	testkit.Must(b.t, err)
	b.t.Cleanup(func() { c.Close() })
	b.c = c
	_, err = b.Synchronise(b.t.Context(), c, b.Settings(), true, func([]api.Digest) []dp.Change { return nil })
	testkit.Must(b.t, err)
}

// urr is a row of the table: what a URR measured since its last report.
func urr(seid uint64, id, sequence uint32, up, down uint64) api.URRRow {
	r := api.URRRow{URR: id, Sequence: sequence, Bytes: [3]uint64{up + down, up, down}, Packets: [3]uint64{3, 1, 2},
		QuotaLeft: noQuota}
	copy(r.Session[:], rules.Key(seid))
	return r
}

// counts sets the data plane's counts, a row a message, and makes a snapshot.
func (b *bench) counts(rows ...api.URRRow) {
	b.t.Helper()
	var bodies [][]byte
	for i := range rows {
		bodies = append(bodies, api.Body(&rows[i]))
	}
	b.s.SetTable(api.TableURR, bodies...)
	c, err := dp.Dial(b.t.Context(), b.s.Path)
	testkit.Must(b.t, err)
	defer c.Close()
	testkit.Must(b.t, b.Snapshot(b.t.Context(), c))
}

// urrs are the URRs of a session in the data plane.
func (b *bench) urrs(seid uint64) []api.URR {
	b.t.Helper()
	var head api.Session
	rest, err := api.ReadRow(b.s.Held()[heldID(seid)], &head)
	testkit.Must(b.t, err)
	_, rest, _ = api.TakeRows[api.PDR](rest)
	_, rest, _ = api.TakeRows[api.FAR](rest)
	_, rest, _ = api.TakeRows[api.QER](rest)
	list, _, err := api.TakeRows[api.URR](rest)
	testkit.Must(b.t, err)
	return list
}

func accept(r reported) { r.done(&pfcp.SessionReportResponse{Cause: pfcp.CauseAccepted}, nil) }

// volumeOf is the content of a report with one usage report.
func volumeOf(t *testing.T, r reported) [3]uint64 {
	t.Helper()
	if len(r.req.Usage) != 1 {
		t.Fatalf("%+v", r.req)
	}
	return *r.req.Usage[0].Volume
}

// readings counts the sessions of which usage is read that no report has.
func (b *bench) readings() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for seid := range b.snaps.at {
		if len(b.snaps.of(seid).usage(seid)) > 0 {
			n++
		}
	}
	return n
}

// The data plane ends between two reports: the next one has what was read of it, at the threshold that the CP function
// gave, once.
func TestUsageSurvivesTheDataPlane(t *testing.T) {
	s := dptest.Start(t)
	b := synchronised(t, s, t.TempDir()+"/s.db", nil)
	to := b.reporting(t, true, "")
	seid := b.establish(smf1, request(1, "10.45.0.5")).UP.SEID
	b.counts(urr(seid, 1, 3, 100<<10, 200<<10))
	b.counts(urr(seid, 1, 3, 100<<10, 300<<10))
	s.Crash(t)
	b.join()
	testkit.Equal(t, b.urrs(seid)[0].VolumeThreshold[0], 624<<10, "threshold")
	testkit.Equal(t, b.readings(), 0, "sessions of the former data plane")
	event := usageEvent(seid, 0, [3]uint64{624 << 10, 24 << 10, 600 << 10})
	s.Raise(event)
	one := testkit.Receive(t, to.reports)
	testkit.Equal(t, volumeOf(t, one), [3]uint64{1 << 20, 124 << 10, 900 << 10}, "volume")
	testkit.Equal(t, one.req.Usage[0].Sequence, 3, "sequence")
	accept(one)
	testkit.Until(t, "the threshold is what it was, and nothing waits", func() bool {
		return b.urrs(seid)[0].VolumeThreshold[0] == 1<<20 && b.waiting() == 0 && s.Unacknowledged() == 0
	})
	s.Raise(usageEvent(seid, 1, [3]uint64{9, 4, 5}))
	one = testkit.Receive(t, to.reports)
	testkit.Equal(t, volumeOf(t, one), [3]uint64{9, 4, 5}, "volume of the next")
	testkit.Equal(t, one.req.Usage[0].Sequence, 4, "sequence of the next")
}

// A CP function recognises a repetition by UR-SEQN. In each data plane reports continue behind the last number that
// went out, read or not, in requests and in answers.
func TestNumbersGoOn(t *testing.T) {
	s, path := dptest.Start(t), t.TempDir()+"/s.db"
	var seid, never uint64
	next := uint32(0)
	raised := func(b *bench, to *reporter, of uint32) {
		t.Helper()
		s.Raise(usageEvent(seid, of, [3]uint64{9, 4, 5}))
		one := testkit.Receive(t, to.reports)
		testkit.Equal(t, one.req.Usage[0].Sequence, next, "sequence")
		next++
		accept(one)
		testkit.Until(t, "nothing waits", func() bool { return b.waiting() == 0 && s.Unacknowledged() == 0 })
	}
	t.Run("first", func(t *testing.T) {
		b := synchronised(t, s, path, nil)
		to := b.reporting(t, true, "")
		seid = b.establish(smf1, request(1, "10.45.0.5")).UP.SEID
		never = b.establish(smf1, request(2, "10.45.0.6")).UP.SEID
		raised(b, to, 0)
		raised(b, to, 1)
		s.Crash(t)
		b.join()
		raised(b, to, 0)
		b.counts(urr(seid, 1, 1, 0, 0))
	})
	s.Crash(t)
	t.Run("second", func(t *testing.T) {
		b := synchronised(t, s, path, nil)
		to := b.reporting(t, true, "")
		raised(b, to, 0)
		s.Usage(func(id dptest.ID, was, is []byte) []api.Usage {
			return []api.Usage{{SEID: seid, URR: 1, Sequence: 1, Triggers: api.UsageImmer}}
		})
		r := b.modify(smf1, seid, &pfcp.SessionModificationRequest{QueryURR: []uint32{1}})
		testkit.ErrorIf(t, len(r.Usage) != 1 || r.Usage[0].Sequence != next, "%+v", r.Usage)
		s.Usage(nil)
		next++
		raised(b, to, 2)
		s.Usage(func(id dptest.ID, was, is []byte) []api.Usage {
			return []api.Usage{{SEID: seid, URR: 1, Sequence: 3, Triggers: api.UsageTermr}}
		})
		d := b.delete(smf1, seid)
		testkit.ErrorIf(t, len(d.Usage) != 1 || d.Usage[0].Sequence != next, "%+v", d.Usage)
		s.Usage(nil)
		s.Raise(usageEvent(never, 0, [3]uint64{9, 4, 5}))
		one := testkit.Receive(t, to.reports)
		testkit.Equal(t, one.req.Usage[0].Sequence, 0, "sequence of one that had no report")
	})
}

// A report of the former data plane is made again while one of the next is on its way. The answer to one leaves the
// other in the store.
func TestReportsOfTwoDataPlanesWait(t *testing.T) {
	s, path := dptest.Start(t), t.TempDir()+"/s.db"
	var seid uint64
	t.Run("first", func(t *testing.T) {
		b := synchronised(t, s, path, nil)
		to := b.reporting(t, true, "")
		seid = b.establish(smf1, request(1, "10.45.0.5")).UP.SEID
		b.counts(urr(seid, 1, 0, 10, 20))
		s.Raise(usageEvent(seid, 0, [3]uint64{33, 11, 22}))
		testkit.Receive(t, to.reports)
		b.counts(urr(seid, 1, 1, 100, 200))
		s.Crash(t)
		b.join()
		s.Raise(usageEvent(seid, 0, [3]uint64{3, 1, 2}))
		one := testkit.Receive(t, to.reports)
		testkit.Equal(t, one.req.Usage[0].Sequence, 1, "sequence")
		accept(one)
		testkit.Until(t, "it is acknowledged", func() bool { return s.Unacknowledged() == 0 })
	})
	s.Crash(t)
	t.Run("second", func(t *testing.T) {
		b := synchronised(t, s, path, nil)
		one := testkit.Receive(t, b.reporting(t, true, "").reports)
		testkit.ErrorIf(t, one.req.Usage[0].Sequence != 0 || volumeOf(t, one) != [3]uint64{33, 11, 22}, "%+v",
			one.req.Usage)
	})
}

// It may end again before the next report. A query of the CP function returns all.
func TestUsageSurvivesTwoDataPlanes(t *testing.T) {
	s := dptest.Start(t)
	b := synchronised(t, s, "", nil)
	seid := b.establish(smf1, request(1, "10.45.0.5")).UP.SEID
	for range 2 {
		b.counts(urr(seid, 1, 0, 100, 200))
		s.Crash(t)
		b.join()
	}
	testkit.Equal(t, b.urrs(seid)[0].VolumeThreshold[0], 1<<20-600, "threshold")
	s.Usage(func(id dptest.ID, was, is []byte) []api.Usage {
		if id != heldID(seid) || was == nil {
			return nil
		}
		return []api.Usage{{SEID: seid, URR: 1, Triggers: api.UsageImmer, Bytes: [3]uint64{3, 1, 2}}}
	})
	r := b.modify(smf1, seid, &pfcp.SessionModificationRequest{QueryURR: []uint32{1}})
	if s.Usage(nil); len(r.Usage) != 1 || *r.Usage[0].Volume != [3]uint64{603, 201, 402} {
		t.Fatalf("%+v", r.Usage)
	}
	testkit.Until(t, "the threshold is what it was", func() bool {
		return b.urrs(seid)[0].VolumeThreshold[0] == 1<<20
	})
}

// The rest of a quota is granted again, and no more; a newer grant is granted whole.
func TestQuotaIsNotGrantedTwice(t *testing.T) {
	s := dptest.Start(t)
	b := synchronised(t, s, "", nil)
	b.reporting(t, true, "")
	quota := func(n uint32) uint64 {
		req := request(n, fmt.Sprintf("10.45.0.%d", n))
		u := &req.URR[0]
		*u.Method, *u.Triggers = 3, api.URRVolqu|api.URRTimqu|api.URRTimth
		u.VolumeQuota = &pfcp.Volumes{Total: ptr(uint64(1000)), Downlink: ptr(uint64(900))}
		u.TimeQuota, u.TimeThreshold = ptr(time.Minute), ptr(30*time.Second)
		return b.establish(smf1, req).UP.SEID
	}
	plain, spent, fresh := quota(1), quota(2), quota(3)
	row := func(seid uint64, sequence, seconds uint32, left uint64) api.URRRow {
		r := urr(seid, 1, sequence, 100, 200)
		r.QuotaLeft, r.Duration = [3]uint64{left, rules.NoQuota, left - left/10}, seconds
		return r
	}
	out := row(spent, 5, 1, 0)
	out.Exhausted = 1
	b.counts(row(plain, 0, 20, 700), row(spent, 4, 1, 10), row(fresh, 0, 20, 700))
	// A report begins another measurement of the same quota.
	event := usageEvent(plain, 0, [3]uint64{350, 100, 250})
	event.Usage.Duration = 22
	s.Raise(event)
	event = usageEvent(spent, 4, [3]uint64{310, 100, 210})
	event.Usage.Triggers = api.UsageVolqu
	s.Raise(event)
	testkit.Until(t, "both are told", func() bool { return b.Counts().Reports == 2 })
	b.counts(row(plain, 1, 5, 400), out, row(fresh, 0, 21, 600))
	b.modify(smf1, fresh, &pfcp.SessionModificationRequest{UpdateURR: []pfcp.UpdateURR{{ID: 1,
		VolumeQuota: &pfcp.Volumes{Total: ptr(uint64(5000)), Downlink: ptr(uint64(5000))}}}})
	s.Crash(t)
	b.join()
	for _, want := range []struct {
		seid            uint64
		volume          [3]uint64
		time, threshold uint32
	}{{plain, [3]uint64{400, 0, 360}, 60 - 22 - 5, 25}, {spent, [3]uint64{}, 0, 29},
		{fresh, [3]uint64{5000, 0, 5000}, 60, 30 - 21}} {
		u := b.urrs(want.seid)[0]
		if u.VolumeQuota != want.volume || u.TimeQuota != want.time || u.TimeThreshold != want.threshold ||
			u.Flags != api.URRHasVolumeQuota|api.URRHasTimeQuota {
			t.Errorf("%+v instead of %+v", u, want)
		}
	}
}

// A used-up quota blocks traffic, so its report is stored until it is answered, even if its measurement was never read.
// A quota whose report did not arrive passes one packet, and is reported again. Without a trigger for it, it counts as
// used up.
func TestQuotaDoesNotEndInSilence(t *testing.T) {
	s, path := dptest.Start(t), t.TempDir()+"/s.db"
	var told, untold, unwanted uint64
	t.Run("first", func(t *testing.T) {
		b := synchronised(t, s, path, nil)
		to := b.reporting(t, true, "")
		quota := func(n uint32, triggers uint32) uint64 {
			req := request(n, fmt.Sprintf("10.45.0.%d", n))
			u := &req.URR[0]
			*u.Triggers, u.VolumeQuota = triggers, &pfcp.Volumes{Total: ptr(uint64(1000))}
			return b.establish(smf1, req).UP.SEID
		}
		told, untold, unwanted = quota(1, api.URRVolqu), quota(2, api.URRVolqu), quota(3, api.URRPerio)
		event := usageEvent(told, 0, [3]uint64{1000, 400, 600})
		event.Usage.Triggers = api.UsageVolqu
		s.Raise(event)
		testkit.Receive(t, to.reports) // and not answered
		var rows []api.URRRow
		for _, seid := range []uint64{told, untold, unwanted} {
			r := urr(seid, 1, 1, 0, 0)
			r.Packets, r.QuotaLeft, r.Exhausted = [3]uint64{}, [3]uint64{0, rules.NoQuota, rules.NoQuota}, 1
			rows = append(rows, r)
		}
		b.counts(rows...)
	})
	s.Crash(t)
	b := synchronised(t, s, path, nil)
	one := testkit.Receive(t, b.reporting(t, true, "").reports)
	testkit.ErrorIf(t, one.req.Usage[0].Trigger != api.UsageVolqu || one.req.Usage[0].Sequence != 0 ||
		volumeOf(t, one) != [3]uint64{1000, 400, 600}, "%+v", one.req.Usage)
	for seid, left := range map[uint64]uint64{told: 0, untold: 1, unwanted: 0} {
		testkit.Equal(t, b.urrs(seid)[0].VolumeQuota[0], left, "quota of %d", seid)
	}
}

// Both processes end: what was read is in the store. A report that was on its way is made again, whole.
func TestUsageSurvivesBoth(t *testing.T) {
	s, path := dptest.Start(t), t.TempDir()+"/s.db"
	var seid, told uint64
	t.Run("first", func(t *testing.T) {
		b := synchronised(t, s, path, nil)
		to := b.reporting(t, true, "")
		seid = b.establish(smf1, request(1, "10.45.0.5")).UP.SEID
		told = b.establish(smf1, request(2, "10.45.0.6")).UP.SEID
		b.counts(urr(seid, 1, 3, 100, 200), urr(told, 1, 7, 10, 20))
		s.Raise(usageEvent(told, 7, [3]uint64{33, 11, 22}))
		testkit.Receive(t, to.reports) // and not answered
	})
	s.Crash(t)
	t.Run("second", func(t *testing.T) {
		b := synchronised(t, s, path, nil)
		to := b.reporting(t, true, "")
		one := testkit.Receive(t, to.reports)
		testkit.ErrorIf(t, one.req.Usage[0].Sequence != 7 || volumeOf(t, one) != [3]uint64{33, 11, 22},
			"%+v", one.req.Usage)
		accept(one)
		testkit.Until(t, "the store has it no more", func() bool { return b.waiting() == 1 })
		s.Raise(usageEvent(seid, 0, [3]uint64{3, 1, 2}))
		testkit.Equal(t, volumeOf(t, testkit.Receive(t, to.reports)), [3]uint64{303, 101, 202}, "volume")
		// This one is not answered either: the store has both parts.
	})
	s.Crash(t)
	t.Run("third", func(t *testing.T) {
		b := synchronised(t, s, path, nil)
		to := b.reporting(t, true, "")
		one := testkit.Receive(t, to.reports)
		testkit.Equal(t, volumeOf(t, one), [3]uint64{303, 101, 202}, "volume")
		accept(one)
		s.Raise(usageEvent(told, 0, [3]uint64{3, 1, 2}))
		testkit.Equal(t, volumeOf(t, testkit.Receive(t, to.reports)), [3]uint64{3, 1, 2}, "volume of the other")
		testkit.Until(t, "thresholds are what they were", func() bool {
			return b.urrs(seid)[0].VolumeThreshold[0] == 1<<20 && b.waiting() == 0
		})
	})
}

// A data plane that survives a restart of the control plane still has its counters.
func TestDataPlaneGoesOn(t *testing.T) {
	s, path := dptest.Start(t), t.TempDir()+"/s.db"
	var seid uint64
	t.Run("first", func(t *testing.T) {
		b := synchronised(t, s, path, nil)
		seid = b.establish(smf1, request(1, "10.45.0.5")).UP.SEID
		b.counts(urr(seid, 1, 3, 100, 200))
		b.join() // a connection that was lost
	})
	t.Run("second", func(t *testing.T) {
		_, before := s.Counts()
		b := synchronised(t, s, path, nil)
		to := b.reporting(t, true, "")
		_, after := s.Counts()
		testkit.Equal(t, after, before, "changes of the data plane")
		s.Raise(usageEvent(seid, 3, [3]uint64{600, 200, 400}))
		one := testkit.Receive(t, to.reports)
		testkit.Equal(t, volumeOf(t, one), [3]uint64{600, 200, 400}, "volume")
		accept(one)
		s.Crash(t)
		b.join()
		testkit.Equal(t, b.urrs(seid)[0].VolumeThreshold[0], 1<<20, "threshold: all was reported")
		s.Raise(usageEvent(seid, 0, [3]uint64{3, 1, 2}))
		testkit.Equal(t, volumeOf(t, testkit.Receive(t, to.reports)), [3]uint64{3, 1, 2}, "volume of the next")
	})
}

// Rows, reports and the end of a data plane come in any order: what was counted is in one of them.
func TestReadingsAndReports(t *testing.T) {
	const seid = 77
	row := func(sequence uint32, up uint64) *api.URRRow { r := urr(seid, 1, sequence, up, 0); return &r }
	report := func(sequence uint32, up uint64) *api.Usage {
		return &api.Usage{URR: 1, Sequence: sequence, Bytes: [3]uint64{up, up, 0}}
	}
	for name, c := range map[string]struct {
		do   func(r *readings)
		want uint64
	}{
		"read again": {func(r *readings) { r.take(row(1, 5), 9); r.take(row(1, 7), 9) }, 7},
		"reported":   {func(r *readings) { r.take(row(1, 5), 9); r.report(report(1, 8)) }, 0},
		"read before reported": {func(r *readings) {
			r.take(row(1, 5), 9)
			r.take(row(2, 3), 9)
			r.report(report(1, 8))
		}, 3},
		"the report is lost":  {func(r *readings) { r.take(row(1, 5), 9); r.take(row(2, 3), 9) }, 8},
		"older than it was":   {func(r *readings) { r.take(row(2, 5), 9); r.take(row(1, 3), 9) }, 5},
		"reported by another": {func(r *readings) { r.take(row(1, 5), 9); r.report(report(2, 8)) }, 5},
		"many lost": {func(r *readings) {
			for i := range uint32(100) {
				r.take(row(i, 1), 9)
			}
		}, mostReadings},
	} {
		var r readings
		c.do(&r)
		back := readings{list: make([]reading, 3)}
		testkit.Must(t, back.read(r.append(nil)))
		testkit.ErrorIf(t, !slices.Equal(back.list, r.list), "%s: %+v is read as %+v", name, r.list, back.list)
		m, _ := r.used(1)
		testkit.Equal(t, m.Bytes[0], c.want, "%s: bytes", name)
	}
	var r readings
	for i := range 40 {
		if b := slices.Repeat([]byte{0xff}, i); i != 8 && r.read(b) == nil {
			t.Errorf("%d octets are read: %+v", i, r.list)
		}
	}
}

// A report overtakes a row that was read before it; so does a session that ends.
func TestRowsThatAreOvertaken(t *testing.T) {
	s := dptest.Start(t)
	b := synchronised(t, s, "", nil)
	to := b.reporting(t, true, "")
	seid := b.establish(smf1, request(1, "10.45.0.5")).UP.SEID
	boot := b.c.Hello().BootID
	testkit.ErrorIf(t, !b.beginSnapshot(boot) || b.beginSnapshot(boot+1), "another data plane's rows")
	b.beginSnapshot(boot)
	s.Raise(usageEvent(seid, 3, [3]uint64{600, 200, 400}))
	accept(testkit.Receive(t, to.reports))
	rows := []api.URRRow{urr(seid, 1, 3, 100, 200), urr(99, 1, 3, 1, 2)}
	testkit.ErrorIf(t, !b.takeRows(boot, rows), "not in step")
	testkit.Equal(t, b.readings(), 0, "sessions")
	b.counts(urr(seid, 1, 4, 1, 2))
	testkit.Equal(t, b.readings(), 1, "sessions")
	b.delete(smf1, seid)
	testkit.Equal(t, b.readings(), 0, "sessions")
	b.Attach(nil)
	testkit.ErrorIf(t, b.takeRows(boot, nil), "rows of a data plane that is away are taken")
}

// A session that ends while the data plane is away reports what is known. Later usage from the ended data plane is
// included.
func TestDeletedWhileTheDataPlaneIsAway(t *testing.T) {
	s := dptest.Start(t)
	b := synchronised(t, s, "", nil)
	to := b.reporting(t, false, "")
	seid := b.establish(smf1, request(1, "10.45.0.5")).UP.SEID
	late := b.establish(smf1, request(2, "10.45.0.6")).UP.SEID
	b.counts(urr(seid, 1, 3, 100, 200))
	former := b.c.Hello().BootID
	s.Crash(t)
	b.join()
	b.counts(urr(seid, 1, 0, 1, 2), urr(late, 1, 2, 5, 6))
	b.Attach(nil)
	d := b.delete(smf1, seid)
	if len(d.Usage) != 1 || *d.Usage[0].Volume != [3]uint64{303, 101, 202} || d.Usage[0].Trigger != api.UsageTermr {
		t.Errorf("%+v", d.Usage)
	}
	event := usageEvent(late, 2, [3]uint64{33, 11, 22})
	done := 0
	for _, event.BootID = range []uint64{former, former + 1} {
		b.reports.reportEvents(to, []api.Event{event}, func() { done++ })
	}
	testkit.ErrorIf(t, done != 1 || len(to.reports) != 1, "%d done, %d reports", done, len(to.reports))
}

// Lines count lost usage by the numbers of reports; it is repeated until they acknowledge it.
func TestLinesHearWhatWasLost(t *testing.T) {
	s, path := dptest.Start(t), t.TempDir()+"/s.db"
	h := &heard{events: make(chan api.Event, 9), done: make(chan func(), 9), ended: make(chan uint64, 9),
		hold: true}
	lost := func(t *testing.T, n int) {
		t.Helper()
		testkit.FatalIf(t, len(h.lost) != n, "%+v", h.lost)
		u := &h.lost[n-1]
		testkit.ErrorIf(t, u.Sequence != 3 || u.Bytes != [3]uint64{300, 100, 200} ||
			u.Packets != [3]uint64{3, 1, 2}, "%+v", u)
	}
	t.Run("first", func(t *testing.T) {
		b := synchronised(t, s, path, h)
		go b.Follow(t.Context(), s.Path)
		testkit.Must(t, b.put(lineOf(77, "10.45.0.2"), `{}`))
		b.counts(urr(77, 1, 2, 1, 2))
		s.Raise(usageEvent(77, 2, [3]uint64{3, 1, 2}))
		testkit.Receive(t, h.events)
		testkit.Receive(t, h.done)() // counted, and in the store
		testkit.Until(t, "what was counted is read no longer", func() bool { return b.readings() == 0 })
		b.counts(urr(77, 1, 3, 100, 200))
		s.Crash(t)
		b.join()
		lost(t, 1)
		b.counts(urr(77, 1, 0, 5, 5)) // waits
	})
	t.Run("second", func(t *testing.T) {
		h.hold = false
		b := synchronised(t, s, path, h)
		lost(t, 2)
		testkit.Until(t, "what was taken over is read no longer", func() bool { return b.readings() == 0 })
		b.counts(urr(77, 1, 0, 5, 5))
		testkit.Equal(t, b.readings(), 1, "sessions")
		b.join()
		testkit.Equal(t, len(h.lost), 2, "rows, of the same data plane")
	})
}

// Every failed snapshot is counted; the log reports it once.
func TestSnapshotFails(t *testing.T) {
	var log strings.Builder
	p, err := Open("", testSettings(), slog.New(slog.NewTextHandler(&log, nil)))
	testkit.Must(t, err)
	defer p.Close()
	end := testkit.Run(t, func(ctx context.Context) error {
		p.Snapshots(ctx, t.TempDir()+"/none", time.Millisecond)
		return nil
	})
	testkit.Until(t, "some failed", func() bool { return p.Counts().SnapshotsFailed > 1 })
	end()
	testkit.Equal(t, strings.Count(log.String(), "no snapshot"), 1, "lines of the log")
}

// A store without room: the session lives, the log reports it, and the data plane's end costs nothing.
func TestSnapshotOnAFullDisk(t *testing.T) {
	fd, err := unix.MemfdCreate("store", unix.MFD_ALLOW_SEALING)
	testkit.Must(t, err)
	var log strings.Builder
	to := slog.New(slog.NewTextHandler(&log, nil))
	p, err := open(fmt.Sprintf("/proc/self/fd/%d", fd), "boot", testSettings(), to)
	testkit.Must(t, err)
	s := dptest.Start(t)
	b := &bench{Manager: p, s: s, t: t, end: testkit.Run(t, p.Run)}
	b.join()
	seid := b.establish(smf1, request(1, "10.45.0.5")).UP.SEID
	_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_GROW)
	testkit.Must(t, err)
	b.counts(urr(seid, 1, 3, 100, 200))
	testkit.ErrorIf(t, b.Counts().StoreErrors == 0 || b.Count("") != 1, "%+v", b.Counts())
	s.Crash(t)
	b.join()
	testkit.Equal(t, b.urrs(seid)[0].VolumeThreshold[0], 1<<20-300, "threshold")
	b.end()
	testkit.ErrorIf(t, !strings.Contains(log.String(), "usage is not kept for a restart"), "%s", log.String())
}
