// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"sync"
	"time"

	"isthmus/controlplane/view"
)

const (
	maxRows   = 131072 // of a table that are looked at
	maxPage   = 500    // rows of one answer
	maxSearch = 64     // characters
	rest      = 40     // multiple of the fetch time before a table is fetched again
	keepRows  = time.Minute
)

// shown are the tables that browsers may ask for, with the least time between two fetches.
var shown = map[string]time.Duration{
	"session": 10 * time.Second, "subscriber": 10 * time.Second,
	"association": time.Second, "path": 2 * time.Second, "neighbour": 2 * time.Second,
	"route": 10 * time.Second, "instance": 2 * time.Second,
}

// subscriber is a session with its rates between the last two looks at all sessions.
type subscriber struct {
	*view.Session
	UplinkBPS   float64 `json:"uplink_bps"`
	DownlinkBPS float64 `json:"downlink_bps"`
	BPS         float64 `json:"bps"`
	PPS         float64 `json:"pps"`
}

// rows are the rows of a table at one moment. They are not changed any more.
type rows struct {
	list reflect.Value // a slice of structs
	at   time.Time
	took time.Duration
}

// table is one table while it is on view. lock is held while it is fetched, so that concurrent requests cause one
// fetch.
type table struct {
	name  string
	least time.Duration

	lock   sync.Mutex
	last   *rows
	asked  time.Time
	counts map[string]traffic // of sessions, when last was fetched
	rates  bool               // sessions were looked at twice
}

type traffic struct{ up, down, packets uint64 }

// tables fetches whole tables slowly and lets clients search in what it has.
type tables struct {
	src   Source
	of    map[string]*table
	slots chan struct{} // requests that are carried out at a time
}

func newTables(src Source) tables {
	t := tables{src, map[string]*table{}, make(chan struct{}, 4)}
	for name, least := range shown {
		t.of[name] = &table{name: name, least: least}
	}
	return t
}

// forget frees tables not requested for a minute.
func (t *tables) forget(now time.Time) {
	for _, table := range t.of {
		if !table.lock.TryLock() {
			continue // it is being asked for
		}
		if table.last != nil && now.Sub(table.asked) > keepRows {
			table.last, table.counts, table.rates = nil, nil, false
		}
		table.lock.Unlock()
	}
}

// every is how old rows may become.
func (t *table) every(r *rows) time.Duration {
	least := t.least
	if t.name == "session" && !t.rates {
		least = 2 * time.Second // the first rates come soon
	}
	return max(least, rest*r.took)
}

// get returns rows that are recent enough, and after how long there are newer ones.
func (t *table) get(ctx context.Context, src Source) (*rows, time.Duration, error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	now := time.Now()
	t.asked = now
	if t.last != nil && now.Sub(t.last.at) < t.every(t.last) {
		return t.last, t.every(t.last), nil
	}
	v, err := src.Table(ctx, t.name, "", maxRows)
	if err != nil {
		return nil, 0, err
	}
	if sessions, ok := v.([]view.Session); ok {
		v = t.subscribers(sessions, now)
	}
	list := reflect.ValueOf(v)
	if list.Kind() != reflect.Slice {
		return nil, 0, fmt.Errorf("%s is no table of this gateway", t.name)
	}
	t.last = &rows{list, now, time.Since(now)}
	return t.last, t.every(t.last), nil
}

// subscribers adds rates since the look before.
func (t *table) subscribers(sessions []view.Session, now time.Time) []subscriber {
	list := make([]subscriber, len(sessions))
	counts := make(map[string]traffic, len(sessions))
	var seconds float64
	if t.last != nil {
		seconds = now.Sub(t.last.at).Seconds()
	}
	rate := func(count, before uint64) float64 {
		if count < before || seconds <= 0 {
			return 0
		}
		return float64(count-before) / seconds
	}
	for i := range sessions {
		s := &sessions[i]
		c := traffic{s.UplinkBytes, s.DownlinkBytes, s.UplinkPackets + s.DownlinkPackets}
		counts[s.Name] = c
		list[i].Session = s
		if before, ok := t.counts[s.Name]; ok {
			list[i].UplinkBPS, list[i].DownlinkBPS = 8*rate(c.up, before.up), 8*rate(c.down, before.down)
			list[i].BPS = list[i].UplinkBPS + list[i].DownlinkBPS
			list[i].PPS = rate(c.packets, before.packets)
		}
	}
	t.counts, t.rates = counts, t.last != nil
	return list
}

// tableAnswer is a part of a table.
type tableAnswer struct {
	Rows    []any   `json:"rows"`
	Total   int     `json:"total"`   // rows of the table that were looked at
	Matched int     `json:"matched"` // of those that the search found
	Offset  int     `json:"offset"`
	Cut     bool    `json:"cut"` // there are more rows than are looked at
	At      int64   `json:"at"`  // milliseconds since 1970
	Every   float64 `json:"every_s"`
	Rates   bool    `json:"rates"` // of sessions: there were two looks
}

func (p *Page) table(w http.ResponseWriter, r *http.Request) {
	t := p.tables.of[r.PathValue("name")]
	if t == nil {
		refuse(w, http.StatusNotFound, "no such table")
		return
	}
	query := r.URL.Query()
	offset, errOffset := strconv.ParseUint("0"+query.Get("offset"), 10, 31)
	limit, errLimit := strconv.ParseUint("0"+query.Get("limit"), 10, 31)
	search := query.Get("q")
	if errOffset != nil || errLimit != nil || len(search) > maxSearch {
		refuse(w, http.StatusBadRequest,
			fmt.Sprintf("offset and limit are numbers, a search has at most %d octets", maxSearch))
		return
	}
	select {
	case p.tables.slots <- struct{}{}:
		defer func() { <-p.tables.slots }()
	default:
		refuse(w, http.StatusServiceUnavailable, "too many tables are asked for at once; ask again")
		return
	}
	inTime(w)
	all, every, err := t.get(r.Context(), p.src)
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	columns := columnsOf(all.list.Type().Elem())
	found := columns.find(all.list, search)
	if err := columns.sort(all.list, found, query.Get("sort")); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	a := tableAnswer{Rows: []any{}, Total: all.list.Len(), Matched: len(found), Cut: all.list.Len() == maxRows,
		At: all.at.UnixMilli(), Every: every.Seconds(), Rates: t.name == "session" && t.hasRates()}
	a.Offset = min(int(offset), max(len(found)-1, 0))
	if limit == 0 {
		limit = 50
	}
	for _, i := range found[a.Offset:min(len(found), a.Offset+int(min(limit, maxPage)))] {
		a.Rows = append(a.Rows, all.list.Index(i).Interface())
	}
	answer(w, a)
}

func (t *table) hasRates() bool {
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.rates
}
