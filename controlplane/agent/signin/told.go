// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"log/slog"
	"sync"
	"time"

	"isthmus/controlplane/events"
)

// toldAtOnce are the events of a kind in a second; the next one has the number of the rest.
const toldAtOnce = 20

// gated rate limits events that outsiders can cause. Any goroutine may call it.
type gated struct {
	events *events.Log
	log    *slog.Logger
	lock   sync.Mutex
	gates  map[string]*events.Gate
}

// bySubject are kinds with a gate for each subject. Their subjects are few: attributes by name, clients of the
// configuration.
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
