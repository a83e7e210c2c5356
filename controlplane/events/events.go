// SPDX-License-Identifier: Apache-2.0

// Package events keeps the gateway's events: a ring in memory, its followers, and a file of operators' changes.
// Publishing never waits for a reader.
package events

import (
	"container/list"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"isthmus/controlplane/httpd"
)

// Event is one thing that happened. It is never changed after it was published.
type Event struct {
	ID      uint64         `json:"id"` // rises by one with each event, from 1
	Boot    string         `json:"boot"`
	Time    time.Time      `json:"time"`
	Kind    string         `json:"kind"`
	Subject string         `json:"subject"`
	Fields  map[string]any `json:"fields"` // text, numbers, bools, lists of text
	Who     *Who           `json:"who,omitempty"`
}

// Who requested a change.
type Who struct {
	Via     string `json:"via"` // unix, tcp, signal
	UID     uint32 `json:"uid"` // unix
	PID     int32  `json:"pid"`
	Program string `json:"program"`
	Token   string `json:"token"`   // its name; tcp
	Address string `json:"address"` // tcp
}

// Cursor is the event's place in the stream: boot and id.
func (e *Event) Cursor() string { return cursor(e.Boot, e.ID) }

func cursor(boot string, id uint64) string { return boot + "-" + strconv.FormatUint(id, 10) }

// Sizes of the rings, one for each kind: frequent kinds must not displace rare ones. Of a full one each line has a
// share at most: a line refused all the time displaces its own events.
const (
	sessionRing   = 2048 // of kinds that begin with session.
	otherRing     = 512
	shareOfRing   = 8
	maxFollowers  = 32
	followerQueue = 256
	maxText       = 512 // of a field
)

// Log is the ring. Methods may be called from any goroutine.
type Log struct {
	boot  string
	now   func() time.Time
	audit *Audit // nil: none

	lock      sync.Mutex
	last      uint64           // id
	rings     map[string]*ring // by kind
	followers map[*Follower]bool
	places    *httpd.Places // theirs
	dropped   uint64        // followers that were too slow
}

// ring keeps the last events.
type ring struct {
	all  list.List // of Event, oldest first
	by   map[string][]*list.Element
	size int
}

// add makes room: the oldest event of a Who with its full share goes, else the oldest.
func (r *ring) add(e Event) {
	from := e.from()
	if r.all.Len() == r.size {
		out := r.all.Front()
		if own := r.by[from]; len(own) >= r.size/shareOfRing {
			out = own[0]
		}
		gone := r.all.Remove(out).(Event)
		if of := gone.from(); len(r.by[of]) > 1 {
			r.by[of] = r.by[of][1:] // its oldest
		} else {
			delete(r.by, of)
		}
	}
	r.by[from] = append(r.by[from], r.all.PushBack(e))
}

// from is the source of events: the access line that they name, since users and MAC addresses change; else the subject.
func (e *Event) from() string {
	if line, ok := e.Fields["line"].(string); ok && line != "" {
		return line
	}
	return e.Subject
}

// after appends the events with a higher id.
func (r *ring) after(id uint64, to []Event) []Event {
	for at := r.all.Front(); at != nil; at = at.Next() {
		if e := at.Value.(Event); e.ID > id {
			to = append(to, e)
		}
	}
	return to
}

// New makes an empty log. audit takes the events that have a Who; may be nil.
func New(audit *Audit) *Log {
	var boot [8]byte
	rand.Read(boot[:]) // never fails (crypto/rand)
	return &Log{boot: hex.EncodeToString(boot[:]), now: time.Now, audit: audit, followers: map[*Follower]bool{},
		places: httpd.NewPlaces(maxFollowers), rings: map[string]*ring{}}
}

// Publish enters an event. args are names and values in turn, as in slog. A nil log drops it.
func (l *Log) Publish(kind, subject string, args ...any) { l.By(nil, kind, subject, args...) }

// By is Publish for a requested change; it returns after the audit file was written.
func (l *Log) By(who *Who, kind, subject string, args ...any) {
	if l == nil {
		return
	}
	e := Event{Boot: l.boot, Kind: kind, Subject: short(subject), Fields: fields(args), Who: who}
	l.lock.Lock()
	l.last++
	e.ID, e.Time = l.last, l.now().UTC()
	l.ring(kind).add(e)
	for f := range l.followers {
		l.give(f, e)
	}
	l.lock.Unlock()
	if who != nil && l.audit != nil {
		l.audit.write(&e)
	}
}

