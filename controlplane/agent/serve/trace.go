// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"isthmus/controlplane/agent/reconcile"
	"isthmus/controlplane/agent/spawn"
	"isthmus/controlplane/auth"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/events"
	"isthmus/controlplane/httpd"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/trace"
)

// maxTraceQuery bounds what a client asks of a trace: a frame and a filter.
const maxTraceQuery = 64 << 10

// maxTraces is the data plane's own bound: each has one of its clients, and a program that compiles a filter.
const maxTraces = 4

// traceWrite is how long a client may leave an update unread.
const traceWrite = 5 * time.Second

// Tracer follows packets.
type Tracer struct {
	state          *reconcile.Published
	events         *events.Log
	subscribers    subscribers
	places         *httpd.Places
	socket, binary string // of the data plane
}

// handleTrace follows packets for as long as the client reads: lines of JSON, each a trace.Update.
func (a *API) handleTrace(w http.ResponseWriter, r *http.Request) {
	var q trace.Query
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxTraceQuery))
	body.DisallowUnknownFields() // a selector that is not known would choose everybody
	if err := body.Decode(&q); err != nil {
		answer(w, nil, err)
		return
	}
	begun := false
	client := http.NewResponseController(w)
	client.SetReadDeadline(time.Time{}) // the end of the connection, and not a silent client, ends it
	lines := json.NewEncoder(w)
	err := a.Tracer.Follow(r.Context(), &q, func(u trace.Update) error {
		if !begun {
			w.Header().Set("Content-Type", "application/jsonl")
			begun = true
		}
		client.SetWriteDeadline(time.Now().Add(traceWrite))
		if err := lines.Encode(u); err != nil {
			return err
		}
		return client.Flush()
	})
	switch {
	case err != nil && !begun:
		answer(w, nil, err)
	case err != nil: // the client hears why, where it still reads
		lines.Encode(trace.Update{State: trace.State{Ended: err.Error()}})
	}
}

// Follow follows packets until ctx ends or give fails. It has a connection to the data plane of its own, so that no
// transaction holds it up.
func (t *Tracer) Follow(ctx context.Context, q *trace.Query, give func(trace.Update) error) error {
	leave := t.places.Take(auth.From(ctx).Holder())
	if leave == nil {
		return busyError{fmt.Errorf("no place for one more trace: %d in all, "+
			"and no client may hold more than are free; end one, or ask again later", maxTraces)}
	}
	defer leave()
	if err := t.SessionOf(q); err != nil {
		return err
	}
	program := ""
	if q.Filter != "" {
		var err error
		if program, err = spawn.FindDP(t.binary); err != nil {
			return err
		}
	}
	if _, err := t.state.DataPlane(); err != nil {
		return err
	}
	c, err := dp.Dial(ctx, t.socket)
	if err != nil {
		return err
	}
	defer c.Close()
	order, err := q.Order(ctx, c, program)
	if err != nil {
		return err
	}
	if !q.Edges && q.Hypothetical == nil { // reads subscribers' packets
		asked, _ := json.Marshal(q) // of plain fields
		auth.Did(ctx, t.events, "trace.begun", q.Session, nil, "query", string(asked))
	}
	err = trace.Run(ctx, c, order, q, give)
	select {
	case <-c.Done():
		if err != nil {
			err = fmt.Errorf("the data plane went away, and the trace with it; isthmus status says why: %w",
				err)
		}
	default:
	}
	return err
}

// SessionOf turns the subscriber of a query into its session, or says why it has none.
func (t *Tracer) SessionOf(q *trace.Query) error {
	if q.Session != "" && q.Subscriber != "" {
		return errors.New("a session or a subscriber, not both")
	}
	if q.Subscriber == "" {
		return t.starting(q.Session)
	}
	list := t.subscribers.Subscribers(q.Subscriber, 0)
	switch {
	case len(list) == 0:
		return fmt.Errorf("there is no subscriber %q; isthmus show subscriber has all", q.Subscriber)
	case len(list) > 1:
		return fmt.Errorf("%q names %d sessions; choose one by --session, such as %s or %s",
			q.Subscriber, len(list), list[0].Object, list[1].Object)
	case list[0].Object == "":
		why := "no attempt to sign in is known"
		if n := list[0].Attempts; len(n) > 0 && n[0].Why != "" {
			why = "the last attempt to sign in: " + n[0].Why
		}
		return fmt.Errorf("subscriber %q is %s and has no session; %s", q.Subscriber, list[0].State, why)
	}
	q.Session, q.Subscriber = list[0].Object, ""
	return t.starting(q.Session)
}

// starting is the error of a session whose subscriber is let in, and which the data plane does not have yet.
func (t *Tracer) starting(session string) error {
	if _, ours := rules.SEIDOf(session); !ours {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), showTime)
	defer cancel()
	rows, _, err := t.subscribers.Rows(ctx, session)
	if err != nil || len(rows) != 1 || rows[0].State != "starting" {
		return err
	}
	return fmt.Errorf("subscriber %q is starting: its session is not in the data plane yet; ask again in a moment",
		cmp.Or(rows[0].User, rows[0].MAC))
}

// Bounds of a trace of the live page, which may be forgotten, and reads continuously.
const (
	pageTraceSeconds = 300
	pageTraceRate    = 20 // packets a second and worker
)

// Text gives a session's packets as text, for the live page.
func (t *Tracer) Text(ctx context.Context, session string, give func(text string) error) error {
	q := trace.Query{Session: session, Seconds: pageTraceSeconds, Rate: pageTraceRate}
	missed := uint64(0)
	return t.Follow(ctx, &q, func(u trace.Update) error {
		var b strings.Builder
		for i := range u.Packets {
			u.Packets[i].WriteText(&b, false) // a strings.Builder takes all
		}
		if n := u.State.Missed + u.State.Lost; n > missed {
			fmt.Fprintf(&b, "%d packets more than can be shown\n", n-missed)
			missed = n
		}
		if b.Len() == 0 {
			return nil
		}
		return give(b.String())
	})
}
