// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"os"

	"isthmus/controlplane/page"
)

// Source is the gateway as the live page sees it.
type Source struct{ *API }

// Table is page.Source's.
func (s Source) Table(ctx context.Context, name, key string, limit uint32) (any, error) {
	table, err := lookup(name)
	if err != nil {
		return nil, err
	}
	c, err := s.State.DataPlane()
	if err != nil && !table.OfControl() {
		return nil, err
	}
	return table.Get(ctx, c, s.Tables, key, limit)
}

// Status is page.Source's.
func (s Source) Status() page.Status {
	now := s.State.Status()
	host, _ := os.Hostname()
	return page.Status{Host: host, Version: now.Version, DPVersion: now.DPVersion, DataPlane: now.DataPlane,
		Error:   now.Why,
		Started: now.Started, Objects: now.Objects}
}
