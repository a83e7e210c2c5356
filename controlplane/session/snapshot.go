// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/session/slab"
	"isthmus/controlplane/session/store"
)

// The data plane's counts since the last reports would end with it. So all counts are read each period, and changes are
// kept, in memory and in the store. Usage goes on from there in the next data plane (resume.go): a session loses its
// usage since the last snapshot.

// snapshotShare: a snapshot takes at most one part in snapshotShare of the time, for any number of sessions.
const snapshotShare = 4

var errOtherBoot = errors.New("it is not the data plane that the sessions are in")

// snapshots are the readings of all sessions, as the store has them.
type snapshots struct {
	at      map[uint64]slab.Handle // by SEID
	records slab.Slab
	// While rows are read, those of sessions that changed or reported meanwhile may be older than that.
	reading bool
	touched map[uint64]bool
	former  uint64 // boot of the data plane whose usage was carried over last

	scratch readings
	encoded []byte
}

// reader reads the data plane's counts, numbers its reports, and carries usage over to the next data plane. The table's
// mu guards it, except what Lines report.
type reader struct {
	*table
	commits  queue
	file     *storing
	deferred *deferredReports
	plans    *planner
	lines    *lines

	snaps  snapshots
	failed uint64 // snapshots

	lock  sync.Mutex
	heard []func() // of Lines, each of an event or a session
}

func newSnapshots() snapshots {
	return snapshots{at: map[uint64]slab.Handle{}, touched: map[uint64]bool{}}
}

// of are the readings of a session, good until it is called again; nil: there are none.
func (s *snapshots) of(seid uint64) *readings {
	h := s.at[seid]
	if h == 0 {
		return nil
	}
	_, _, data := s.records.Open(h)
	if s.scratch.read(data) != nil {
		return nil
	}
	return &s.scratch
}

// keep replaces a session's readings, and adds what the store needs of it; nil: none.
func (s *snapshots) keep(records []store.Record, seid uint64, r *readings) []store.Record {
	var data []byte
	if r != nil && len(r.list) > 0 {
		s.encoded = r.append(s.encoded[:0])
		data = s.encoded
	}
	h := s.at[seid]
	if h == 0 && data == nil {
		return records
	}
	if h != 0 {
		if _, _, is := s.records.Open(h); bytes.Equal(is, data) {
			return records
		}
		s.records.Drop(h)
		delete(s.at, seid)
	}
	if data == nil {
		return append(records, store.Record{Kind: store.Reading, Number: seid})
	}
	h = s.records.Add(seid, 0, data)
	s.at[seid] = h
	_, _, data = s.records.Open(h)
	return append(records, store.Record{Kind: store.Reading, Number: seid, Data: data})
}

// touch marks what is being read of a session as out of date.
func (s *snapshots) touch(seid uint64) {
	if s.reading {
		s.touched[seid] = true
	}
}

// forget is for a session that ends; records update the store.
func (s *snapshots) forget(records []store.Record, seid uint64) []store.Record {
	s.touch(seid)
	return s.keep(records, seid, nil)
}

// load is one of the store's.
func (s *snapshots) load(seid uint64, data []byte) error {
	if err := s.scratch.read(data); err != nil {
		return err
	}
	s.keep(nil, seid, &s.scratch)
	return nil
}

// Snapshots reads what the data plane at path has counted, once a period, until ctx ends.
func (p *reader) Snapshots(ctx context.Context, path string, period time.Duration) {
	var c *dp.Client // of its own: no request waits for it
	failed := false
	for pause := period; ; {
		select {
		case <-ctx.Done():
			if c != nil {
				c.Close()
			}
			return
		case <-time.After(pause):
		}
		start := time.Now()
		var err error
		if c, err = connected(ctx, c, path); err == nil {
			err = p.Snapshot(ctx, c)
		}
		if err != nil && !errors.Is(err, errOtherBoot) && ctx.Err() == nil {
			p.snapshotFailed(err, !failed)
			failed = true
		}
		failed = failed && err != nil
		took := time.Since(start)
		pause = max(period-took, (snapshotShare-1)*took)
	}
}

// snapshotFailed counts one; the log has the first of some.
func (p *reader) snapshotFailed(err error, first bool) {
	p.mu.Lock()
	p.failed++
	p.mu.Unlock()
	if first {
		p.log.Warn("no snapshot of what sessions have used", "error", err)
	}
}

// connected is c, or another one where that has ended.
func connected(ctx context.Context, c *dp.Client, path string) (*dp.Client, error) {
	if c != nil {
		select {
		case <-c.Done():
		default:
			return c, nil
		}
	}
	return dp.Dial(ctx, path)
}

// Snapshot reads once.
func (p *reader) Snapshot(ctx context.Context, c *dp.Client) error {
	boot := c.Hello().BootID
	if !p.beginSnapshot(boot) {
		return errOtherBoot
	}
	defer func() {
		p.mu.Lock()
		p.snaps.reading = false
		p.mu.Unlock()
	}()
	return dp.EachRows(ctx, c, api.TableURR, func(rows []api.URRRow) error {
		for len(rows) > 0 {
			n := min(len(rows), someSessions)
			for n < len(rows) && rows[n].Session == rows[n-1].Session {
				n++
			}
			if !p.takeRows(boot, rows[:n]) {
				return errOtherBoot
			}
			rows = rows[n:]
		}
		return nil
	})
}

// ends is audience's.
func (p *reader) ends(t *txn, seid uint64) {
	if p.snaps.at[seid] != 0 {
		t.records = append(t.records, store.Record{Kind: store.Reading, Number: seid})
	}
}

// ended forgets a session; the store has, by ends.
func (p *reader) ended(seid uint64) { p.snaps.forget(nil, seid) }

// inStep: the sessions are in a data plane; the caller holds mu.
func (p *reader) inStep(boot uint64) bool { return p.client != nil && p.boot == boot }

func (p *reader) beginSnapshot(boot uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.snaps.touched)
	p.snaps.reading = p.inStep(boot)
	return p.snaps.reading
}

// takeRows keeps some rows; those of a session stand together. It holds mu for less than a millisecond.
func (p *reader) takeRows(boot uint64, rows []api.URRRow) bool {
	now := uint32(time.Now().Unix())
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.inStep(boot) {
		return false
	}
	var records []store.Record
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].Session == rows[0].Session {
			n++
		}
		records = p.takeSession(records, boot, rows[:n], now)
		rows = rows[n:]
	}
	p.file.write(records, "usage is")
	return true
}

func (p *reader) takeSession(records []store.Record, boot uint64, rows []api.URRRow, now uint32) []store.Record {
	seid, ok := rules.SEIDOf(api.CString(rows[0].Session[:]))
	if !ok || p.x.session[seid] == 0 || p.snaps.touched[seid] {
		return records
	}
	r := p.snaps.of(seid)
	switch {
	case r == nil:
		r = &p.snaps.scratch
		r.boot, r.list = boot, r.list[:0]
	case r.boot != boot: // Lines have not counted its usage yet
		return records
	}
	for i := range rows {
		r.take(&rows[i], now)
	}
	return p.snaps.keep(records, seid, r)
}
