// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"errors"
)

// Why a follower ends.
var (
	ErrBehind  = errors.New("the reader is too slow: more than 256 events wait; go on after the last id")
	ErrTooMany = errors.New("no place for one more reader of the events: 32 in all, " +
		"and no client may hold more than are free")
)

// Follower gets events as they come, until it falls behind. One goroutine calls Next.
type Follower struct {
	log    *Log
	filter Filter
	queue  chan Event
	behind chan struct{} // closed when the queue was full
	leave  func()        // its place
}

// Follow begins with the page of what is in memory after a cursor; live: only later events. Nothing is lost between
// page and follower. Places are counted by client. The caller must call Close.
func (l *Log) Follow(client, after string, live bool, f Filter) (*Follower, Page, error) {
	id, err := l.place(after)
	if err != nil {
		return nil, Page{}, err
	}
	leave := l.places.Take(client)
	if leave == nil {
		return nil, Page{}, ErrTooMany
	}
	w := &Follower{log: l, filter: f, queue: make(chan Event, followerQueue), behind: make(chan struct{}),
		leave: leave}
	all := l.register(w, &id)
	if live {
		all.events, after = nil, ""
	}
	return w, all.page(id, after != "", 0, f), nil
}

func (l *Log) register(w *Follower, id *uint64) copied {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.followers[w] = true
	return l.copyAfter(id)
}

// give hands an event over without waiting; the lock is held.
func (l *Log) give(f *Follower, e Event) {
	if !f.filter.takes(e.Kind) {
		return
	}
	select {
	case f.queue <- e:
	default:
		delete(l.followers, f)
		f.leave()
		l.dropped++
		close(f.behind)
	}
}

// Next waits for an event. What was queued before the follower fell behind comes before ErrBehind.
func (f *Follower) Next(ctx context.Context) (Event, error) {
	select {
	case e := <-f.queue:
		return e, nil
	default:
	}
	select {
	case e := <-f.queue:
		return e, nil
	case <-f.behind:
		select {
		case e := <-f.queue:
			return e, nil
		default:
			return Event{}, ErrBehind
		}
	case <-ctx.Done():
		return Event{}, ctx.Err()
	}
}

// Close ends following.
func (f *Follower) Close() {
	f.log.lock.Lock()
	defer f.log.lock.Unlock()
	delete(f.log.followers, f)
	f.leave()
}
