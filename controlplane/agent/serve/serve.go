// SPDX-License-Identifier: Apache-2.0

// Package serve answers the clients of the API: by the Unix socket, by TCP, the live page, scrapes. It changes nothing
// by itself: it asks who owns what is to change, and reads what they publish.
package serve

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/agent/reconcile"
	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/auth"
	"isthmus/controlplane/events"
	"isthmus/controlplane/httpd"
	"isthmus/controlplane/kernel"
	"isthmus/controlplane/metrics"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/subscriber"
	"isthmus/controlplane/view"
)

// Owner is who owns the plan and the intent's transactions.
type Owner interface {
	Apply(ctx context.Context, p *plan.Plan) (v1.Result, error)
	Reload(ctx context.Context) (v1.Result, error)
	// Try is Apply up to the data plane's commit, and changes nothing.
	Try(ctx context.Context, p *plan.Plan) (v1.Result, error)
	// Do runs fn between two transactions.
	Do(ctx context.Context, fn func(ctx context.Context) (v1.Result, error)) (v1.Result, error)
	// Drain publishes what is drained, and withdraws the announcements or puts them back.
	Drain(ctx context.Context, d v1.Drain) error
}

// Kernel knows the kernel's routes.
type Kernel interface {
	// Ignored are the kernel's routes that are not followed, at most so many of each kind.
	Ignored(ctx context.Context, most int) ([]kernel.Ignored, error)
}

// Sessions are those that are no configuration's.
type Sessions interface {
	N4() *n4.Snapshot
	Owner(seid uint64) (view.Owner, bool)
	Collectors() []view.Collector
	// Release asks a CP function to release its association.
	Release(ctx context.Context, id string, period time.Duration) error
	// Figures adds theirs; false: there are no such sessions.
	Figures(ctx context.Context, to *metrics.Snapshot) bool
}

// SignIns are the subscribers who sign in.
type SignIns interface {
	Rows(ctx context.Context, key string) ([]subscriber.Row, []subscriber.Attempt, error)
	view.SignIns
	// Clear ends the sessions of who is named, for a cause by its word.
	Clear(ctx context.Context, who, cause string) (v1.Cleared, error)
}

// Options are whom the API asks.
type Options struct {
	State        *reconcile.Published
	Owner        Owner
	Kernel       Kernel // of Owner
	Sessions     Sessions
	SignIns      SignIns
	Associations Associations // of Sessions
	Subscribers  Subscribers  // of SignIns
	Events       *events.Log
	Guard        *auth.Guard
	DPSocket     string // where a trace has a connection of its own
	DPBinary     string // which compiles a trace's filter
	Kept         func() (v1.Kept, error)
	Log          *slog.Logger
}

// API answers clients. Methods may be called from any goroutine.
type API struct {
	Options
	Tracer             *Tracer
	Tables             view.Control  // what of the tables we know and the data plane does not
	Upload             int64         // bounds a body
	shows, remoteShows *httpd.Places // of what reads tables for clients of the Unix socket, of TCP
}

// New makes an API.
func New(opt Options) *API {
	s := subscribers{opt.SignIns, opt.State}
	return &API{Options: opt, Upload: maxUpload,
		Tables: view.Control{Mobile: mobile{opt.Sessions, opt.State}, Access: s, Kernel: routes{opt.Kernel}},
		shows:  httpd.NewPlaces(maxShows), remoteShows: httpd.NewPlaces(maxRemoteShows),
		Tracer: &Tracer{state: opt.State, events: opt.Events, subscribers: s, socket: opt.DPSocket,
			binary: opt.DPBinary, places: httpd.NewPlaces(maxTraces)}}
}

// Handler serves the API to clients of the Unix socket, who may do everything (docs/reference/api.md lists the paths).
func (a *API) Handler() http.Handler { return auth.Local(a.mux()) }

// TCP serves the API, and the page where there is one, to clients that show who they are.
func (a *API) TCP(page http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/v1/", a.mux())
	mux.HandleFunc("POST "+auth.LoginPath, a.Guard.Login)
	mux.HandleFunc("POST "+auth.LogoutPath, a.Guard.Logout)
	if page == nil {
		mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
			auth.Refuse(w, http.StatusNotFound,
				"there is no page here; the API is below /v1/, described in /v1/openapi.json")
		})
	} else {
		mux.Handle("/", openFiles(page))
	}
	return a.Guard.Handler(mux)
}

// openFiles lets everybody have the page's files, which the binary holds and which say nothing of this gateway; what
// else is below the page needs the role read.
func openFiles(page http.Handler) http.Handler {
	closed := auth.Require(auth.Read, page)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file := r.URL.Path == "/" || r.URL.Path == "/login" || strings.HasPrefix(r.URL.Path, "/assets/")
		if file && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			page.ServeHTTP(w, r)
			return
		}
		closed.ServeHTTP(w, r)
	})
}
