// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"isthmus/controlplane/pfcp"
	"isthmus/lab/smf"
)

// timers are how often control functions ask, and how long they wait for each of the four answers: gateways that stand
// in for each other are missed sooner.
func (c *controllers) timers() (heartbeat, t1 time.Duration) {
	if c.opt.Generation == "isp" {
		return time.Second, 500 * time.Millisecond
	}
	return 10 * time.Second, time.Second
}

// ---- mobile sessions ------------------------------------------------------------------------------------------------

// gateway is the part with an association, and its replacement; nil: it is none of two gateways.
func (c *controllers) gateway(a *smf.Association) (lost, other *smf.Function) {
	if c.opt.Generation != "isp" {
		return nil, nil
	}
	switch a {
	case c.network.Anchor.Association:
		return &c.network.Anchor, &c.standby
	case c.standby.Association:
		return &c.standby, &c.network.Anchor
	}
	return nil, nil
}

// gatewayLost restores the sessions of a gateway at the other one, and moves them back when it returns.
func (c *controllers) gatewayLost(a *smf.Association) {
	c.mu.Lock()
	lost, other := c.gateway(a)
	c.mu.Unlock()
	if lost == nil || c.closing.Load() {
		return
	}
	c.restore(lost, other, nil)
	for !c.closing.Load() {
		again, err := c.smf().Associate(context.Background(), a.Peer)
		if err != nil {
			pause(context.Background(), restartDelay)
			continue
		}
		c.mu.Lock()
		lost.Association, c.assocs[lost.Name] = again, again
		c.mu.Unlock()
		c.say("%s is associated again", lost.Name)
		if lost == &c.network.Anchor {
			ctx, cancel := context.WithTimeout(context.Background(), convergence)
			c.restore(other, lost, func() error { return waitRouted(ctx, c.top.routers[0].name) })
			cancel()
		}
		return
	}
}

// smf is the client that has the gateways.
func (c *controllers) smf() *smf.Client { return c.clients[len(c.clients)-1] }

// restore moves all sessions from one gateway to another. ready, where given, waits until routing leads there; until
// then both have them.
func (c *controllers) restore(from, to *smf.Function, ready func() error) {
	began := time.Now()
	c.mu.Lock()
	bearers := c.bearers
	c.mu.Unlock()
	work := make(chan *smf.Bearer)
	var group sync.WaitGroup
	var mu sync.Mutex
	var failed error
	moved := 0
	for range min(attachers, len(bearers)) {
		group.Add(1)
		go func() {
			defer group.Done()
			for b := range work {
				err := restoreOne(b, to, ready)
				mu.Lock()
				if moved++; err != nil {
					moved--
					failed = errors.Join(failed, err)
				}
				mu.Unlock()
			}
		}()
	}
	for _, b := range bearers {
		if b.AnchoredAt() == from.Name {
			work <- b
		}
	}
	close(work)
	group.Wait()
	if failed != nil {
		c.problem("sessions of %s are not restored at %s: %v", from.Name, to.Name, failed)
	}
	c.say("%d sessions restored at %s in %d ms", moved, to.Name, time.Since(began).Milliseconds())
}

// restoreOne repeats what a gateway refuses that has just been started: its data plane is away (TS 29.244 §8.2.1,
// cause 75).
func restoreOne(b *smf.Bearer, to *smf.Function, ready func() error) error {
	for until := time.Now().Add(convergence); ; {
		err := b.Restore(context.Background(), to, ready)
		var refusal *smf.Refusal
		if !errors.As(err, &refusal) || refusal.Cause != pfcp.CauseNoResources || time.Now().After(until) {
			return err
		}
		time.Sleep(restartDelay)
	}
}

// ---- what is killed -------------------------------------------------------------------------------------------------

func kill(list []*process) {
	for _, p := range list {
		syscall.Kill(int(p.pid.Load()), syscall.SIGKILL)
	}
}

func hold(list []*process, on bool) {
	for _, p := range list {
		p.held.Store(on)
	}
}

// settled waits until the first gateway has all traffic and sessions, and every probe is answered.
func (d Demonstration) settled(ctx context.Context, probes []*probe) error {
	ctx, cancel := context.WithTimeout(ctx, convergence)
	defer cancel()
	for {
		err := d.preferred(ctx)
		if err == nil && d.answered(ctx, probes, settledAnswers) {
			return nil
		}
		if e := pause(ctx, 100*time.Millisecond); e != nil {
			return fmt.Errorf("%s does not have its traffic again: %w", gatewayName(0), errors.Join(err, e))
		}
	}
}

