// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"isthmus/controlplane/view"
)

const (
	maxWatches = 16
	maxName    = 32               // octets of a name, with its end (API_NAME)
	looking    = 10 * time.Second // after the last question
	maxRules   = 1024             // of a session that are shown
)

// watch is a subscriber that somebody looks at: sampled each second meanwhile, kept ten minutes after.
type watch struct {
	asked   time.Time
	session *view.Session // nil: there is none of this name now
	rules   []view.Rule
	urrs    []view.URR
	err     string // why the last look brought nothing
	rates   rates
	history *history // of the groups bps and pps, uplink and downlink
}

// watches are the subscribers that somebody looks at.
type watches struct {
	src  Source
	lock sync.Mutex
	of   map[string]*watch
}

// get returns the watch of a name, a new one when there is none and room. The caller holds the lock.
func (s *watches) get(name string, now time.Time) *watch {
	w := s.of[name]
	if w == nil {
		if len(s.of) >= maxWatches && !s.drop(now) {
			return nil
		}
		w = &watch{history: newHistory()}
		s.of[name] = w
	}
	w.asked = now
	return w
}

// drop forgets the subscriber that nobody asked for the longest, unless somebody looks at each.
func (s *watches) drop(now time.Time) bool {
	oldest := ""
	for name, w := range s.of {
		if now.Sub(w.asked) > looking && (oldest == "" || w.asked.Before(s.of[oldest].asked)) {
			oldest = name
		}
	}
	delete(s.of, oldest)
	return oldest != ""
}

// sample looks at every subscriber that somebody looks at.
func (s *watches) sample(ctx context.Context, now time.Time) {
	s.lock.Lock()
	var names []string
	for name, w := range s.of {
		switch age := now.Sub(w.asked); {
		case age < looking:
			names = append(names, name)
		case age > samples*period:
			delete(s.of, name)
		}
	}
	s.lock.Unlock()
	for _, name := range names {
		session, rules, urrs, err := s.fetch(ctx, name)
		s.lock.Lock()
		if w := s.of[name]; w != nil {
			w.take(now, session, rules, urrs, err)
		}
		s.lock.Unlock()
	}
}

func (s *watches) fetch(ctx context.Context, name string) (*view.Session, []view.Rule, []view.URR, error) {
	list, err := fetch[[]view.Session](ctx, s.src, "session", name, 1)
	if err != nil || len(list) == 0 {
		return nil, nil, nil, err
	}
	rules, err := fetch[[]view.Rule](ctx, s.src, "rule", name, maxRules)
	if err != nil {
		return &list[0], nil, nil, err
	}
	urrs, err := fetch[[]view.URR](ctx, s.src, "urr", name, maxRules)
	return &list[0], rules, urrs, err
}

// take keeps a look.
func (w *watch) take(now time.Time, session *view.Session, rules []view.Rule, urrs []view.URR, err error) {
	w.session, w.rules, w.urrs, w.err = session, rules, urrs, ""
	var list []figure
	w.rates.begin(now)
	switch {
	case err != nil:
		w.err = err.Error()
	case session == nil:
		w.err = "there is no session of this name"
	default:
		s := session
		list = []figure{
			{"bps", "uplink", 8 * w.rates.rate("ub", s.UplinkBytes), true},
			{"bps", "downlink", 8 * w.rates.rate("db", s.DownlinkBytes), true},
			{"pps", "uplink", w.rates.rate("up", s.UplinkPackets), true},
			{"pps", "downlink", w.rates.rate("dp", s.DownlinkPackets), true},
			{"drop", "policed uplink", w.rates.rate("ud", s.UplinkDropped), true},
			{"drop", "policed downlink", w.rates.rate("dd", s.DownlinkDropped), true},
		}
	}
	w.history.add(now, list)
}

// subscriberAnswer is what a subscriber's page shows. History is as history.encode writes it.
type subscriberAnswer struct {
	Session *view.Session   `json:"session"`
	Rules   []view.Rule     `json:"rules"`
	URRs    []view.URR      `json:"urrs"`
	Error   string          `json:"error"`
	History json.RawMessage `json:"history"`
}

func (p *Page) subscriber(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("name")
	if name == "" || len(name) >= maxName {
		refuse(w, http.StatusBadRequest, fmt.Sprintf("the name of a session has 1 to %d octets", maxName-1))
		return
	}
	now := time.Now()
	p.watches.lock.Lock()
	watch := p.watches.get(name, now)
	if watch == nil {
		p.watches.lock.Unlock()
		refuse(w, http.StatusServiceUnavailable,
			fmt.Sprintf("%d subscribers are being looked at, which is the limit", maxWatches))
		return
	}
	a := subscriberAnswer{watch.session, slices.Clone(watch.rules), slices.Clone(watch.urrs), watch.err,
		watch.history.encode(nil)}
	p.watches.lock.Unlock()
	answer(w, a)
}
