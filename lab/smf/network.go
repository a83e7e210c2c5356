// SPDX-License-Identifier: Apache-2.0

package smf

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"isthmus/controlplane/pfcp"
)

// Function is a user plane in a network, with the network instances of its two sides.
type Function struct {
	Name         string
	Association  *Association
	Access, Core string
	LocalCore    string // of a relay with an uplink classifier: the network beside it
}

// Network carries UEs over a chain of functions: a radio node, any number of relays, an anchor. Any goroutine may call
// it; calls for one bearer take turns.
type Network struct {
	Radios     []Function // the UE is at one of them
	Relays     []Function
	Anchor     Function
	IPv6       bool // GTP-U over IPv6
	Measure    Measure
	Classifier Classifier // without a UE; in use where a relay has a LocalCore

	Notified  atomic.Uint64 // reports that packets wait
	Pages     atomic.Uint64 // idle UEs brought back for them
	Handovers atomic.Uint64
	Repairs   atomic.Uint64 // after error indications
}

// Bearer is what a UE has in the functions.
type Bearer struct {
	UE      UE
	network *Network

	mu     sync.Mutex
	radio  *Session // nil: idle
	at     int      // which radio node
	chain  []*Session
	anchor *Function // the last of the chain's
}

// Attach makes a UE's sessions in the order of TS 23.401 §5.3.2.1: towards the network first, then to the radio.
func (n *Network) Attach(ctx context.Context, ue UE) (*Bearer, error) {
	b := &Bearer{UE: ue, network: n, anchor: &n.Anchor}
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.attach(ctx)
	if err != nil {
		b.remove(context.WithoutCancel(ctx))
		return nil, err
	}
	return b, nil
}

func (b *Bearer) attach(ctx context.Context) error {
	n := b.network
	var down *pfcp.FTEID
	for i := range n.Relays {
		f := &n.Relays[i]
		r := Relay{Access: f.Access, Core: f.Core, IPv6: n.IPv6, Down: down, Measure: Measure{QFI: n.Measure.QFI}}
		if f.LocalCore != "" {
			c := n.Classifier
			c.Instance, c.UE = f.LocalCore, b.UE
			r.Classifier = &c
		}
		s, err := b.establish(ctx, f, r.Request())
		if err != nil {
			return err
		}
		b.chain = append(b.chain, s)
		t, err := s.FTEID(Downlink)
		if err != nil {
			return err
		}
		down = &t
	}
	a := Anchor{Access: n.Anchor.Access, Core: n.Anchor.Core, UE: b.UE, Measure: n.Measure, IPv6: n.IPv6, Peer: down}
	s, err := b.establish(ctx, b.anchor, a.Request())
	if err != nil {
		return err
	}
	b.chain = append(b.chain, s)
	// Each relay gets the next one's uplink endpoint.
	for i := range n.Relays {
		up, err := b.chain[i+1].FTEID(Uplink)
		if err != nil {
			return err
		}
		far := Redirect(Uplink, pfcp.Core, n.Relays[i].Core, up, false)
		if err := b.modify(ctx, i, far); err != nil {
			return err
		}
	}
	return b.activate(ctx, 0, false)
}

func (b *Bearer) establish(ctx context.Context, f *Function, req *pfcp.SessionEstablishmentRequest) (*Session, error) {
	s, err := f.Association.Establish(ctx, req, b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	return s, nil
}

// hop is a function of the chain. The first is next to the radio, where downlink packets wait for idle UEs.
func (b *Bearer) hop(i int) *Function {
	if i < len(b.network.Relays) {
		return &b.network.Relays[i]
	}
	return b.anchor
}

func (b *Bearer) modify(ctx context.Context, hop int, far pfcp.UpdateFAR) error {
	_, err := b.chain[hop].Modify(ctx, &pfcp.SessionModificationRequest{UpdateFAR: []pfcp.UpdateFAR{far}})
	if err != nil {
		return fmt.Errorf("%s: %w", b.hop(hop).Name, err)
	}
	return nil
}

// activate makes the UE's session at a radio node and leads downlink packets there.
func (b *Bearer) activate(ctx context.Context, radio int, endMarker bool) error {
	n := b.network
	f := &n.Radios[radio]
	up, err := b.chain[0].FTEID(Uplink)
	if err != nil {
		return err
	}
	r := Radio{Radio: f.Access, Access: f.Core, UE: b.UE, QFI: n.Measure.QFI, IPv6: n.IPv6, Up: up}
	s, err := b.establish(ctx, f, r.Request())
	if err != nil {
		return err
	}
	old := b.radio
	b.radio = s
	down, err := s.FTEID(Downlink)
	if err == nil {
		err = b.modify(ctx, 0, Redirect(Downlink, pfcp.Access, b.hop(0).Access, down, endMarker))
	}
	if err != nil {
		b.radio = old
		s.Delete(context.WithoutCancel(ctx))
		return err
	}
	b.at = radio
	return nil
}

// Handover moves a UE to another radio node (TS 23.401 §5.5.1.1, TS 23.502 §4.9.1.2). It makes the session there,
// switches the path with end markers, moves the UE, and ends the session at the old node.
func (b *Bearer) Handover(ctx context.Context, radio int, move func() error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.radio
	if old == nil {
		return errors.New("the UE is idle")
	}
	if radio == b.at {
		return fmt.Errorf("the UE is at %s already", b.network.Radios[radio].Name)
	}
	if err := b.activate(ctx, radio, true); err != nil {
		return err
	}
	b.network.Handovers.Add(1)
	err := move()
	_, e := old.Delete(ctx)
	return errors.Join(err, e)
}

// Restore establishes a UE's session at another anchor next to it, with the UE's addresses (TS 23.527 §4.2: its former
// anchor is lost, or is back). It leads the radio's packets there once ready, where given, returns.
func (b *Bearer) Restore(ctx context.Context, anchor *Function, ready func() error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.network
	if len(n.Relays) > 0 || len(b.chain) != 1 {
		return errors.New("only a bearer with its radio node next to its anchor is restored")
	}
	a := Anchor{Access: anchor.Access, Core: anchor.Core, UE: b.UE, Measure: n.Measure, IPv6: n.IPv6}
	if b.radio != nil {
		down, err := b.radio.FTEID(Downlink)
		if err != nil {
			return err
		}
		a.Peer = &down
	}
	s, err := b.establish(ctx, anchor, a.Request())
	if err != nil {
		return err
	}
	if ready != nil {
		err = ready()
	}
	if b.radio != nil && err == nil {
		var up pfcp.FTEID
		if up, err = s.FTEID(Uplink); err == nil {
			far := Redirect(Uplink, pfcp.Core, n.Radios[b.at].Core, up, false)
			_, err = b.radio.Modify(ctx, &pfcp.SessionModificationRequest{UpdateFAR: []pfcp.UpdateFAR{far}})
		}
	}
	if err != nil {
		s.Delete(context.WithoutCancel(ctx))
		return err
	}
	old := b.chain[0]
	b.chain[0], b.anchor = s, anchor
	if old.Association.Alive() {
		_, err = old.Delete(ctx)
	}
	return err
}

// AnchoredAt names the function that anchors the UE's traffic.
func (b *Bearer) AnchoredAt() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.anchor.Name
}

