// SPDX-License-Identifier: Apache-2.0

package aaa

import (
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"isthmus/controlplane/radius"
)

// Store keeps records until a server has taken them. Called from several goroutines.
type Store interface {
	Keep(id uint64, record []byte) // not changed afterwards
	Forget(id uint64)
}

// QueueCounts of the accounting queue.
type QueueCounts struct {
	Waiting, Peak                                int
	Away                                         bool // no server takes records: they wait
	Draining                                     bool // a server is back, and gets what waits at a pace
	Queued, Sent, Restored                       uint64
	Merged                                       uint64 // interims that a later record made needless
	DroppedInterims, DroppedStarts, DroppedStops uint64 // the queue was full
	Refused                                      uint64 // records that no server could take, or we not read
}

// queue sends records in the order of their session, several sessions at a time; without servers they wait.
type queue struct {
	store Store
	log   func(format string, args ...any)

	adding sync.Mutex // one record at a time comes in

	mu       sync.Mutex
	client   *radius.Client // nil: no accounting server
	limit    int
	drain    int              // records a second
	lines    map[string]*line // by session
	ready    []*line          // of sessions, whose first record may be sent
	behind   []*line          // the same, but for an Accounting-On that is older and not taken yet
	interims []*record        // oldest first; some do not wait any more
	lastID   uint64
	flying   int
	tokens   float64 // while draining
	retry    time.Duration
	timer    *time.Timer
	closed   bool
	idle     chan struct{} // closed when nothing is pending; made by the first that waits
	news     chan struct{} // closed when a record was accepted or not; made by the first that waits
	counts   QueueCounts
}

// line is the records of one session, in order; of no session: On and Off.
type line struct {
	session string
	records []*record
	flying  bool // the first is on its way
}

const (
	window     = 512 // records on their way
	firstRetry = 500 * time.Millisecond
	lastRetry  = 30 * time.Second
	drainTick  = 20 * time.Millisecond
)

func newQueue(store Store, log func(string, ...any)) *queue {
	return &queue{store: store, log: log, lines: map[string]*line{}}
}

// use changes servers and limits.
func (q *queue) use(client *radius.Client, limit, drain int) {
	q.mu.Lock()
	q.client, q.limit, q.drain = client, limit, drain
	q.mu.Unlock()
	q.wake()
}

// add queues a record, or drops one, and sends as many as possible. A record is stored before it can be sent, and
// forgotten.
func (q *queue) add(r *record, restored bool) {
	q.adding.Lock()
	defer q.pump()
	defer q.adding.Unlock()
	q.mu.Lock()
	if q.client == nil && !restored {
		q.mu.Unlock()
		return
	}
	if restored {
		q.counts.Restored++
	} else {
		r.id = q.lastID + 1
		q.counts.Queued++
	}
	q.lastID = max(q.lastID, r.id)
	q.mu.Unlock()

	var gone []*record
	if q.store != nil && !restored {
		q.store.Keep(r.id, r.kept)
	}
	q.mu.Lock()
	if old := q.merge(r); old != nil {
		gone = append(gone, old)
	}
	full := false
	if q.counts.Waiting >= q.limit {
		var victim *record
		if victim, full = q.makeRoom(r); victim != nil {
			gone = append(gone, victim)
		}
	}
	if full {
		gone = append(gone, r)
	} else {
		q.append(r)
	}
	q.mu.Unlock()
	if q.store != nil {
		for _, old := range gone {
			q.store.Forget(old.id)
		}
	}
}

func (q *queue) append(r *record) {
	l := q.lines[r.session]
	if l == nil {
		l = &line{session: r.session}
		q.lines[r.session] = l
		q.isReady(l)
	}
	if r.session == "" {
		r.ahead = q.counts.Waiting - len(l.records)
	}
	l.records = append(l.records, r)
	if r.kind == Interim {
		q.interims = append(q.interims, r)
		q.forgetInterims()
	}
	q.counts.Waiting++
	q.counts.Peak = max(q.counts.Peak, q.counts.Waiting)
}

func (q *queue) isReady(l *line) {
	if l.session != "" {
		q.ready = append(q.ready, l)
	}
}

