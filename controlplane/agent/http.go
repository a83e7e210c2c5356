// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"isthmus/api"
	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/agent/reconcile"
	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/auth"
	"isthmus/controlplane/config"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/view"
)

// maxUpload bounds a configuration that is sent to us.
const maxUpload = 64 << 20

func answer(w http.ResponseWriter, v any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		var refused *dp.RefusedError
		switch {
		case errors.Is(err, reconcile.ErrAway), errors.Is(err, dp.ErrClosed), errors.As(err, new(busyError)):
			w.WriteHeader(http.StatusServiceUnavailable)
		case errors.As(err, &refused):
			w.WriteHeader(http.StatusConflict)
		default:
			w.WriteHeader(http.StatusUnprocessableEntity)
		}
		v = v1.Failure{Error: err.Error()}
	}
	json.NewEncoder(w).Encode(v) // the client is gone when this fails
}

func (a *Agent) handleShow(w http.ResponseWriter, r *http.Request) {
	table := view.Lookup(r.PathValue("table"))
	if table == nil {
		answer(w, nil, fmt.Errorf("nothing called %q to show", r.PathValue("table")))
		return
	}
	query, err := view.ParseQuery(r.URL.Query())
	if err != nil {
		answer(w, nil, err)
		return
	}
	c, err := a.owner.DataPlane()
	if err != nil && !table.OfControl() {
		answer(w, nil, err)
		return
	}
	leave := a.placeToRead(w, r)
	if leave == nil {
		return
	}
	defer leave()
	v, next, err := table.Select(r.Context(), c, a.control, query)
	if next != (view.Cursor{}) {
		w.Header().Set(v1.NextAfter, next.String())
	}
	answer(w, v, err)
}

// Tables that are read and written out at a time, for clients of the Unix socket and for those of TCP: a million
// sessions are some hundred megabytes. One client gets half of them. Those of TCP have so long to fetch one.
const (
	maxShows       = 8
	maxRemoteShows = 4
	remoteShow     = 30 * time.Second
)

// patience is how long who finds no place waits for it.
const patience = 5 * time.Second

// placeToRead is the client's among those who read tables. nil: there is none, and the client was told.
func (a *Agent) placeToRead(w http.ResponseWriter, r *http.Request) (leave func()) {
	places, client := a.shows, auth.From(r.Context())
	if client.Who != nil && client.Who.Via == "tcp" {
		places = a.remoteShows
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	if leave = places.Wait(ctx, client.Holder()); leave == nil {
		w.Header().Set("Retry-After", "1")
		answer(w, nil, busyError{errors.New("too many tables are being read")})
		return nil
	}
	if places == a.remoteShows { // a recorder of tests has no deadlines
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(remoteShow))
	}
	return leave
}

// busyError says that one may ask again later.
type busyError struct{ error }

func (a *Agent) handleConfig(w http.ResponseWriter, r *http.Request) {
	text, err := config.Shown(a.owner.Plan().Text)
	if err != nil {
		answer(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/yaml")
	w.Write(text)
}

// planOf compiles a request's text, so that the caller's file need not be readable by us; `name` is for messages.
func (a *Agent) planOf(w http.ResponseWriter, r *http.Request) (name string, next *plan.Plan, err error) {
	name = cmp.Or(r.URL.Query().Get("name"), "configuration")
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, a.upload))
	if err != nil {
		return "", nil, err
	}
	next, err = plan.MakeWith(name, text, os.Environ(), a.owner.Plan().Placement)
	return name, next, err
}

// handleCheck is handleApply that changes nothing.
func (a *Agent) handleCheck(w http.ResponseWriter, r *http.Request) {
	_, plan, err := a.planOf(w, r)
	if err != nil {
		answer(w, nil, err)
		return
	}
	answer(w, v1.Checked{Objects: len(plan.Objects),
		Fixed: append([]string{}, plan.FixedBy(a.owner.Plan())...)}, nil)
}

func (a *Agent) handleApply(w http.ResponseWriter, r *http.Request) {
	name, plan, err := a.planOf(w, r)
	if err != nil {
		if name != "" { // a configuration was asked for
			auth.Did(r.Context(), a.events, "config.refused", name, err)
		}
		answer(w, nil, err)
		return
	}
	plan.Applied = true
	res, err := a.owner.Apply(r.Context(), plan)
	answer(w, res, err)
}

func (a *Agent) handleStreams(w http.ResponseWriter, r *http.Request) {
	var streams []v1.Stream
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, a.upload)).Decode(&streams); err != nil {
		answer(w, nil, err)
		return
	}
	res, err := a.owner.Do(r.Context(), func(ctx context.Context) (v1.Result, error) {
		c, err := a.owner.DataPlane()
		if err != nil {
			return v1.Result{}, err
		}
		var list []dp.Change
		for _, s := range streams {
			ch := dp.Change{Kind: api.KindSynth, Key: s.Name}
			if len(s.Body) > 0 {
				ch.Body = s.Body
			}
			list = append(list, ch)
		}
		return v1.Result{Put: len(list)}, c.Apply(ctx, list)
	})
	auth.Did(r.Context(), a.events, "stream.changed", "", err, "verb", "load", "count", len(streams))
	answer(w, res, err)
}

func (a *Agent) handleStream(w http.ResponseWriter, r *http.Request, verb string) {
	c, err := a.owner.DataPlane()
	name := r.URL.Query().Get("name")
	if err == nil {
		err = c.Stream(r.Context(), name, verb == "start")
	}
	auth.Did(r.Context(), a.events, "stream.changed", name, err, "verb", verb)
	answer(w, v1.Result{}, err)
}

// listen opens the agent's own socket. One that a dead agent left behind is replaced, a living one is not.
func listen(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	if conn, err := net.DialTimeout("unix", path, time.Second); err == nil {
		conn.Close()
		return nil, fmt.Errorf("%s: another control plane is running there", path)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		os.Remove(path)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o660); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}