const settledAnswers = 300 // in a row, of each probe, within ten times as many milliseconds

// waitRouted waits until routing leads to the first gateway, and that has a way back.
func waitRouted(ctx context.Context, router string) error {
	for {
		err := routed(ctx, router)
		if err == nil {
			return nil
		}
		if e := pause(ctx, 100*time.Millisecond); e != nil {
			return errors.Join(err, e)
		}
	}
}

// routed: routing at the first router leads to the first gateway.
func routed(ctx context.Context, router string) error {
	for _, target := range []netip.Addr{serviceIPv4, ueAddresses(1).IPv4, host(ueAddresses(1).IPv6)} {
		out, err := inNode(ctx, router, "ip", "route", "get", target.String()).CombinedOutput()
		if err != nil || !strings.Contains(string(out), " dev "+gatewayName(0)+" ") {
			return fmt.Errorf("%s goes elsewhere: %s", target, out)
		}
	}
	return nil
}

// preferred: routing and sessions are at the first gateway.
func (c *controllers) preferred(ctx context.Context) error {
	if err := routed(ctx, c.top.routers[0].name); err != nil {
		return err
	}
	c.mu.Lock()
	bearers := c.bearers
	c.mu.Unlock()
	for _, b := range bearers {
		if at := b.AnchoredAt(); at != gatewayName(0) {
			return fmt.Errorf("UE %s is at %s", b.UE.IPv4, at)
		}
	}
	return nil
}

// answered waits until all probes have more answers.
func (d Demonstration) answered(ctx context.Context, probes []*probe, count uint64) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(10*count)*time.Millisecond)
	defer cancel()
	for _, p := range probes {
		for from := p.count(); p.count() < from+count; {
			if pause(ctx, 5*time.Millisecond) != nil {
				return false
			}
		}
	}
	return true
}

// Takeover kills everything of the first gateway under traffic, and brings it back.
func (d Demonstration) Takeover(ctx context.Context) error {
	probes, err := d.startProbes()
	if err != nil {
		return err
	}
	defer stopProbes(probes)
	if err := d.settled(ctx, probes); err != nil {
		return err
	}
	all := d.named("* of " + gatewayName(0))
	reset(probes)
	hold(all, true)
	kill(all)
	again := d.answered(ctx, probes, 3*settledAnswers) || d.answered(ctx, probes, settledAnswers)
	d.report(fmt.Sprintf("%s killed", gatewayName(0)), probes)
	if !again {
		return errors.New("nobody took over")
	}
	reset(probes)
	hold(all, false)
	if err := d.settled(ctx, probes); err != nil {
		return err
	}
	d.report(gatewayName(0)+" back", probes)
	return nil
}

// startupTime is how long FRR's bgpd announces that it is restarting (its preset restart time, counted from its start).
// A neighbour that restarts meanwhile does not wait for its routes (RFC 4724 section 4.1), and gives up its own.
const startupTime = 125 * time.Second

// Restarts kills the first gateway's processes one by one; each is started again.
func (d Demonstration) Restarts(ctx context.Context) error {
	probes, err := d.startProbes()
	if err != nil {
		return err
	}
	defer stopProbes(probes)
	if d.opt.Graceful {
		d.say("waiting until the routers' bgpd have been up for %s", startupTime)
		if err := pause(ctx, startupTime); err != nil {
			return err
		}
	}
	programs := append(d.daemons(), "isthmus-dp", "isthmus")
	slices.Reverse(programs)
	for _, program := range programs {
		if err := d.settled(ctx, probes); err != nil {
			return err
		}
		reset(probes)
		name := program + " of " + gatewayName(0)
		list := d.named(name)
		before := list[0].pid.Load()
		kill(list)
		for list[0].pid.Load() == before {
			if err := pause(ctx, 5*time.Millisecond); err != nil {
				return err
			}
		}
		d.answered(ctx, probes, 2*settledAnswers)
		if err := d.settled(ctx, probes); err != nil {
			return fmt.Errorf("%s was killed: %w", name, err)
		}
		d.report(name+" killed", probes)
	}
	return nil
}
