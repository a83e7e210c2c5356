// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"sync"

	"isthmus/lab/tester"
)

// Gateway is a gateway that runs with a profile's configuration, at two memif links.
type Gateway struct {
	m    *outside
	d    *device
	done func()
	stop sync.Once
}

// StartGateway starts one. The caller stops it.
func StartGateway(ctx context.Context, opt Options) (*Gateway, error) {
	s, err := newScene(opt, 0)
	if err != nil {
		return nil, err
	}
	m, done, err := newOutside(opt)
	if err != nil {
		return nil, err
	}
	d, err := m.start(ctx, s, "")
	if err != nil {
		done()
		return nil, err
	}
	return &Gateway{m: m, d: d, done: done}, nil
}

// Stop ends it; it may be called again.
func (g *Gateway) Stop() {
	g.stop.Do(func() {
		g.d.stop()
		g.done()
	})
}

// Exited is closed when the gateway has ended.
func (g *Gateway) Exited() <-chan struct{} { return g.d.exited }

// Words are its last ones. Only after it has ended.
func (g *Gateway) Words() string { return fmt.Sprintf("(%s)\n%s", g.d.cmd.ProcessState, g.d.tail()) }

// Ports are the tester's ends of its links, by the names "access" and "core".
func (g *Gateway) Ports() map[string]tester.Port {
	return map[string]tester.Port{"access": g.d.access.far, "core": g.d.core.far}
}

// Command is its command line.
func (g *Gateway) Command() []string { return g.d.cmd.Args }
