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

// lookup returns a table by its name, or what else could be meant.
func lookup(name string) (*view.Table, error) {
	var names []string
	for _, t := range view.Tables {
		if t.Name == name {
			return t, nil
		}
		names = append(names, t.Name)
	}
	return nil, fmt.Errorf("nothing called %.40q to show%s; isthmus show --help has all", name,
		config.Suggest(name, names))
}

func (a *API) handleShow(w http.ResponseWriter, r *http.Request) {
	table, err := lookup(r.PathValue("table"))
	if err != nil {
		answer(w, nil, err)
		return
	}
	query, err := view.ParseQuery(r.URL.Query())
	if err != nil {
		answer(w, nil, err)
		return
	}
	c, err := a.State.DataPlane()
	if err != nil && !table.OfControl() {
		answer(w, nil, err)
		return
	}
	leave := a.placeToRead(w, r)
	if leave == nil {
		return
	}
	defer leave()
	v, next, err := table.Select(r.Context(), c, a.Tables, query)
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

// placeToRead is the client's place among those that read tables. nil: none is free, and the client was answered.
func (a *API) placeToRead(w http.ResponseWriter, r *http.Request) (leave func()) {
	places, client := a.shows, auth.From(r.Context())
	if client.Who != nil && client.Who.Via == "tcp" {
		places = a.remoteShows
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	if leave = places.Wait(ctx, client.Holder()); leave == nil {
		w.Header().Set("Retry-After", "1")
		answer(w, nil, busyError{errors.New("too many tables are being read; ask again in a moment")})
		return nil
	}
	if places == a.remoteShows { // a recorder of tests has no deadlines
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(remoteShow))
	}
	return leave
}

// busyError says that one may ask again later.
type busyError struct{ error }

// flag is a parameter that is true or false; absent: false.
func flag(r *http.Request, name string) (bool, error) {
	switch value := r.URL.Query().Get(name); value {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, fmt.Errorf("%s: %.40q is neither true nor false", name, value)
	}
}

func (a *API) handleConfig(w http.ResponseWriter, r *http.Request) {
	running := a.State.Plan()
	text, err := []byte(nil), error(nil)
	if effective, bad := flag(r, "effective"); bad != nil {
		err = bad
	} else if effective {
		text, err = running.Effective()
	} else {
		text, err = config.Shown(running.Text)
	}
	if err != nil {
		answer(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/yaml")
	w.Write(text)
}

// planOf compiles a request's text, so that the caller's file need not be readable by us; `name` is for messages.
func (a *API) planOf(w http.ResponseWriter, r *http.Request) (name string, next *plan.Plan, err error) {
	name = cmp.Or(r.URL.Query().Get("name"), "configuration")
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, a.Upload))
	if err != nil {
		return "", nil, err
	}
	next, err = a.State.Plan().Next(name, text)
	return name, next, err
}

// handleCheck is handleApply that changes nothing.
func (a *API) handleCheck(w http.ResponseWriter, r *http.Request) {
	_, plan, err := a.planOf(w, r)
	if err != nil {
		answer(w, nil, err)
		return
	}
	answer(w, v1.Checked{Objects: len(plan.Objects),
		Fixed: append([]string{}, plan.FixedBy(a.State.Plan())...)}, nil)
}

// dryRun is the parameter of requests that then change nothing.
const dryRun = "dry_run"

func (a *API) handleApply(w http.ResponseWriter, r *http.Request) {
	dry, err := flag(r, dryRun)
	if err != nil {
		answer(w, nil, err)
		return
	}
	name, plan, err := a.planOf(w, r)
	if err != nil {
		if name != "" && !dry { // a configuration was asked for
			auth.Did(r.Context(), a.Events, "config.refused", name, err)
		}
		answer(w, nil, err)
		return
	}
	plan.Applied = true
	act := a.Owner.Apply
	if dry {
		act = a.Owner.Try
	}
	res, err := act(r.Context(), plan)
	answer(w, res, err)
}

func (a *API) handleReload(w http.ResponseWriter, r *http.Request) {
	dry, err := flag(r, dryRun)
	var res v1.Result
	switch {
	case err != nil:
	case dry:
		var next *plan.Plan
		if next, err = a.State.Plan().Next(a.State.Status().File, nil); err == nil {
			res, err = a.Owner.Try(r.Context(), next)
		}
	default:
		res, err = a.Owner.Reload(r.Context())
	}
	answer(w, res, err)
}

func (a *API) handleStreams(w http.ResponseWriter, r *http.Request) {
	var streams []v1.Stream
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, a.Upload)).Decode(&streams); err != nil {
		answer(w, nil, err)
		return
	}
	res, err := a.Owner.Do(r.Context(), func(ctx context.Context) (v1.Result, error) {
		c, err := a.State.DataPlane()
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
	auth.Did(r.Context(), a.Events, "stream.changed", "", err, "verb", "load", "count", len(streams))
	answer(w, res, err)
}

func (a *API) handleStream(w http.ResponseWriter, r *http.Request, verb string) {
	c, err := a.State.DataPlane()
	name := r.URL.Query().Get("name")
	if err == nil {
		err = c.Stream(r.Context(), name, verb == "start")
	}
	auth.Did(r.Context(), a.Events, "stream.changed", name, err, "verb", verb)
	answer(w, v1.Result{}, err)
}

// maxGraceful is the longest period that the Graceful Release Period (TS 29.244 §8.2.78) can say.
const maxGraceful = 310 * time.Hour

// handleRelease asks a CP function to release its association: before this user plane goes out of service.
func (a *API) handleRelease(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("id")
	seconds, err := strconv.ParseUint(cmp.Or(r.URL.Query().Get("graceful"), "0"), 10, 32)
	if err == nil && time.Duration(seconds)*time.Second > maxGraceful {
		err = fmt.Errorf("graceful: %d seconds are more than %d", seconds, int(maxGraceful.Seconds()))
	}
	if err == nil {
		err = a.Sessions.Release(r.Context(), id, time.Duration(seconds)*time.Second)
	}
	auth.Did(r.Context(), a.Events, "association.release-requested", id, err, "graceful", seconds)
	answer(w, v1.Result{}, err)
}

func (a *API) handleClear(w http.ResponseWriter, r *http.Request) {
	who, cause := r.URL.Query().Get("subscriber"), cmp.Or(r.URL.Query().Get("cause"), "admin-reset")
	out, err := a.SignIns.Clear(r.Context(), who, cause)
	auth.Did(r.Context(), a.Events, "subscriber.cleared", who, err, "cause", cause, "ended", out.Ended)
	answer(w, out, err)
}
