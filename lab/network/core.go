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

	"isthmus/controlplane/pfcp"
	"isthmus/lab/smf"
)

// associate starts the control functions and sets their associations up.
func (l *Lab) associate(ctx context.Context) error {
	l.network = &smf.Network{
		IPv6:       l.opt.IPv6,
		Measure:    smf.Measure{CountsForCharging: true},
		Classifier: smf.Classifier{To: edgeRange},
	}
	if l.opt.Generation == "5g" {
		l.network.Measure.QFI = 9
	}
	clients := make([]*smf.Client, len(l.top.cores))
	for i := range l.top.cores {
		c, err := l.client(&l.top.cores[i])
		if err != nil {
			return err
		}
		clients[i] = c
		l.clients = append(l.clients, c)
	}
	for _, f := range l.top.functions {
		a, err := clients[f.core].Associate(ctx, netip.AddrPortFrom(f.n4, pfcp.Port))
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		l.mu.Lock()
		l.assocs[f.name] = a
		l.mu.Unlock()
		part := smf.Function{Name: f.name, Association: a, Access: f.access, Core: f.coreSide, LocalCore: f.local}
		switch {
		case f.standby:
			l.standby = part
		case f.access == "radio":
			l.network.Radios = append(l.network.Radios, part)
		case f == l.top.functions[len(l.top.functions)-1]:
			l.network.Anchor = part
		default:
			l.network.Relays = append(l.network.Relays, part)
		}
	}
	return nil
}

// client starts one control function on its address.
func (l *Lab) client(c *core) (*smf.Client, error) {
	var conn *net.UDPConn
	err := inside("cp", func() error {
		var err error
		conn, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(c.addr, pfcp.Port)))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.title, err)
	}
	conn.SetReadBuffer(4 << 20)
	heartbeat, t1 := l.timers()
	return smf.New(smf.Options{
		Node: pfcp.NodeID{FQDN: c.name + ".lab"}, Conn: conn, Heartbeat: heartbeat, T1: t1,
		Handlers: smf.Handlers{
			Downlink:        l.network.Downlink,
			ErrorIndication: l.network.ErrorIndication,
			Lost: func(a *smf.Association, reason error) {
				l.problem("%s lost the association with %s: %v", c.title, a.ID, reason)
				l.gatewayLost(a)
			},
			Node: func(a *smf.Association, r *pfcp.NodeReportRequest) {
				for _, p := range r.Failed {
					l.problem("%s: the path to %s failed", a.ID, p.Addr)
				}
			},
		},
	}), nil
}

// problem notes what `isthmus lab show` tells and prints it.
func (l *Lab) problem(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	l.mu.Lock()
	if len(l.problems) < 100 {
		l.problems = append(l.problems, text)
	}
	l.mu.Unlock()
	l.say("%s", text)
}

// attachers is how many UEs attach at a time.
const attachers = 32

// attach attaches all UEs, in the order of their numbers.
func (l *Lab) attach(ctx context.Context) error {
	bearers := make([]*smf.Bearer, l.opt.UEs)
	numbers := make(chan int)
	failed := make(chan error, attachers)
	var wg sync.WaitGroup
	for range min(attachers, l.opt.UEs) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range numbers {
				b, err := l.network.Attach(ctx, ueAddresses(i+1))
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
	l.mu.Lock()
	l.bearers = bearers
	l.mu.Unlock()
	return nil
}

// bearer of a UE, by its number from 1.
func (l *Lab) bearer(ue int) (*smf.Bearer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ue < 1 || ue > len(l.bearers) {
		return nil, fmt.Errorf("no UE %d; there are 1 to %d", ue, len(l.bearers))
	}
	return l.bearers[ue-1], nil
}

// Handover moves a UE to the other radio node. UE 1 takes the namespace's routes with it.
func (l *Lab) Handover(ctx context.Context, ue int) (string, error) {
	if len(l.network.Radios) < 2 {
		return "", errors.New("there is one radio node; start the lab with --handover for a second")
	}
	b, err := l.bearer(ue)
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(l.network.Radios, func(f smf.Function) bool { return f.Name == b.State().Radio })
	if at < 0 {
		return "", fmt.Errorf("UE %d is idle", ue)
	}
	target := (at + 1) % len(l.network.Radios)
	err = b.Handover(ctx, target, func() error {
		if ue != 1 {
			return nil
		}
		for _, line := range l.camp(target) {
			if err := command(ctx, "ip", append([]string{"-n", Prefix + "ue"}, fields(line)...)...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("UE %d moved from %s to %s", ue, l.network.Radios[at].Name, l.network.Radios[target].Name), nil
}

// Idle releases a UE's radio side.
func (l *Lab) Idle(ctx context.Context, ue int) (string, error) {
	b, err := l.bearer(ue)
	if err != nil {
		return "", err
	}
	if err := b.Idle(ctx); err != nil {
		return "", err
	}
	return fmt.Sprintf("UE %d is idle; a packet from %s%s to it will page it", ue, Prefix, generations[l.opt.Generation].pdn), nil
}

// Wake brings a UE back by itself.
func (l *Lab) Wake(ctx context.Context, ue int) (string, error) {
	b, err := l.bearer(ue)
	if err != nil {
		return "", err
	}
	if err := b.Wake(ctx); err != nil {
		return "", err
	}
	return fmt.Sprintf("UE %d is connected", ue), nil
}
