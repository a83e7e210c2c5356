// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/testkit"
)

// silent is a data plane that answers only when released.
type silent struct{ begun, end chan struct{} }

func (s silent) Commit(context.Context, []dp.Change) ([]api.Usage, error) {
	close(s.begun)
	<-s.end
	return nil, nil
}

// While a transaction waits for the data plane, metrics and show have the figures of before it.
func TestFiguresWhileTheDataPlaneIsSilent(t *testing.T) {
	p, other := many(t, 10)
	figures := func() string {
		return fmt.Sprint(p.Count(""), p.Count("smf2"), p.Counts().Established, p.PoolUse())
	}
	before := figures()
	s := silent{make(chan struct{}), make(chan struct{})}
	p.Attach(s)
	over := make(chan struct{})
	go func() {
		p.modify(&n4.Association{ID: "smf2"}, other, precedence(9))
		close(over)
	}()
	<-s.begun
	answer := make(chan string, 1)
	for range 3 {
		go func() { answer <- figures() }()
		testkit.Equal(t, testkit.Receive(t, answer), before, "figures meanwhile")
	}
	p.glances.sessions.Clear()
	go func() { answer <- fmt.Sprint(p.Count("smf2")) }() // of which nothing is known: it waits
	close(s.end)
	testkit.Receive(t, answer)
	<-over
	testkit.Until(t, "figures of now", func() bool { return p.Counts().Modified > 0 })
}
