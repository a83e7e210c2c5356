// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"isthmus/controlplane/config"
	"isthmus/controlplane/events"
)

const unknownToken = "the token is not known"

// Guard stands before what is served by TCP.
type Guard struct {
	settings atomic.Pointer[config.API] // may change while requests come
	failures *failures
	logins   logins
	open     open
	log      *events.Log
	pause    time.Duration // before guessers are answered
}

// NewGuard makes a guard without tokens. log gets refused clients; may be nil.
func NewGuard(log *events.Log) *Guard {
	g := &Guard{failures: newFailures(), log: log, pause: time.Second}
	g.settings.Store(&config.API{})
	return g
}

// Configure takes a configuration over; logins by removed tokens end, with their pending requests.
func (g *Guard) Configure(s *config.API) {
	g.settings.Store(s)
	g.logins.keep(s.Tokens)
	g.open.keep(s.Tokens)
}

// Refused counts the requests that were turned away: bad tokens, foreign pages.
func (g *Guard) Refused() uint64 { return g.failures.all.Load() }

// Handler identifies the client, and passes the request on with that (From). Require, behind it, decides what a client
// without a role may do.
func (g *Guard) Handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		harden(w.Header())
		if why := g.foreign(r); why != "" {
			g.turnAway(w, r, http.StatusForbidden, why)
			return
		}
		id, why := g.identify(r)
		if why != "" {
			g.turnAway(w, r, http.StatusUnauthorized, why)
			return
		}
		ctx := With(r.Context(), id)
		if id.token != nil {
			var done func()
			ctx, done = g.open.enter(ctx, id.token)
			defer done()
			// Configure may have been since identify; behind enter it ends what has a token that is gone.
			if !slices.Contains(g.settings.Load().Tokens, *id.token) {
				g.turnAway(w, r, http.StatusUnauthorized, unknownToken)
				return
			}
		}
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}

// harden denies browsers what this program never needs: other hosts, frames, guesses at types. With the policy
// no-referrer they would call the origin of the page's own form null (Fetch Standard, Origin header), and foreign would
// refuse it.
func harden(h http.Header) {
	h.Set("Content-Security-Policy",
		"default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// foreign returns why a request may be another page's. A loopback address has a foreign name (DNS rebinding), the
// origin differs, or a change comes in a form that a page can send without a preflight (CSRF).
func (g *Guard) foreign(r *http.Request) string {
	local, loopback := localAddr(r)
	if loopback && !g.isUs(r.Host, local) {
		return "this address is not called " + quote(r.Host)
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
			return "requests of pages of " + quote(origin) + " are not taken"
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		if r.Method != http.MethodGet || r.Header.Get("Sec-Fetch-Mode") != "navigate" {
			return "requests of other sites' pages are not taken"
		}
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.Header.Get("Isthmus-Client") != "" {
		return ""
	}
	switch media, _, _ := strings.Cut(r.Header.Get("Content-Type"),
		";"); strings.ToLower(strings.TrimSpace(media)) {
	case "application/json", "application/yaml":
		return ""
	case "application/x-www-form-urlencoded":
		// A form that logs in needs the token itself, and comes from our own page.
		if r.URL.Path == LoginPath && r.Header.Get("Origin") != "" {
			return ""
		}
	}
	return "a change needs the type application/json or application/yaml, or a header Isthmus-Client"
}

func quote(s string) string {
	if len(s) > 100 {
		s = s[:100]
	}
	return `"` + strings.ToValidUTF8(s, "?") + `"`
}

// localAddr is the address that the client connected to.
func localAddr(r *http.Request) (netip.Addr, bool) {
	a, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return netip.Addr{}, false
	}
	addr := a.AddrPort().Addr().Unmap()
	return addr, addr.IsLoopback()
}

// isUs: a Host header can be a loopback address's.
func (g *Guard) isUs(host string, local netip.Addr) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.Trim(name, "[]")
	if a, err := netip.ParseAddr(name); err == nil {
		return a.Unmap() == local || a.Unmap().IsLoopback()
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	for _, h := range g.settings.Load().Hosts {
		if strings.EqualFold(name, h) {
			return true
		}
	}
	return false
}

// identify finds the client; why is given when what it showed does not let it in.
func (g *Guard) identify(r *http.Request) (_ Identity, why string) {
	s := g.settings.Load()
	who := &events.Who{Via: "tcp", Address: short(r.RemoteAddr)}
	if head := r.Header.Get("Authorization"); head != "" {
		scheme, token, _ := strings.Cut(head, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return Identity{}, "Authorization is not Bearer and a token"
		}
		t := find(s.Tokens, strings.TrimSpace(token))
		if t == nil {
			return Identity{}, unknownToken
		}
		who.Token = string(t.Name)
		return Identity{roleOf(t.Role), who, t}, ""
	}
	if c, err := r.Cookie(cookieName); err == nil {
		if l := g.logins.find(c.Value); l != nil && slices.Contains(s.Tokens, l.token) {
			who.Token = string(l.token.Name)
			return Identity{roleOf(l.token.Role), who, &l.token}, ""
		}
		// A cookie from before a restart is no guess: its client logs in again.
	}
	if _, loopback := localAddr(r); loopback {
		return Identity{Role: roleOf(s.Anonymous), Who: who}, ""
	}
	return Identity{Role: None, Who: who}, ""
}

func short(s string) string { return s[:min(len(s), 64)] }

// turnAway answers, counts and publishes. A frequent offender waits for the answer.
func (g *Guard) turnAway(w http.ResponseWriter, r *http.Request, status int, why string) {
	from := source(r.RemoteAddr)
	more, tell, often := g.failures.add(from, time.Now())
	if tell {
		g.log.Publish("access.refused", from.Addr().String(), "reason", why, "more", more)
	}
	if often {
		select {
		case <-time.After(g.pause):
		case <-r.Context().Done():
			return
		}
		w.Header().Set("Retry-After", "60")
		Refuse(w, http.StatusTooManyRequests, "too many refused requests from this address: "+why)
		return
	}
	Refuse(w, status, why)
}

// Refuse writes an answer with the reason.
func Refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]string{"error": why}) // the client is gone when this fails
}
