// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/auth"
	"isthmus/controlplane/events"
)

const (
	maxKinds    = 16
	maxEvents   = 1000             // in one answer; `next` leads on
	streamQuiet = 15 * time.Second // a comment shows that the stream lives
	streamWrite = 10 * time.Second // a client that takes nothing for so long is cut off
)

// handleEvents answers with what is in memory, or with a stream of server-sent events that goes on.
func (a *API) handleEvents(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	after := cmp.Or(q.Get("after"), r.Header.Get("Last-Event-ID"))
	filter, err := kindsOf(q["kind"])
	if err != nil {
		answer(w, nil, err)
		return
	}
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		a.streamEvents(w, r, after, q.Get("live") == "true", filter)
		return
	}
	limit, err := strconv.ParseUint(cmp.Or(q.Get("limit"), "0"), 10, 31)
	if err != nil {
		answer(w, nil, fmt.Errorf("limit: %.40q is no number", q.Get("limit")))
		return
	}
	if limit == 0 || limit > maxEvents {
		limit = maxEvents
	}
	leave := a.placeToRead(w, r)
	if leave == nil {
		return
	}
	defer leave()
	page, err := a.Events.Read(after, int(limit), filter)
	answer(w, page, err)
}

func kindsOf(given []string) (f events.Filter, err error) {
	for _, list := range given {
		for _, kind := range strings.Split(list, ",") {
			if len(f.Kinds) == maxKinds {
				return f, fmt.Errorf("kind: more than %d", maxKinds)
			}
			if !events.Known(kind) {
				return f, fmt.Errorf("kind: %.40q is no kind of event, and begins none; there are %s",
					kind, strings.Join(events.FirstWords(), ", "))
			}
			f.Kinds = append(f.Kinds, kind)
		}
	}
	return f, nil
}

// sse writes server-sent events, each with a deadline of its own.
type sse struct {
	w  io.Writer
	rc *http.ResponseController
}

func (s *sse) write(format string, args ...any) error {
	s.rc.SetWriteDeadline(time.Now().Add(streamWrite)) // a recorder of tests has none
	if _, err := fmt.Fprintf(s.w, format, args...); err != nil {
		return err
	}
	return s.rc.Flush()
}

func (s *sse) event(e *events.Event) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return s.write("id: %s\ndata: %s\n\n", e.Cursor(), data)
}

func (a *API) streamEvents(w http.ResponseWriter, r *http.Request, after string, live bool, f events.Filter) {
	follower, page, err := a.Events.Follow(auth.From(r.Context()).Holder(), after, live, f)
	if errors.Is(err, events.ErrTooMany) {
		w.Header().Set("Retry-After", "10")
		err = busyError{err}
	}
	if err != nil {
		answer(w, nil, err)
		return
	}
	defer follower.Close()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	s := &sse{w, http.NewResponseController(w)}
	s.rc.SetReadDeadline(time.Time{}) // the request is read; the stream may last
	err = s.write("event: lost\ndata: {\"lost\":%d}\n\n", page.Lost)
	for i := 0; err == nil && i < len(page.Events); i++ {
		err = s.event(&page.Events[i])
	}
	for err == nil {
		err = a.streamNext(r.Context(), s, follower)
	}
	if errors.Is(err, events.ErrBehind) {
		data, _ := json.Marshal(v1.Failure{Error: err.Error()})
		s.write("event: end\ndata: %s\n\n", data) // it may take this
	}
}

// streamNext writes one event, or a comment when there was none for a while.
func (a *API) streamNext(ctx context.Context, s *sse, follower *events.Follower) error {
	quiet, cancel := context.WithTimeout(ctx, streamQuiet)
	defer cancel()
	e, err := follower.Next(quiet)
	if err == nil {
		return s.event(&e)
	}
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return s.write(": quiet\n\n")
	}
	return err
}
