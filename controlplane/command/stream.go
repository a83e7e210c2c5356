// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// Stream sends one request to the control plane and decodes the lines of its answer one by one. It returns when the
// answer ends, ctx does (no error), or take fails.
func Stream[T any](ctx context.Context, e *Env, path string, body any, take func(T) error) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	res, err := e.Open(ctx, "POST", path, nil, text, http.Header{"Content-Type": {"application/json"}})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	lines := json.NewDecoder(res.Body)
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