// Idle releases the radio side (TS 23.401 §5.3.5, TS 23.502 §4.2.6): packets to the UE wait from now on, the first
// one pages it.
func (b *Bearer) Idle(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.radio == nil {
		return nil
	}
	if err := b.modify(ctx, 0, Suspend(Downlink)); err != nil {
		return err
	}
	old := b.radio
	b.radio = nil
	_, err := old.Delete(ctx)
	return err
}

// Wake brings an idle UE back, as after a service request.
func (b *Bearer) Wake(ctx context.Context) error {
	_, err := b.wake(ctx)
	return err
}

// wake returns whether the UE was idle.
func (b *Bearer) wake(ctx context.Context) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.radio != nil {
		return false, nil
	}
	return true, b.activate(ctx, b.at, false)
}

// Detach deletes the UE's sessions.
func (b *Bearer) Detach(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.remove(ctx)
}

func (b *Bearer) remove(ctx context.Context) error {
	var errs []error
	for _, s := range append([]*Session{b.radio}, b.chain...) {
		if s == nil {
			continue
		}
		if _, err := s.Delete(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	b.radio = nil
	return errors.Join(errs...)
}

// State is a bearer as a user sees it.
type State struct {
	Radio    string // empty: idle
	Sessions []*Session
}

// State of the bearer, sessions from the radio to the anchor.
func (b *Bearer) State() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := State{Sessions: slices.Clone(b.chain)}
	if b.radio != nil {
		s.Radio = b.network.Radios[b.at].Name
		s.Sessions = append([]*Session{b.radio}, s.Sessions...)
	}
	return s
}

// Anchored is the session that counts the UE's traffic.
func (b *Bearer) Anchored() *Session {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.chain) == 0 {
		return nil
	}
	return b.chain[len(b.chain)-1]
}

// Downlink pages a UE with waiting packets; it is meant for Handlers.Downlink of the clients.
func (n *Network) Downlink(s *Session, _ *pfcp.SessionReportRequest) {
	if b, ok := s.Tag.(*Bearer); ok && b.network == n {
		n.Notified.Add(1)
		idle, err := b.wake(context.Background())
		if idle {
			n.Pages.Add(1)
		}
		if err != nil {
			s.Association.client.opt.Log.Warn("paging failed", "error", err)
		}
	}
}

// ErrorIndication repairs a bearer whose radio node has lost the tunnel (TS 23.007 §21.7): as if the UE had become idle
// and was paged at once. It is meant for Handlers.ErrorIndication.
func (n *Network) ErrorIndication(s *Session, unknown []pfcp.FTEID) {
	b, ok := s.Tag.(*Bearer)
	if !ok || b.network != n {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.radio == nil || len(b.chain) == 0 || s != b.chain[0] {
		return
	}
	now, err := b.radio.FTEID(Downlink)
	if err != nil || !slices.ContainsFunc(unknown, func(f pfcp.FTEID) bool { return f.TEID == now.TEID }) {
		return // about an older tunnel
	}
	n.Repairs.Add(1)
	ctx := context.Background()
	b.radio.Delete(ctx)
	b.radio = nil
	if err := b.activate(ctx, b.at, false); err != nil {
		s.Association.client.opt.Log.Warn("a bearer could not be repaired", "error", err)
	}
}
