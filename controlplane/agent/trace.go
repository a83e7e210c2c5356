// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"isthmus/controlplane/dp"
	"isthmus/controlplane/trace"
)

// maxTraceQuery bounds what a client asks of a trace: a frame and a filter.
const maxTraceQuery = 64 << 10

// traceWrite is how long a client may leave an update unread.
const traceWrite = 5 * time.Second

// handleTrace follows packets for as long as the client reads: lines of JSON, each a trace.Update.
func (a *Agent) handleTrace(w http.ResponseWriter, r *http.Request) {
	var q trace.Query
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxTraceQuery)).Decode(&q); err != nil {
		answer(w, nil, err)
		return
	}
	begun := false
	client := http.NewResponseController(w)
	client.SetReadDeadline(time.Time{}) // the end of the connection, and not a silent client, ends it
	lines := json.NewEncoder(w)
	err := a.trace(r.Context(), &q, func(u trace.Update) error {
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

// trace follows packets until ctx ends or give fails. It has a connection to the data plane of its own, so that no
// transaction holds it up.
func (a *Agent) trace(ctx context.Context, q *trace.Query, give func(trace.Update) error) error {
	program, err := FindDP(a.opt.DPBinary)
	if err != nil {
		return err
	}
	if _, err := a.dataPlane(); err != nil {
		return err
	}
	c, err := dp.Dial(ctx, a.opt.DPSocket)
	if err != nil {
		return err
	}
	defer c.Close()
	order, err := q.Order(ctx, c, program)
	if err != nil {
		return err
	}
	err = trace.Run(ctx, c, order, q, give)
	select {
	case <-c.Done():
		if err != nil {
			err = fmt.Errorf("the data plane went away, and the trace with it: %w", err)
		}
	default:
	}
	return err
}

// pageTraceSeconds bounds a trace of the live page, which somebody may forget.
const pageTraceSeconds = 300

// traceText gives a session's packets as text, for the live page.
func (a *Agent) traceText(ctx context.Context, session string, give func(text string) error) error {
	q := trace.Query{Session: session, Seconds: pageTraceSeconds}
	return a.trace(ctx, &q, func(u trace.Update) error {
		var b strings.Builder
		for i := range u.Packets {
			u.Packets[i].WriteText(&b, false) // a strings.Builder takes all
		}
		if b.Len() == 0 {
			return nil
		}
		return give(b.String())
	})
}
