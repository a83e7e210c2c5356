// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/lease"
	"isthmus/controlplane/radius"
	"isthmus/controlplane/session/store"
	"isthmus/controlplane/subscriber"
	"isthmus/controlplane/view"
)

// poolTime bounds what the table of pools waits for.
const poolTime = 5 * time.Second

// attemptsShown for subscribers selected by a key.
const attemptsShown = 16

// Rows are the signed-in subscribers, or those matching key, with their attempts.
func (s *SignIns) Rows(ctx context.Context, key string) ([]subscriber.Row, []subscriber.Attempt, error) {
	if s == nil {
		return nil, nil, nil
	}
	var found struct { // the loop may write it after the caller gave up
		rows     []subscriber.Row
		attempts []subscriber.Attempt
	}
	err := s.Loop.Ask(ctx, func() {
		found.rows = s.Loop.Rows(key)
		if key != "" {
			found.attempts = s.Loop.Attempts(key, attemptsShown)
		}
	})
	if err != nil {
		return nil, nil, err
	}
	return found.rows, found.attempts, nil
}

// AddressPools is view.SignIns'.
func (s *SignIns) AddressPools() (list []view.AddressPool) {
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), poolTime)
	defer cancel()
	var rows []lease.Row
	if s.Loop.Ask(ctx, func() { rows = s.pools.Rows() }) != nil {
		return nil
	}
	for _, r := range rows {
		list = append(list, view.AddressPool(r))
	}
	return list
}

// Senders is view.SignIns'.
func (s *SignIns) Senders() (list []view.Sender) {
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), poolTime)
	defer cancel()
	var rows []subscriber.SenderRow
	if s.Loop.Ask(ctx, func() { rows = s.Loop.Senders() }) != nil {
		return nil
	}
	for _, r := range rows {
		list = append(list, view.Sender(r))
	}
	return list
}

// FramesLost is view.SignIns'.
func (s *SignIns) FramesLost() uint64 {
	if s == nil {
		return 0
	}
	return s.Loop.FramesLost()
}

// RADIUS is view.SignIns'.
func (s *SignIns) RADIUS() (list []view.RADIUSServer) {
	if s == nil {
		return nil
	}
	state := s.AAA.State()
	add := func(use string, servers []radius.ServerState) {
		for i := range servers {
			r := &servers[i]
			n := &r.Counters
			v := view.RADIUSServer{Name: r.Name, Use: use, Address: r.Address, Transport: r.Transport,
				State: "dead", Since: r.Since,
				LastAnswer: r.LastAnswer, Requests: n.Requests, Repeated: n.Retransmitted,
				Accepts: n.Accepts, Rejects: n.Rejects,
				Responses: n.Responses, Timeouts: n.Timeouts, Waiting: n.Outstanding + n.Queued,
				Bad: n.WrongAddress + n.UnknownID + n.WrongAuthenticator + n.Unsigned + n.WrongSignature +
					n.SignatureLate +
					n.Malformed + n.UnexpectedCode}
			if r.Alive {
				v.State = "alive"
			}
			list = append(list, v)
		}
	}
	add("authentication", state.Authentication)
	add("accounting", state.Accounting)
	return list
}

var errNobody = errors.New("nobody signs in here: the configuration has no access.ports")

// Clear ends the sessions of who, for a cause by its name.
func (s *SignIns) Clear(ctx context.Context, who, word string) (out v1.Cleared, err error) {
	cause, known := subscriber.CauseOf(word)
	switch {
	case s == nil:
		return out, errNobody
	case who == "":
		return out, errors.New("subscriber: which one?")
	case !known:
		return out, fmt.Errorf("cause: %q is none of %s", word, strings.Join(subscriber.Causes(), ", "))
	}
	var ended int // the loop may write these after the caller gave up
	var several error
	if err = s.Loop.Ask(ctx, func() { ended, several = s.Loop.Clear(who, cause) }); err == nil {
		out.Ended, err = ended, several
	}
	if err == nil && out.Ended == 0 {
		err = fmt.Errorf("no subscriber who signed in is %q; isthmus show subscriber has all", who)
	}
	return out, err
}

// drainWait bounds what a drain waits for: the ends of sessions, then servers that take accounting.
const drainWait = time.Minute

// Enabled: subscribers sign in here.
func (s *SignIns) Enabled() bool { return s != nil }

// Drain refuses new sign-ins, and ends all sessions. Without sign-in there is nothing to do.
func (s *SignIns) Drain(ctx context.Context, out *v1.Drained) error {
	if s == nil {
		return nil
	}
	var ended int // the loop may write these after the caller gave up
	var drained <-chan struct{}
	if err := s.Loop.Ask(ctx, func() { ended, drained = s.Loop.Drain() }); err != nil {
		return err
	}
	out.SignIn, out.Ended = true, ended
	ctx, cancel := context.WithTimeout(ctx, drainWait)
	defer cancel()
	select {
	case <-drained:
	case <-ctx.Done():
	}
	if out.Accounting = s.AAA.Settled(ctx); out.Accounting > 0 {
		out.File = store.AccountsPath(s.opt.Store)
	}
	return nil
}

// Resume takes sign-ins again.
func (s *SignIns) Resume(ctx context.Context) error {
	if s == nil {
		return nil
	}
	var over bool // the loop may write it after the caller gave up
	if err := s.Loop.Ask(ctx, func() { over = s.Loop.Resume() }); err != nil {
		return err
	}
	if !over {
		return errors.New("sessions of the drain still end: try again in ten seconds")
	}
	return nil
}
