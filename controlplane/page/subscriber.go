// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"isthmus/controlplane/view"
)

const (
	maxWatches = 16
	maxObject  = 32               // octets of a session's name, with its end (API_NAME)
	maxName    = 254              // of a query, with its end: a user name of RADIUS
	looking    = 10 * time.Second // after the last question
	maxRules   = 1024             // of a session that are shown
	maxHomes   = 16               // that one name may mean
)

var badName = fmt.Sprintf("the name of a session or subscriber has 1 to %d octets", maxName-1)

// look is what a subscriber was at one moment.
type look struct {
	Session *view.Session     `json:"session"` // nil: none of this name now
	Rules   []view.Rule       `json:"rules"`
	URRs    []view.URR        `json:"urrs"`
	Homes   []view.Subscriber `json:"homes"` // of access lines, the first with its attempts to sign in
	Error   string            `json:"error"` // why there is no session
}

// watch is a subscriber on view: sampled each second meanwhile, kept ten minutes after.
type watch struct {
	look
	asked   time.Time
	dear    time.Time // until then homes are as they were: asking for them may mean to look at all sessions
	rates   rates
	history *history // of the groups bps and pps, uplink and downlink
}

// watches are the subscribers on view.
type watches struct {
	src  Source
	lock sync.Mutex
	of   map[string]*watch
}

// get returns the watch of a name, or a new one if there is room. The caller holds the lock.
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

// drop forgets the subscriber not requested for longest; false if all are on view.
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

// sample samples every subscriber on view.
func (s *watches) sample(ctx context.Context, now time.Time) {
	s.lock.Lock()
	due := map[string]watch{}
	for name, w := range s.of {
		switch age := now.Sub(w.asked); {
		case age < looking:
			due[name] = *w
		case age > samples*period:
			delete(s.of, name)
		}
	}
	s.lock.Unlock()
	for name, before := range due {
		l, dear := s.see(ctx, name, &before)
		s.lock.Lock()
		if w := s.of[name]; w != nil {
			w.dear = dear
			w.take(now, l)
		}
		s.lock.Unlock()
	}
}

// see finds a session, or a subscriber of an access line, by name.
func (s *watches) see(ctx context.Context, name string, before *watch) (l look, dear time.Time) {
	err := s.session(ctx, name, &l)
	if l.Session != nil && l.Session.Encap == "none" { // of a tunnel: no sign-in
		return l, before.dear
	}
	l.Homes, dear = before.Homes, before.dear
	if begun := time.Now(); begun.After(dear) {
		homes, failed := fetch[[]view.Subscriber](ctx, s.src, "subscriber", name, maxHomes)
		if failed == nil {
			l.Homes = homes
		}
		end := time.Now()
		dear = end.Add(min(rest*end.Sub(begun), time.Minute))
	}
	if err == nil && l.Session == nil && len(l.Homes) > 0 {
		err = s.session(ctx, l.Homes[0].Object, &l)
	}
	switch {
	case err != nil:
		l.Error = err.Error()
	case l.Session != nil:
	case len(l.Homes) == 0:
		l.Error = "there is no session of this name"
	case l.Homes[0].State == "starting":
		l.Error = "is starting: the session is not in the data plane yet"
	default:
		l.Error = "is not on line"
	}
	return l, dear
}

// session fills in what the data plane has of a session; no more than there is.
func (s *watches) session(ctx context.Context, name string, l *look) error {
	if name == "" || len(name) >= maxObject {
		return nil
	}
	list, err := fetch[[]view.Session](ctx, s.src, "session", name, 1)
	if err != nil || len(list) == 0 {
		return err
	}
	l.Session = &list[0]
	if l.Rules, err = fetch[[]view.Rule](ctx, s.src, "rule", name, maxRules); err != nil {
		return err
	}
	l.URRs, err = fetch[[]view.URR](ctx, s.src, "urr", name, maxRules)
	return err
}

// take keeps a look.
func (w *watch) take(now time.Time, l look) {
	w.look = l
	var list []figure
	w.rates.begin(now)
	if s := l.Session; s != nil && l.Error == "" {
		list = []figure{
			{"bps", "uplink", 8 * w.rates.rate("ub", s.UplinkBytes), true},
			{"bps", "downlink", 8 * w.rates.rate("db", s.DownlinkBytes), true},
			{"pps", "uplink", w.rates.rate("up", s.UplinkPackets), true},
			{"pps", "downlink", w.rates.rate("dp", s.DownlinkPackets), true},
			{"drop", "dropped uplink", w.rates.rate("ud", s.UplinkDropped), true},
			{"drop", "dropped downlink", w.rates.rate("dd", s.DownlinkDropped), true},
		}
	}
	w.history.add(now, list)
}

// subscriberAnswer is what a subscriber's page shows. History is as history.encode writes it.
type subscriberAnswer struct {
	look
	History json.RawMessage `json:"history"`
}

func (p *Page) subscriber(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("name")
	if name == "" || len(name) >= maxName {
		refuse(w, http.StatusBadRequest, badName)
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
	a := subscriberAnswer{watch.look, watch.history.encode(nil)} // a look is not changed any more
	p.watches.lock.Unlock()
	answer(w, a)
}