// forgetInterims keeps the list of interims in proportion to what waits.
func (q *queue) forgetInterims() {
	if len(q.interims) < 2*q.counts.Waiting+64 {
		return
	}
	kept := q.interims[:0]
	for _, r := range q.interims {
		if !r.late {
			kept = append(kept, r)
		}
	}
	clear(q.interims[len(kept):])
	q.interims = kept
}

// merge takes away the interim that the new record of its session makes needless: counts go up only.
func (q *queue) merge(r *record) *record {
	l := q.lines[r.session]
	if l == nil || len(l.records) == 0 || r.kind != Interim && r.kind != Stop {
		return nil
	}
	last := len(l.records) - 1
	old := l.records[last]
	if old.kind != Interim || last == 0 && l.flying {
		return nil
	}
	q.remove(l, last)
	q.counts.Merged++
	return old
}

func (q *queue) remove(l *line, i int) {
	r := l.records[i]
	r.late = true
	if ours := q.lines[""]; ours != nil && l != ours {
		for _, own := range ours.records {
			if r.id < own.id {
				own.ahead--
			}
		}
	}
	l.records = append(l.records[:i], l.records[i+1:]...)
	q.counts.Waiting--
}

// makeRoom drops the oldest interim, else the oldest start where r is a stop, else r itself.
func (q *queue) makeRoom(r *record) (victim *record, full bool) {
	for len(q.interims) > 0 {
		old := q.interims[0]
		q.interims = q.interims[1:]
		if l := q.lines[old.session]; l != nil && !old.late && q.dropOf(l, old) {
			q.counts.DroppedInterims++
			return old, false
		}
	}
	switch r.kind {
	case Stop:
		if victim = q.oldestStart(); victim != nil {
			q.counts.DroppedStarts++
			return victim, false
		}
		q.counts.DroppedStops++
	case Interim:
		q.counts.DroppedInterims++
	default:
		q.counts.DroppedStarts++
	}
	return nil, true
}

// drop removes an unsent record to make room, and with the last one its line.
func (q *queue) drop(l *line, i int) {
	q.remove(l, i)
	if len(l.records) == 0 {
		delete(q.lines, l.session)
		q.unready(l)
	}
}

func (q *queue) unready(l *line) {
	for _, list := range []*[]*line{&q.ready, &q.behind} {
		if at := slices.Index(*list, l); at >= 0 {
			*list = slices.Delete(*list, at, at+1)
		}
	}
}

// dropOf drops a record of a line, if it is not on its way.
func (q *queue) dropOf(l *line, r *record) bool {
	for i, one := range l.records {
		if one == r && (i > 0 || !l.flying) {
			q.drop(l, i)
			return true
		}
	}
	return false
}

func (q *queue) oldestStart() *record {
	for _, list := range [][]*line{q.ready, q.behind} {
		for _, l := range list[:min(64, len(list))] {
			if len(l.records) > 0 && !l.flying && l.records[0].kind == Start {
				old := l.records[0]
				q.drop(l, 0)
				return old
			}
		}
	}
	return nil
}

// pump sends first records while there is room. Accounting-On and Off overtake no older record, and no record of a
// newer session overtakes Accounting-On.
func (q *queue) pump() {
	for {
		q.mu.Lock()
		r, client := q.take()
		q.mu.Unlock()
		if r == nil {
			return
		}
		p, err := r.packet()
		if err != nil { // it was checked when it came
			q.done(r, err)
			continue
		}
		client.Exchange(p, func(_ *radius.Packet, err error) { q.done(r, err) })
	}
}

func (q *queue) take() (*record, *radius.Client) {
	if q.client == nil || q.closed || q.counts.Away || q.flying >= window || q.counts.Draining && q.tokens < 1 {
		return nil, nil
	}
	before := uint64(math.MaxUint64) // an Accounting-On that waits, or is on its way
	if ours := q.lines[""]; ours != nil && len(ours.records) > 0 {
		if !ours.flying && ours.records[0].ahead == 0 {
			return q.send(ours), q.client
		}
		if i := slices.IndexFunc(ours.records, func(r *record) bool { return r.kind == On }); i >= 0 {
			before = ours.records[i].id
		}
	}
	if before == math.MaxUint64 && len(q.behind) > 0 {
		q.ready, q.behind = append(q.behind, q.ready...), nil
	}
	for len(q.ready) > 0 {
		l := q.ready[0]
		q.ready[0] = nil
		q.ready = q.ready[1:]
		switch {
		case len(l.records) == 0:
			delete(q.lines, l.session) // its only record was dropped for want of room
		case l.records[0].id >= before:
			q.behind = append(q.behind, l)
		case !l.flying:
			return q.send(l), q.client
		}
	}
	return nil, nil
}

