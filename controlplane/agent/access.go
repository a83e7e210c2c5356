// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"isthmus/controlplane/aaa"
	"isthmus/controlplane/access"
	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/config"
	"isthmus/controlplane/dhcp"
	"isthmus/controlplane/events"
	"isthmus/controlplane/lease"
	"isthmus/controlplane/pppoe"
	"isthmus/controlplane/session"
	"isthmus/controlplane/session/store"
	"isthmus/controlplane/subscriber"
)

// signIns is what subscribers who sign in take: the loop, and whom it asks.
type signIns struct {
	loop     *subscriber.Loop
	frames   *subscriber.Channel
	aaa      *aaa.AAA
	pools    *lease.Pools
	pppoe    *pppoe.Server
	dhcp     *dhcp.Server
	upstream upstreams            // to DHCP servers; the agent's goroutine alone
	records  []session.LineRecord // of the store, until the loop has them
	accounts *store.Accounts
}

// toldAtOnce are the events of a kind in a second; the next one says how many more there were.
const toldAtOnce = 20

// gated tells events of which outsiders can make many. Methods may be called from any goroutine.
type gated struct {
	events *events.Log
	log    *slog.Logger
	lock   sync.Mutex
	gates  map[string]*events.Gate
}

// bySubject are kinds of which each subject has a gate of its own. Their subjects are few: attributes by name, clients
// of the configuration.
var bySubject = map[string]events.Gate{"subscriber.left-out": {Most: 1, Window: time.Minute},
	"radius.change-refused": {Most: toldAtOnce, Window: time.Second}}

// logged are kinds that are lines of the log, too.
var logged = map[string]string{"radius.change-refused": "a request to change or end a session is refused",
	"subscriber.refused": "a subscriber is refused"}

func (g *gated) tell(kind, about string, args ...any) {
	key, gate := kind, events.Gate{Most: toldAtOnce, Window: time.Second}
	if own, ok := bySubject[kind]; ok {
		key, gate = kind+" "+about, own
	}
	g.lock.Lock()
	if g.gates[key] == nil {
		g.gates[key] = &gate
	}
	more, ok := g.gates[key].Open(time.Now())
	g.lock.Unlock()
	if !ok {
		return
	}
	args = append(args, "more", more)
	g.events.Publish(kind, about, args...)
	if line := logged[kind]; line != "" {
		g.log.Warn(line, append([]any{"about", about}, args...)...)
	}
}

// accountingEnd is how long we wait for accounting when we end; what is left is in the store.
const accountingEnd = 2 * time.Second

// openAccess makes what subscribers need to sign in, when the configuration has them.
func (a *Agent) openAccess() error {
	c := a.plan.SignIn
	if c == nil {
		return nil
	}
	s := &signIns{frames: subscriber.NewChannel(a.opt.DPSocket, a.log)}
	s.pools = lease.New(lease.Options{Now: time.Now, Event: func(e lease.Event) {
		a.events.Publish("pool.watermark", e.Pool, "instance", e.Instance, "level", e.Level, "rising", e.Rising,
			"used", e.Used, "size", e.Size)
	}})
	if err := s.pools.Configure(lease.FromConfig(c.Pools)); err != nil {
		return err
	}
	told := &gated{events: a.events, log: a.log, gates: map[string]*events.Gate{}}
	sessions := &lateSessions{}
	var err error
	if s.accounts, err = store.OpenAccounts(store.AccountsPath(a.mobile.store), a.log); err != nil {
		return err
	}
	a.mobile.access = s
	s.aaa, err = aaa.New(c, aaa.Options{Sessions: sessions, Store: s.accounts,
		Notify: told.tell,
		Log:    func(format string, args ...any) { a.log.Info(fmt.Sprintf(format, args...)) }})
	if err != nil {
		return err
	}
	s.loop = subscriber.New(subscriber.SettingsOf(c), subscriber.Options{Frames: s.frames,
		Sessions: a.mobile.manager,
		Auth:     s.aaa, Pools: s.pools, Measures: a.measures, Log: a.log,
		Notify: told.tell})
	sessions.loop.Store(s.loop)
	s.dhcp = dhcp.New(s.loop, dhcpConfig(c))
	s.pppoe = pppoe.New(s.loop, pppoeConfig(c), func(of access.Session, line access.Line, b access.Bearer,
		was access.BearerState) pppoe.Link6 {
		return s.dhcp.OverPPP(of, line, b, was)
	})
	s.loop.FrontEnds(s.pppoe, s.dhcp)
	if s.upstream, err = s.openUpstreams(c); err != nil {
		return err
	}
	s.send(s.upstream)
	s.records = a.mobile.manager.SetLines(s.loop)
	for _, r := range s.accounts.Records() {
		if err := s.aaa.Restore(r.Number, r.Data); err != nil { // it is counted
			a.log.Error("an accounting record of the store is dropped", "error", err)
			s.accounts.Forget(r.Number)
		}
	}
	return nil
}

