// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"isthmus/controlplane/pfcp"
	"isthmus/lab/smf"
)

// controllers are the control functions, and the sessions of their UEs.
type controllers struct {
	*journal
	opt     *Options
	top     *topology
	clients []*smf.Client
	network *smf.Network
	standby smf.Function // isp: takes over from the network's anchor
	closing atomic.Bool
	mu      sync.Mutex // of what follows, and of associations that take the place of others
	bearers []*smf.Bearer
	assocs  map[string]*smf.Association // by function
}

// associate starts the control functions and sets their associations up.
func (c *controllers) associate(ctx context.Context) error {
	c.network = &smf.Network{
		IPv6:       c.opt.IPv6,
		Measure:    smf.Measure{CountsForCharging: true},
		Classifier: smf.Classifier{To: edgeRange},
	}
	if c.opt.Generation == "5g" {
		c.network.Measure.QFI = 9
	}
	clients := make([]*smf.Client, len(c.top.cores))
	for i := range c.top.cores {
		one, err := c.client(&c.top.cores[i])
		if err != nil {
			return err
		}
		clients[i] = one
		c.clients = append(c.clients, one)
	}
	for _, f := range c.top.functions {
		a, err := clients[f.core].Associate(ctx, netip.AddrPortFrom(f.n4, pfcp.Port))
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		c.mu.Lock()
		c.assocs[f.name] = a
		c.mu.Unlock()
		part := smf.Function{Name: f.name, Association: a, Access: f.access, Core: f.coreSide, LocalCore: f.local}
		switch {
		case f.standby:
			c.standby = part
		case f.access == "radio":
			c.network.Radios = append(c.network.Radios, part)
		case f == c.top.functions[len(c.top.functions)-1]:
			c.network.Anchor = part
		default:
			c.network.Relays = append(c.network.Relays, part)
		}
	}
	return nil
}

// client starts one control function on its address.
func (c *controllers) client(of *core) (*smf.Client, error) {
	var conn *net.UDPConn
	err := inside("cp", func() error {
		var err error
		conn, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(of.addr, pfcp.Port)))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", of.title, err)
	}
	conn.SetReadBuffer(4 << 20)
	heartbeat, t1 := c.timers()
	return smf.New(smf.Options{
		Node: pfcp.NodeID{FQDN: of.name + ".lab"}, Conn: conn, Heartbeat: heartbeat, T1: t1,
		Handlers: smf.Handlers{
			Downlink:        c.network.Downlink,
			ErrorIndication: c.network.ErrorIndication,
			Lost: func(a *smf.Association, reason error) {
				c.problem("%s lost the association with %s: %v", of.title, a.ID, reason)
				c.gatewayLost(a)
			},
			Node: func(a *smf.Association, r *pfcp.NodeReportRequest) {
				for _, p := range r.Failed {
					c.problem("%s: the path to %s failed", a.ID, p.Addr)
				}
			},
		},
	}), nil
}

// attachers is how many UEs attach at a time.
const attachers = 32

// attach attaches all UEs, in the order of their numbers.
func (c *controllers) attach(ctx context.Context) error {
	bearers := make([]*smf.Bearer, c.opt.UEs)
	numbers := make(chan int)
	failed := make(chan error, attachers)
	var wg sync.WaitGroup
	for range min(attachers, c.opt.UEs) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range numbers {
				b, err := c.network.Attach(ctx, ueAddresses(i+1))
				if err != nil {
					failed <- fmt.Errorf("UE %d: %w", i+1, err)
					return
				}
				bearers[i] = b
			}
		}()
	}
	var err error
feed:
	for i := range bearers {
		select {
		case numbers <- i:
		case err = <-failed:
			break feed
		}
	}
	close(numbers)
	wg.Wait()
	select {
	case e := <-failed:
		err = errors.Join(err, e)
	default:
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.bearers = bearers
	c.mu.Unlock()
	return nil
}

// bearer of a UE, by its number from 1.
func (c *controllers) bearer(ue int) (*smf.Bearer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ue < 1 || ue > len(c.bearers) {
		return nil, fmt.Errorf("no UE %d; there are 1 to %d", ue, len(c.bearers))
	}
	return c.bearers[ue-1], nil
}

// relocation is how long the old radio node keeps a UE's session after its move, for packets still under way (as by
// TX2RELOCoverall, TS 36.423 §8.2.1). An end marker says nothing of uplink packets.
const relocation = time.Second

// Handover moves a UE to the other radio node. UE 1 takes the namespace's routes with it.
func (c *controllers) Handover(ctx context.Context, ue int) (string, error) {
	if len(c.network.Radios) < 2 {
		return "", errors.New("there is one radio node; start the lab with --handover for a second")
	}
	b, err := c.bearer(ue)
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(c.network.Radios, func(f smf.Function) bool { return f.Name == b.State().Radio })
	if at < 0 {
		return "", fmt.Errorf("UE %d is idle", ue)
	}
	target := (at + 1) % len(c.network.Radios)
	err = b.Handover(ctx, target, func() error {
		if ue != 1 {
			return nil
		}
		for _, line := range camp(target) {
			if err := command(ctx, "ip", append([]string{"-n", Prefix + "ue"}, fields(line)...)...); err != nil {
				return err
			}
		}
		return pause(ctx, relocation)
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("UE %d moved from %s to %s", ue, c.network.Radios[at].Name, c.network.Radios[target].Name), nil
}

// Idle releases a UE's radio side.
func (c *controllers) Idle(ctx context.Context, ue int) (string, error) {
	b, err := c.bearer(ue)
	if err != nil {
		return "", err
	}
	if err := b.Idle(ctx); err != nil {
		return "", err
	}
	return fmt.Sprintf("UE %d is idle; a packet from %s%s to it will page it", ue, Prefix,
		generations[c.opt.Generation].pdn), nil
}

// Wake brings an idle UE back.
func (c *controllers) Wake(ctx context.Context, ue int) (string, error) {
	b, err := c.bearer(ue)
	if err != nil {
		return "", err
	}
	if err := b.Wake(ctx); err != nil {
		return "", err
	}
	return fmt.Sprintf("UE %d is connected", ue), nil
}
