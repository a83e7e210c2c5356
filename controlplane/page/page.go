// SPDX-License-Identifier: Apache-2.0

// Package page is the live page: it samples the gateway once a second, keeps ten minutes, and serves them with the
// tables of `isthmus show`. It changes nothing; traces, which leave the fast path, need a role of their own. All memory
// that a client can use is bounded.
package page

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"isthmus/controlplane/auth"
	"isthmus/controlplane/httpd"
	"isthmus/controlplane/measure"
)

// Source is the gateway that is looked at. Its methods are called from several goroutines.
type Source interface {
	// Table returns the rows of `isthmus show NAME`, of package view. An error is the reason for their absence.
	Table(ctx context.Context, name, key string, limit uint32) (any, error)
	Status() Status
}

// Status is the head of the page.
type Status struct {
	Host      string    `json:"host"`
	Version   string    `json:"version"`
	DPVersion string    `json:"dp_version"`
	DataPlane string    `json:"data_plane"` // ready, away or refused
	Error     string    `json:"error"`      // of the data plane, in words
	Started   time.Time `json:"started"`    // of the control plane
	Objects   int       `json:"objects"`    // of the configuration
}

// Options are limits and what other parts of the program offer. Zero values are the defaults.
type Options struct {
	Log     *slog.Logger
	Streams int // pages open at a time; 0: 32
	// Trace gives the packets of a session as they come, each as text of one or more lines, until no more come, ctx
	// ends or give fails; nil: no traces.
	Trace func(ctx context.Context, session string, give func(text string) error) error
	// SignIns are the durations of sign-ins so far, by phase; nil: no sign-in.
	SignIns func() map[string]measure.Timing
}

const (
	period        = time.Second
	sampleTimeout = 5 * time.Second
)

// Page is one gateway's page. lock guards the fields behind it.
type Page struct {
	src     Source
	opt     Options
	log     *slog.Logger
	assets  *assets
	tables  tables
	watches watches
	sampler sampler // of Run

	lock    sync.Mutex
	history *history
	hello   []byte // of the message that opens a stream, what all clients share; made at most once a sample
	helloAt uint64
	status  Status
	hub     hub
}

// New makes a page; Run fills it.
func New(src Source, opt Options) *Page {
	opt.Streams = cmp.Or(opt.Streams, 32)
	p := &Page{src: src, opt: opt, log: opt.Log, assets: loadAssets(), history: newHistory(),
		sampler: sampler{src: src, signIns: opt.SignIns},
		tables:  newTables(src), watches: watches{src: src, of: map[string]*watch{}}}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	p.hub.places = httpd.NewPlaces(opt.Streams)
	p.status = src.Status()
	return p
}

// Run samples until ctx ends.
func (p *Page) Run(ctx context.Context) error {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			p.step(ctx, now)
		case <-ctx.Done():
			p.lock.Lock()
			p.hub.closeAll("the gateway's control plane stops")
			p.lock.Unlock()
			return nil
		}
	}
}

// step takes one sample and sends it to the clients.
func (p *Page) step(ctx context.Context, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	figures, err := p.sampler.sample(ctx, now)
	if err != nil {
		p.log.Debug("no figures for the page", "error", err)
	}
	p.watches.sample(ctx, now)
	p.tables.forget(now)
	status := p.src.Status()

	p.lock.Lock()
	defer p.lock.Unlock()
	c := p.history.add(now, figures)
	if status != p.status {
		p.status = status
		p.hub.send(event("status", p.statusJSON()))
	}
	if len(p.hub.clients) > 0 {
		p.hub.send(event("tick", p.history.encodeChange(nil, &c)))
	}
}

func (p *Page) statusJSON() []byte {
	b, err := json.Marshal(p.status)
	if err != nil {
		return []byte("{}")
	}
	return b
}

// Handler serves the page at / and what it is made of below /page/.
func (p *Page) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.assets.file("page.html"))
	mux.HandleFunc("GET /login", p.assets.file("login.html"))
	mux.HandleFunc("GET /assets/", p.assets.serve)
	mux.HandleFunc("GET /page/stream", p.stream)
	mux.HandleFunc("GET /page/table/{name}", p.table)
	mux.HandleFunc("GET /page/subscriber", p.subscriber)
	mux.HandleFunc("GET /page/report.html", p.report)
	if p.opt.Trace != nil {
		mux.Handle("GET /page/trace", auth.Require(traceRole, http.HandlerFunc(p.trace)))
	}
	return secured(mux)
}

// secured restricts browsers: nothing from other servers, no script outside our files, no frame.
func secured(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Content-Security-Policy",
			"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "+
				"connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Referrer-Policy", "same-origin")
		head.Set("Cross-Origin-Opener-Policy", "same-origin")
		head.Set("Cross-Origin-Resource-Policy", "same-origin")
		head.Set("Cache-Control", "no-cache")
		h.ServeHTTP(w, r)
	})
}

// inTime disconnects a client with one of few places that does not read.
func inTime(w http.ResponseWriter) {
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout)) // a recorder of tests has none
}

// refuse answers with words.
func refuse(w http.ResponseWriter, code int, why string) {
	if code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	http.Error(w, why, code)
}

// answer sends JSON.
func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v) // the client is gone when this fails
}