// lateSessions is aaa.Sessions of a loop that is made later: the CoA server's sockets are open before.
type lateSessions struct {
	loop atomic.Pointer[subscriber.Loop]
}

func (s *lateSessions) Disconnect(sel *aaa.Selector, done aaa.Answer) {
	if loop := s.loop.Load(); loop != nil {
		loop.Disconnect(sel, done)
		return
	}
	done(aaa.NotPossible, "the gateway is starting")
}

func (s *lateSessions) Change(sel *aaa.Selector, c *aaa.Change, done aaa.Answer) {
	if loop := s.loop.Load(); loop != nil {
		loop.Change(sel, c, done)
		return
	}
	done(aaa.NotPossible, "the gateway is starting")
}

// run serves until ctx ends.
func (s *signIns) run(ctx context.Context, m *mobile) {
	s.loop.Restore(s.records)
	s.records = nil
	s.listen(ctx, m, upstreams{})
	m.spawn(func() {
		s.loop.Run(ctx)
		late, cancel := context.WithTimeout(context.Background(), accountingEnd)
		defer cancel()
		s.aaa.Close(late)
		s.accounts.Close() // behind the last answer
	})
}

// configureAccess takes another configuration over.
func (a *Agent) configureAccess(plan *plan.Plan, next *preparedAccess) {
	if next == nil {
		return
	}
	next.aaa.Take()
	s, c := a.mobile.access, plan.SignIn
	former := s.upstream
	s.upstream = next.upstream
	if a.life != nil {
		s.listen(a.life, a.mobile, former)
	}
	former.closeBut(next.upstream) // what the loop sends by them meanwhile is lost, and comes again
	set, dial, leased := subscriber.SettingsOf(c), pppoeConfig(c), dhcpConfig(c)
	s.loop.Post(func() {
		if err := s.pools.Configure(lease.FromConfig(c.Pools)); err != nil { // prepareAccess checked them
			a.log.Error("pools go on as they were", "error", err)
		}
		s.send(next.upstream)
		s.pppoe.Configure(dial)
		s.dhcp.Configure(leased)
		s.loop.Configure(set)
	})
}

var methods = map[string]access.Method{"none": access.None, "pap": access.PAP, "chap": access.CHAP,
	"mschapv2": access.MSCHAPv2}

func pppoeConfig(c *config.Config) pppoe.Config {
	p := &c.Access.PPPoE
	made := pppoe.DefaultConfig()
	made.Name, made.PPP.Name, made.Services = p.ACName, p.ACName, p.Services
	made.KeepAlive = time.Duration(p.KeepAlive.Interval) * time.Second
	made.Unanswered = p.KeepAlive.Count
	made.PerMAC = int(p.PerMAC)
	made.OffersPerLine, made.OffersPerPort = int(p.PerLine), int(p.PerPort)
	l := &p.Limits
	made.Sessions, made.PerPort, made.PerLine = int(l.Sessions), int(l.PerPort), int(l.PerLine)
	made.HalfOpen, made.HalfOpenPerLine = int(l.HalfOpen), int(l.HalfLine)
	if len(p.Auth) > 0 {
		made.PPP.Methods = nil
		for _, word := range p.Auth {
			if word != "none" {
				made.PPP.Methods = append(made.PPP.Methods, methods[word])
			}
		}
	}
	made.MaxPayload = map[string]uint16{}
	for i := range c.Ports {
		if port := &c.Ports[i]; port.Role == "access" {
			// Its MTU is that of the IP packet with PPPoE's 8 bytes (RFC 4638).
			made.MaxPayload[string(port.Name)] = uint16(min(port.MTU-8, uint32(p.MRU)))
		}
	}
	set := subscriber.SettingsOf(c)
	made.PortOf = func(l *access.Line) (port pppoe.Port) {
		if p := set.Port(l); p != nil {
			port = pppoe.Port{Relayed: len(c.Access.DHCP.Servers6) > 0 && p.DHCP != "server",
				Trusted: p.Trusted, Moves: p.Moves()}
		}
		return port
	}
	return made
}

