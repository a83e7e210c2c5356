// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"

	"isthmus/controlplane/agent"
)

// Stream sends one request to the control plane and decodes the lines of its answer one by one. It returns when the
// answer ends, ctx does (no error), or take fails.
func Stream[T any](ctx context.Context, e *Env, path string, body any, take func(T) error) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", e.Socket)
		},
	}}
	u := url.URL{Scheme: "http", Host: "isthmus", Path: path}
	req, err := http.NewRequestWithContext(ctx, "POST", u.String(), bytes.NewReader(text))
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return e.unreachable(err)
	}
	defer res.Body.Close()
	lines := json.NewDecoder(res.Body)
	if res.StatusCode != http.StatusOK {
		var failure agent.Failure
		if lines.Decode(&failure) != nil || failure.Error == "" {
			failure.Error = res.Status
		}
		return errors.New(failure.Error)
	}
	for {
		var v T
		switch err := lines.Decode(&v); {
		case ctx.Err() != nil, errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := take(v); err != nil {
			return err
		}
	}
}
