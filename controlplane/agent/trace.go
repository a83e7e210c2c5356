// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"isthmus/controlplane/dp"
	"isthmus/controlplane/trace"
)

// maxTraceQuery bounds what a client asks of a trace: a frame and a filter.
const maxTraceQuery = 64 << 10

// traceWrite is how long a client may leave an update unread.
const traceWrite = 5 * time.Second

// handleTrace follows packets for as long as the client reads: lines of JSON, each a trace.Update. The trace has a
// connection to the data plane of its own, so that no transaction holds it up.
func (a *Agent) handleTrace(w http.ResponseWriter, r *http.Request) {
	var q trace.Query
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxTraceQuery)).Decode(&q); err != nil {
		answer(w, nil, err)
		return
	}
	program, err := FindDP(a.opt.DPBinary)
	if err != nil {
		answer(w, nil, err)
		return
	}
	if _, err := a.dataPlane(); err != nil {
		answer(w, nil, err)
		return
	}
	c, err := dp.Dial(r.Context(), a.opt.DPSocket)
	if err != nil {
		answer(w, nil, err)
		return
	}
	defer c.Close()
	order, err := q.Order(r.Context(), c, program)
	if err != nil {
		answer(w, nil, err)
		return
	}
	begun := false
	client := http.NewResponseController(w)
	client.SetReadDeadline(time.Time{}) // the end of the connection, and not a silent client, ends it
	lines := json.NewEncoder(w)
	err = trace.Run(r.Context(), c, order, &q, func(u trace.Update) error {
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
	select {
	case <-c.Done():
		if err != nil {
			err = fmt.Errorf("the data plane went away, and the trace with it: %w", err)
		}
	default:
	}
	switch {
	case err != nil && !begun:
		answer(w, nil, err)
	case err != nil: // the client hears why, where it still reads
		lines.Encode(trace.Update{State: trace.State{Ended: err.Error()}})
	}
}
