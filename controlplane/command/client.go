// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"isthmus/controlplane/agent"
)

// Call sends one request to the control plane and returns the body of its answer.
func (e *Env) Call(ctx context.Context, method, path string, query url.Values, body []byte) ([]byte, error) {
	client := &http.Client{
		Timeout: 2 * time.Minute,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, "unix", e.Socket)
			},
		},
	}
	u := url.URL{Scheme: "http", Host: "isthmus", Path: path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, e.unreachable(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusOK {
		return data, nil
	}
	var failure agent.Failure
	if json.Unmarshal(data, &failure) != nil || failure.Error == "" {
		failure.Error = res.Status
	}
	return nil, errors.New(failure.Error)
}

// unreachable explains why no control plane answered and what to do.
func (e *Env) unreachable(err error) error {
	hint := err.Error()
	switch {
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ECONNREFUSED):
		hint = "it is not running there; start it with `isthmus run -c FILE`, or name its socket with --socket"
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		hint = "permission denied; run as root or as a member of the socket's group"
	}
	return &Exit{Code: ExitUnreachable, Err: fmt.Errorf("no control plane at %s: %s", e.Socket, hint)}
}
