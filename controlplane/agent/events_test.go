// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"isthmus/api"
	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/auth"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/events"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

// Returns an agent's events of a kind.
func told(t *testing.T, a *Agent, kind string) []events.Event {
	t.Helper()
	page, err := a.events.Read("", 0, events.Filter{Kinds: []string{kind}})
	testkit.Must(t, err)
	for i := range page.Events {
		declared(t, &page.Events[i])
	}
	return page.Events
}

// declared: an event has the fields of its kind's row.
func declared(t *testing.T, e *events.Event) {
	t.Helper()
	at := slices.IndexFunc(events.Kinds, func(k events.Kind) bool { return k.Name == e.Kind })
	testkit.FatalIf(t, at < 0, "no kind %s", e.Kind)
	for name := range e.Fields {
		testkit.ErrorIf(t, !slices.Contains(strings.Fields(events.Kinds[at].Fields), name),
			"%s has a field %s", e.Kind, name)
	}
}

// until waits for events of kinds.
func until(t *testing.T, a *Agent, kinds ...string) {
	t.Helper()
	for _, kind := range kinds {
		testkit.Until(t, kind, func() bool { return len(told(t, a, kind)) > 0 })
	}
}

func named(b []byte, name string) { copy(b, name) }

// watched runs an agent that looks for events all the time.
func watched(t *testing.T, s *dptest.Server, plan *plan.Plan, opt Options) *Agent {
	a := made(t, opt, plan)
	a.watcher.period = 5 * time.Millisecond
	running(t, a)
	testkit.Until(t, "ready", ready(a))
	return a
}

func TestEventsOfTheDataPlane(t *testing.T) {
	s := dptest.Start(t)
	port := api.PortRow{Up: 1}
	named(port.Name[:], "core")
	drop := api.DropRow{}
	named(drop.Name[:], "no-route")
	path := api.PathRow{Alive: 1, Recovery: 3, EchoReceived: 5, Peer: api.FromAddr(netip.MustParseAddr("10.1.0.2"))}
	total := api.TotalRow{Buffers: 1000, BuffersFree: 50}
	set := func() {
		s.SetTable(api.TablePort, api.Body(&port))
		s.SetTable(api.TableDrop, api.Body(&drop))
		s.SetTable(api.TablePath, api.Body(&path))
		s.SetTable(api.TableTotal, api.Body(&total))
	}
	set()
	plan, err := plan.Make("small.yaml", []byte(small))
	testkit.Must(t, err)
	a := watched(t, s, plan, outside(s, t.TempDir()))
	until(t, a, "control.started", "dataplane.up", "port.up", "limit.near")
	near := told(t, a, "limit.near")[0]
	testkit.ErrorIf(t, near.Subject != "buffers" || near.Fields["used"] != uint64(950), "%+v", near)
	port.Up, drop.Packets, path.Alive, total.BuffersFree = 0, 1_000_000, 0, 900
	set()
	until(t, a, "port.down", "drop.rising", "drop.settled", "peer.down", "limit.released")
	port.Gone, path.Alive = 1, 1
	set()
	until(t, a, "port.gone", "peer.up")
	path.Recovery = 4
	set()
	until(t, a, "peer.restarted")
	s.Kill()
	until(t, a, "dataplane.down")
	s.Refuse("no", func(dptest.ID, []byte) bool { return true })
	s.SetHeld(nil)
	testkit.Must(t, s.Listen())
	until(t, a, "dataplane.refused")
}

// The author of a change is known, and is in the file before the answer.
func TestEventsOfChanges(t *testing.T) {
	s, dir := dptest.Start(t), t.TempDir()
	plan, err := plan.Make("small.yaml", []byte(small))
	testkit.Must(t, err)
	opt := outside(s, dir)
	opt.State = dir
	a := watched(t, s, plan, opt)
	as := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			who := &events.Who{Via: "tcp", Token: name}
			a.api.Handler().ServeHTTP(w,
				r.WithContext(auth.With(r.Context(), auth.Identity{Role: auth.Operate, Who: who})))
		})
	}
	ask := func(who, path, body string) {
		as(who).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", path, strings.NewReader(body)))
	}
	ask("alice", "/v1/config/apply?name=new.yaml", strings.Replace(small, "core0", "core1", 1)+route)
	ask("bob", "/v1/config/apply?name=bad.yaml", "nonsense: 1")
	ask("carol", "/v1/stream", `[{"name":"t","body":"AQ=="}]`)
	ask("dave", "/v1/association/release?id=smf1", "")
	hangup := auth.With(t.Context(), auth.Identity{Role: auth.Operate,
		Who: &events.Who{Via: "signal", Program: "SIGHUP"}})
	_, err = a.owner.Reload(hangup) // there is no file
	testkit.ErrorIf(t, err == nil, "nothing was read and applied")
	text, err := os.ReadFile(dir + "/audit.log")
	testkit.Must(t, err)
	var got []string
	for lines := bufio.NewScanner(strings.NewReader(string(text))); lines.Scan(); {
		var e events.Event
		testkit.Must(t, json.Unmarshal(lines.Bytes(), &e))
		got = append(got, fmt.Sprintf("%s %s %s%s", e.Kind, e.Subject, e.Who.Token, e.Who.Program))
	}
	testkit.Equal(t, strings.Join(got, ", "), "config.applied new.yaml alice, config.refused bad.yaml bob, "+
		"stream.changed  carol, association.release-requested smf1 dave, config.refused  SIGHUP", "audit file")
	testkit.Equal(t, len(told(t, a, "association.release-requested")), 1, "requests of a release")
	e := told(t, a, "config.applied")[0]
	testkit.Equal(t, fmt.Sprint(e.Fields["changes"]),
		"[delete interface core0 add interface core1 add route 198.51.100.0/24]", "changes")
}