func dhcpConfig(c *config.Config) dhcp.Config {
	machine, _ := os.ReadFile("/etc/machine-id") // without one, all such machines are one
	made := dhcp.FromConfig(&c.Access, string(machine))
	packet := map[string]bool{}
	for i := range c.Ports {
		packet[string(c.Ports[i].Name)] = c.Ports[i].SignIn.Packet
	}
	set := subscriber.SettingsOf(c)
	four, six := dhcp.Servers(&c.Access.DHCP)
	made.PortOf = func(l *access.Line) (dhcp.Port, bool) {
		p := set.Port(l)
		if p == nil {
			return dhcp.Port{}, false
		}
		port := dhcp.Port{V4: p.IPoE, V6: p.IPoE, OneToOne: p.VLANs == "1:1", Trusted: p.Trusted,
			Moves: p.Moves(), FirstPacket: packet[l.Port], Replace: c.Access.Duplicates == "replace"}
		if p.DHCP != "server" {
			port.Upstream, port.Upstream6, port.Proxy = four, six, p.DHCP == "proxy"
		}
		return port, true
	}
	return made
}

var errNobodySignsIn = errors.New("nobody signs in here: the configuration has no access.ports")

func (a *Agent) handleClear(w http.ResponseWriter, r *http.Request) {
	who, word := r.URL.Query().Get("subscriber"), cmp.Or(r.URL.Query().Get("cause"), "admin-reset")
	cause, known := subscriber.CauseOf(word)
	s, out := a.signedIn(), v1.Cleared{}
	var err error
	switch {
	case s == nil:
		err = errNobodySignsIn
	case who == "":
		err = errors.New("subscriber: which one?")
	case !known:
		err = fmt.Errorf("cause: %q is none of %s", word, strings.Join(subscriber.Causes(), ", "))
	default:
		var ended int // the loop may write these when nobody waits any more
		var several error
		if err = s.loop.Ask(r.Context(), func() { ended, several = s.loop.Clear(who, cause) }); err == nil {
			out.Ended, err = ended, several
		}
		if err == nil && out.Ended == 0 {
			err = fmt.Errorf("no subscriber who signed in is %q", who)
		}
	}
	a.by(r.Context(), "subscriber.cleared", who, err, "cause", word, "ended", out.Ended)
	answer(w, out, err)
}

// drainWait bounds what a drain waits for: the ends of sessions, then servers that take accounting.
const drainWait = time.Minute

func (a *Agent) handleDrain(w http.ResponseWriter, r *http.Request) {
	s, out := a.signedIn(), v1.Drained{}
	err := errNobodySignsIn
	if s != nil {
		var ended int
		if err = s.loop.Ask(r.Context(), func() { ended = s.loop.Drain() }); err == nil {
			out.Ended = ended
			ctx, cancel := context.WithTimeout(r.Context(), drainWait)
			defer cancel()
			select {
			case <-s.loop.Drained():
			case <-ctx.Done():
			}
			if out.Accounting = s.aaa.Settled(ctx); out.Accounting > 0 {
				out.File = store.AccountsPath(a.mobile.store)
			}
		}
	}
	a.by(r.Context(), "subscriber.drained", "", err, "ended", out.Ended, "accounting", out.Accounting)
	answer(w, out, err)
}