func (q *queue) send(l *line) *record {
	l.flying = true
	q.flying++
	if q.counts.Draining {
		q.tokens--
	}
	return l.records[0]
}

// done is the end of a record's way: it is taken, or no server was there.
func (q *queue) done(r *record, err error) {
	q.mu.Lock()
	l := q.lines[r.session]
	l.flying = false
	q.flying--
	away := errors.Is(err, radius.ErrAway) || errors.Is(err, radius.ErrBusy) || errors.Is(err, radius.ErrClosed)
	if away {
		q.isReady(l)
		q.pause()
	} else {
		q.remove(l, 0)
		q.counts.Sent++
		q.retry = 0
		if err != nil {
			q.counts.Sent--
			q.counts.Refused++
		}
		if len(l.records) > 0 {
			q.isReady(l)
		} else {
			delete(q.lines, r.session)
		}
		if q.counts.Waiting == q.flying {
			q.counts.Draining = false
		}
	}
	if q.flying == 0 && q.idle != nil {
		close(q.idle)
		q.idle = nil
	}
	if q.news != nil {
		close(q.news)
		q.news = nil
	}
	q.mu.Unlock()
	if !away && q.store != nil {
		q.store.Forget(r.id)
	}
	if err != nil && !away {
		q.log("accounting of session %s: %s record dropped: %v", r.session, r.kind, err)
	}
	q.pump()
}

// pause waits for a server: one record is tried from time to time.
func (q *queue) pause() {
	if q.counts.Away || q.closed {
		return
	}
	q.counts.Away, q.counts.Draining = true, true
	q.tokens = 0
	q.retry = min(max(2*q.retry, firstRetry), lastRetry)
	q.after(q.retry, q.wake)
}

func (q *queue) after(d time.Duration, fn func()) {
	if q.timer != nil {
		q.timer.Stop()
	}
	q.timer = time.AfterFunc(d, fn)
}

// wake sends again: a server answers, or the time has come to try.
func (q *queue) wake() {
	q.mu.Lock()
	q.counts.Away = false
	if q.counts.Draining && !q.closed {
		q.tokens = max(q.tokens, 1)
		q.after(drainTick, q.tick)
	}
	q.mu.Unlock()
	q.pump()
}

// tick allows for what may be sent in its time.
func (q *queue) tick() {
	q.mu.Lock()
	if q.counts.Away || !q.counts.Draining || q.closed {
		q.mu.Unlock()
		return
	}
	perTick := float64(q.drain) * drainTick.Seconds()
	q.tokens = min(q.tokens+perTick, max(perTick, 1))
	q.after(drainTick, q.tick)
	q.mu.Unlock()
	q.pump()
}

// settled waits until all is sent, no server takes records, or over; it returns how many wait.
func (q *queue) settled(over <-chan struct{}) (waiting int) {
	for {
		q.mu.Lock()
		waiting = q.counts.Waiting
		if waiting == 0 || q.counts.Away || q.client == nil || q.closed {
			q.mu.Unlock()
			return waiting
		}
		if q.news == nil {
			q.news = make(chan struct{})
		}
		news := q.news
		q.mu.Unlock()
		select {
		case <-news:
		case <-over:
			return waiting
		}
	}
}

// refused counts a record that the store had and that cannot be read.
func (q *queue) refused() {
	q.mu.Lock()
	q.counts.Refused++
	q.mu.Unlock()
}

// close waits for pending records until done; no more are sent.
func (q *queue) close(done <-chan struct{}) {
	q.mu.Lock()
	q.closed = true
	if q.timer != nil {
		q.timer.Stop()
	}
	var idle chan struct{}
	if q.flying > 0 {
		idle = make(chan struct{})
		q.idle = idle
	}
	q.mu.Unlock()
	if idle != nil {
		select {
		case <-idle:
		case <-done:
		}
	}
}

func (q *queue) state() QueueCounts {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.counts
}