// Sessions and peers, from messages of the data plane and of a CP function.
func TestEventsOfSessions(t *testing.T) {
	s, dir := dptest.Start(t), t.TempDir()
	a, _ := launchMobile(t, s, dir, pfcpConfig(t)+instances)
	smf := &n4.Association{ID: "smf1"}
	var last uint64
	for i := range uint32(40) {
		last = establish(t, a, i+1, "10.1.0.1", fmt.Sprintf("10.45.0.%d", i+1)).UP.SEID
	}
	gone := make(chan *pfcp.SessionDeletionResponse, 1)
	a.sessions.Manager.Delete([]*n4.Association{smf}, last,
		func(r *pfcp.SessionDeletionResponse, _ uint64) { gone <- r })
	testkit.Receive(t, gone)
	a.sessions.Tally.Flush()
	told1, counted := told(t, a, "session.established"), told(t, a, "session.count")
	testkit.FatalIf(t, len(told1) == 0 || told1[0].Fields["association"] != "smf1", "%+v", told1)
	sum := uint64(len(told1))
	for i := range counted {
		sum += counted[i].Fields["established"].(uint64)
	}
	testkit.Equal(t, sum, 40, "sessions told or counted")

	peer := api.FromAddr(netip.MustParseAddr("10.1.0.9"))
	raise := func(kind, rule uint32) { s.Raise(api.Event{Type: kind, Rule: rule, Peer: peer}) }
	raise(api.EventTypePathDown, 0)
	raise(api.EventTypePathUp, 0)
	raise(api.EventTypePathUp, 1)
	for range 20 {
		raise(api.EventTypeErrorIndication, 0)
	}
	raise(api.EventTypeWatermark, 0)
	until(t, a, "peer.down", "peer.up", "peer.restarted", "peer.error-indication", "counter.watermark")
	testkit.Equal(t, len(told(t, a, "peer.error-indication")), 5, "error indications told")
	testkit.Equal(t, told(t, a, "peer.down")[0].Subject, "10.1.0.9", "peer")
}

// A session that ends soon after a pause is reported by its name.
func TestEventOfADeletedSession(t *testing.T) {
	s := dptest.Start(t)
	a, _ := launchMobile(t, s, t.TempDir(), pfcpConfig(t)+instances)
	seid := establish(t, a, 1, "10.1.0.1", "10.45.0.1").UP.SEID
	gone := make(chan uint64, 1)
	a.sessions.Manager.Delete([]*n4.Association{{ID: "smf1"}}, seid,
		func(*pfcp.SessionDeletionResponse, uint64) { gone <- 1 })
	testkit.Receive(t, gone)
	e := told(t, a, "session.deleted")
	testkit.ErrorIf(t, len(e) != 1 || e[0].Subject != heldSession(seid).Key, "%+v", e)
}

func TestEventOfTheEnd(t *testing.T) {
	s := dptest.Start(t)
	plan, err := plan.Make("small.yaml", []byte(small))
	testkit.Must(t, err)
	a := made(t, outside(s, t.TempDir()), plan)
	ended := make(chan error, 1)
	go func() { ended <- a.Serve(t.Context()) }()
	testkit.Until(t, "ready", ready(a)) // signals are caught before Run begins
	testkit.Must(t, syscall.Kill(os.Getpid(), syscall.SIGTERM))
	testkit.Must(t, testkit.Receive(t, ended))
	testkit.Equal(t, len(told(t, a, "control.stopping")), 1, "events of the end")
}
