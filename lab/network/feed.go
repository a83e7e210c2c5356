// SPDX-License-Identifier: Apache-2.0

package network

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"path/filepath"
	"time"

	"isthmus/controlplane/agent/v1"
)

// MaxRoutes is how many a feed may have: a full Internet table.
const MaxRoutes = 1 << 20

// feedTime is how long a feed may take.
const feedTime = 15 * time.Minute

// fed is the i-th prefix of the feed.
func fed(i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(11 + i>>16), byte(i >> 8), byte(i)}), 24)
}

// feed adds routes to the first router's kernel, or removes them; its BGP sends them to the gateways.
func (d Demonstration) feed(ctx context.Context, verb string, count int) error {
	r := d.top.routers[0]
	cmd := inNode(ctx, r.name, "ip", "-batch", "-")
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	go func() {
		b := bufio.NewWriter(in)
		for i := range count {
			fmt.Fprintf(b, "route %s %s via %s\n", verb, fed(i), net4(r.stub, 2).Addr())
		}
		b.Flush()
		in.Close()
	}()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip route %s: %w: %s", verb, err, out[:min(len(out), 200)])
	}
	return nil
}

// held are the routes that the first gateway's data plane has of its kernel, and what was sent to it.
func (d Demonstration) held(ctx context.Context) (routes int, sent uint64, err error) {
	var st v1.Status
	b, err := get(ctx, filepath.Join(d.opt.Dir, gatewayName(0), "isthmus.sock"), http.MethodGet, "/v1/status")
	if err == nil {
		err = json.Unmarshal(b, &st)
	}
	for _, k := range st.Kernel {
		routes += k.Routes
	}
	if err == nil && st.KernelRefused > 0 {
		err = fmt.Errorf("%d routes are refused: %s", st.KernelRefused, st.KernelWhy)
	}
	return routes, st.Changes, err
}

// until waits for a number of routes, when as many changes were sent as that takes.
func (d Demonstration) until(ctx context.Context, sent uint64, there func(routes int) bool) error {
	for {
		routes, now, err := d.held(ctx)
		if err != nil {
			return err
		}
		if there(routes) && now >= sent {
			return nil
		}
		if e := pause(ctx, 20*time.Millisecond); e != nil {
			return fmt.Errorf("%d routes after %d changes: %w", routes, now, e)
		}
	}
}

// Routes reports how long routes take from the first router's kernel, by BGP, into the first gateway's data plane, and
// out of it.
func (d Demonstration) Routes(ctx context.Context) error {
	count := d.opt.Routes
	ctx, cancel := context.WithTimeout(ctx, feedTime)
	defer cancel()
	before, sent, err := d.held(ctx)
	if err != nil {
		return err
	}
	for _, step := range []struct {
		verb, words string
		there       func(int) bool
	}{
		{"add", "announced", func(n int) bool { return n >= before+count }},
		{"del", "withdrawn", func(n int) bool { return n <= before }},
	} {
		began, sent0 := time.Now(), sent
		fedOne := make(chan error, 1)
		var kernel time.Duration
		go func() {
			err := d.feed(ctx, step.verb, count)
			kernel = time.Since(began)
			fedOne <- err
		}()
		err := d.until(ctx, sent0+uint64(count), step.there)
		took := time.Since(began)
		if err = errors.Join(err, <-fedOne); err != nil {
			return err
		}
		d.say("%d routes %s: %d ms into %s's data plane; %d ms of it %s's kernel takes", count, step.words,
			took.Milliseconds(),
			gatewayName(0), kernel.Milliseconds(), d.top.routers[0].name)
		if _, sent, err = d.held(ctx); err != nil {
			return err
		}
	}
	return nil
}
