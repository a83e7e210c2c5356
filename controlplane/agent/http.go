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
	"strconv"
	"time"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/view"
)

// maxUpload bounds a configuration that is sent to us.
const maxUpload = 64 << 20

// ErrAway answers requests that need the data plane while it is away.
var ErrAway = errors.New("the data plane is away; the control plane is connecting to it")

// Failure is the body of every answer that is not 200.
type Failure struct {
	Error string `json:"error"`
}

// Handler serves the agent's API (docs/cli.md lists the paths).
func (a *Agent) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) { answer(w, a.Status(), nil) })
	mux.HandleFunc("GET /v1/show/{table}", a.handleShow)
	mux.HandleFunc("GET /v1/config", a.handleConfig)
	mux.HandleFunc("POST /v1/trace", a.handleTrace)
	mux.HandleFunc("POST /v1/config/apply", a.handleApply)
	mux.HandleFunc("POST /v1/config/reload", func(w http.ResponseWriter, r *http.Request) {
		res, err := a.Reload(r.Context())
		answer(w, res, err)
	})
	mux.HandleFunc("POST /v1/association/release", a.handleRelease)
	mux.HandleFunc("POST /v1/stream", a.handleStreams)
	mux.HandleFunc("POST /v1/stream/{verb}", a.handleStream)
	return mux
}

func answer(w http.ResponseWriter, v any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		var refused *dp.RefusedError
		switch {
		case errors.Is(err, ErrAway), errors.Is(err, dp.ErrClosed):
			w.WriteHeader(http.StatusServiceUnavailable)
		case errors.As(err, &refused):
			w.WriteHeader(http.StatusConflict)
		default:
			w.WriteHeader(http.StatusUnprocessableEntity)
		}
		v = Failure{err.Error()}
	}
	json.NewEncoder(w).Encode(v) // the client is gone when this fails
}

// dataPlane returns the connection or ErrAway.
func (a *Agent) dataPlane() (*dp.Client, error) {
	if c := a.client.Load(); c != nil {
		return c, nil
	}
	return nil, ErrAway
}

func (a *Agent) handleShow(w http.ResponseWriter, r *http.Request) {
	table := view.Lookup(r.PathValue("table"))
	if table == nil {
		answer(w, nil, fmt.Errorf("nothing called %q to show", r.PathValue("table")))
		return
	}
	limit, _ := strconv.ParseUint(r.URL.Query().Get("limit"), 10, 32)
	c, err := a.dataPlane()
	if err != nil && !table.OfControl() {
		answer(w, nil, err)
		return
	}
	v, err := table.Get(r.Context(), c, a.control, r.URL.Query().Get("key"), uint32(limit))
	answer(w, v, err)
}

func (a *Agent) handleConfig(w http.ResponseWriter, r *http.Request) {
	plan, err := a.running(r.Context())
	if err != nil {
		answer(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/yaml")
	w.Write(plan.Text)
}

// handleApply takes the file's text, so that the caller's file need not be readable by us; `name` is for messages.
func (a *Agent) handleApply(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxUpload))
	if err != nil {
		answer(w, nil, err)
		return
	}
	name := cmp.Or(r.URL.Query().Get("name"), "configuration")
	plan, err := makePlan(name, text, os.Environ(), *a.placement.Load())
	if err != nil {
		answer(w, nil, err)
		return
	}
	plan.Applied = true
	res, err := a.Apply(r.Context(), plan)
	answer(w, res, err)
}

// Stream is one synth stream to add, or to remove when Body is empty. Streams are test traffic, not intent: they are
// sent as they come, and not again after the data plane restarted.
type Stream struct {
	Name string `json:"name"`
	Body []byte `json:"body"` // struct api_synth
}

func (a *Agent) handleStreams(w http.ResponseWriter, r *http.Request) {
	var streams []Stream
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxUpload)).Decode(&streams); err != nil {
		answer(w, nil, err)
		return
	}
	res, err := a.ask(r.Context(), func(ctx context.Context) (Result, error) {
		c, err := a.dataPlane()
		if err != nil {
			return Result{}, err
		}
		var list []dp.Change
		for _, s := range streams {
			ch := dp.Change{Kind: api.KindSynth, Key: s.Name}
			if len(s.Body) > 0 {
				ch.Body = s.Body
			}
			list = append(list, ch)
		}
		return Result{Put: len(list)}, c.Apply(ctx, list)
	})
	answer(w, res, err)
}

func (a *Agent) handleStream(w http.ResponseWriter, r *http.Request) {
	c, err := a.dataPlane()
	if err == nil {
		switch verb := r.PathValue("verb"); verb {
		case "start", "stop":
			err = c.Stream(r.Context(), r.URL.Query().Get("name"), verb == "start")
		default:
			err = fmt.Errorf("%q is neither start nor stop", verb)
		}
	}
	answer(w, Result{}, err)
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
