// SPDX-License-Identifier: Apache-2.0

// Package top is the full-screen view of a running gateway. Two samples become rates, a model takes samples and keys,
// and a screen is drawn from it. Only terminal.go knows a terminal.
package top

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"isthmus/controlplane/watch"
)

// mostSessions bounds what one look at sessions or subscribers costs, here and in the gateway.
const mostSessions = 20000

// bounded tables have a row for each subscriber.
func bounded(table string) bool { return table == "session" || table == "subscriber" }

// Get asks the control plane for a path of its API.
type Get func(ctx context.Context, path string, query url.Values) ([]byte, error)

// Status is what is shown of /v1/status.
type Status struct {
	Version   string    `json:"version"`
	File      string    `json:"file"`
	Started   time.Time `json:"started"`
	DataPlane string    `json:"data_plane"`
	Why       string    `json:"why"`
}

// Sample is what one moment's questions brought.
type Sample struct {
	Time   time.Time              `json:"time"`
	Status Status                 `json:"status"`
	Tables map[string][]watch.Row `json:"-"`
	Err    error                  `json:"-"` // no status: the control plane is away
}

// Take requests the status and the tables; a refused table, as while the data plane is away, is left out.
func Take(ctx context.Context, get Get, tables []string) *Sample {
	s := &Sample{Time: time.Now(), Tables: map[string][]watch.Row{}}
	data, err := get(ctx, "/v1/status", nil)
	if err == nil {
		err = json.Unmarshal(data, &s.Status)
	}
	if s.Err = err; err != nil {
		return s
	}
	for _, table := range tables {
		query := url.Values{}
		if bounded(table) {
			query.Set("limit", strconv.Itoa(mostSessions))
		}
		data, err := get(ctx, "/v1/show/"+table, query)
		if err != nil {
			continue
		}
		if rows, err := watch.Rows(data); err == nil {
			s.Tables[table] = rows
		}
	}
	return s
}