// ring is a kind's. The lock is held.
func (l *Log) ring(kind string) *ring {
	r := l.rings[kind]
	if r == nil {
		r = &ring{by: map[string][]*list.Element{}, size: otherRing}
		if strings.HasPrefix(kind, "session.") {
			r.size = sessionRing
		}
		l.rings[kind] = r
	}
	return r
}

func fields(args []any) map[string]any {
	m := make(map[string]any, len(args)/2)
	for i := 0; i+1 < len(args); i += 2 {
		m[fmt.Sprint(args[i])] = plain(args[i+1])
	}
	return m
}

// plain is a value in JSON's form: all but numbers, bools and lists of text become text.
func plain(v any) any {
	switch v := v.(type) {
	case bool, int, int64, uint16, uint32, uint64, float64:
		return v
	case time.Duration:
		return v.Seconds()
	case time.Time:
		return v.UTC().Format(time.RFC3339)
	case []string:
		return v
	}
	return short(fmt.Sprint(v))
}

func short(s string) string {
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return strings.ToValidUTF8(s, "�")
}

// Filter chooses events by kind.
type Filter struct {
	Kinds []string // names or first words of kinds; none: all
}

func (f *Filter) takes(kind string) bool {
	return len(f.Kinds) == 0 || slices.ContainsFunc(f.Kinds, func(k string) bool { return matches(kind, k) })
}

// Page is what a reader gets at once.
type Page struct {
	Boot   string  `json:"boot"`   // of the control plane
	Events []Event `json:"events"` // oldest first
	Lost   uint64  `json:"lost"`   // events of any kind after the cursor that are not in memory any more
	Next   string  `json:"next"`   // cursor behind these
}

// Read returns the events after a cursor, at most limit of them (0: all in memory). An empty cursor means the oldest in
// memory. A cursor of another start of the control plane means the first event of this start.
func (l *Log) Read(after string, limit int, f Filter) (Page, error) {
	id, err := l.place(after)
	if err != nil {
		return Page{}, err
	}
	l.lock.Lock()
	all := l.copyAfter(&id)
	l.lock.Unlock()
	return all.page(id, after != "", limit, f), nil
}

// place is the id that a cursor stands for: BOOT-ID, or the ID alone.
func (l *Log) place(after string) (uint64, error) {
	if after == "" {
		return 0, nil
	}
	boot, text, named := strings.Cut(after, "-")
	if !named {
		boot, text = l.boot, after
	}
	id, err := strconv.ParseUint(text, 10, 64)
	if err != nil || len(after) > 40 {
		return 0, fmt.Errorf("after: %q is no id of an event", short(after))
	}
	if boot != l.boot {
		return 0, nil
	}
	return id, nil
}

// copied is the memory at one moment, so that no publisher waits while a page is made of it.
type copied struct {
	boot   string
	last   uint64
	events []Event
}

// copyAfter copies what is behind *id, which it puts right. The lock is held.
func (l *Log) copyAfter(id *uint64) (all copied) {
	all.boot, all.last = l.boot, l.last
	*id = min(*id, l.last)
	for _, r := range l.rings {
		all.events = r.after(*id, all.events)
	}
	return all
}

func (c copied) page(id uint64, resumed bool, limit int, f Filter) Page {
	all := c.events
	slices.SortFunc(all, func(a, b Event) int { return int(int64(a.ID - b.ID)) })
	page := Page{Boot: c.boot, Events: []Event{}, Next: cursor(c.boot, c.last)}
	if resumed {
		page.Lost = c.last - id - uint64(len(all)) // ids have no gaps
	}
	for i := range all {
		if !f.takes(all[i].Kind) {
			continue
		}
		if limit > 0 && len(page.Events) == limit {
			page.Next = page.Events[limit-1].Cursor()
			break
		}
		page.Events = append(page.Events, all[i])
	}
	return page
}

// Stats are for the metrics.
type Stats struct {
	Published uint64
	Followers int
	Dropped   uint64 // followers that did not keep up
}

// Stats returns counts.
func (l *Log) Stats() Stats {
	l.lock.Lock()
	defer l.lock.Unlock()
	return Stats{l.last, len(l.followers), l.dropped}
}
