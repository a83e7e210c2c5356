// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"os"

	"isthmus/controlplane/page"
	"isthmus/controlplane/view"
)

// source is the agent as the live page sees it.
type source struct{ *Agent }

func (s source) Table(ctx context.Context, name, key string, limit uint32) (any, error) {
	table := view.Lookup(name)
	if table == nil {
		return nil, fmt.Errorf("nothing called %q to show", name)
	}
	c, err := s.owner.DataPlane()
	if err != nil && !table.OfControl() {
		return nil, err
	}
	return table.Get(ctx, c, s.control, key, limit)
}

func (s source) Status() page.Status {
	now := s.owner.Status()
	host, _ := os.Hostname()
	return page.Status{Host: host, Version: now.Version, DPVersion: now.DPVersion, DataPlane: now.DataPlane,
		Error:   now.LastError,
		Started: now.Started, Objects: now.Objects}
}
