// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

// between calls fn before each page of sessions but the first.
type between struct {
	*dp.Client
	pages int
	fn    func(page int)
}

func (b *between) List(ctx context.Context, l api.List) ([]api.Digest, bool, error) {
	if l.Kind == api.KindSession {
		if b.pages++; b.pages > 1 {
			b.fn(b.pages)
		}
	}
	return b.Client.List(ctx, l)
}

func TestResynchronise(t *testing.T) {
	b := start(t, "", testSettings())
	var seids []uint64
	for i := range uint32(350) { // more than three pages of the test's data plane
		seids = append(seids, b.establish(smf1, request(i+1, fmt.Sprintf("10.46.%d.%d", i>>8, i&255))).UP.SEID)
	}
	want := b.s.Held()
	link := b.c
	if out, err := b.Resynchronise(t.Context(), link); err != nil || out != (Outcome{}) {
		t.Fatalf("nothing differs: %+v %v", out, err)
	}
	broken := b.s.Held()
	delete(broken, heldID(seids[3]))
	delete(broken, heldID(seids[349]))
	broken[heldID(seids[7])] = broken[heldID(seids[8])]
	broken[heldID(1<<63)] = broken[heldID(seids[8])]
	broken[dptest.ID{Kind: api.KindSession, Key: "home-1"}] = broken[heldID(seids[8])] // the configuration's
	paths := 0
	for id := range broken {
		if id.Kind == api.KindPath {
			delete(broken, id)
			paths++
		}
	}
	b.s.SetHeld(broken)
	out, err := b.Resynchronise(t.Context(), link)
	testkit.FatalIf(t, err != nil || out.Put != 3+paths || out.Deleted != 1 || out.Refused != 0, "%+v %v", out, err)
	held := b.s.Held()
	if delete(held, dptest.ID{Kind: api.KindSession, Key: "home-1"}); !equalHeld(held, want) {
		t.Error("the data plane is not in step")
	}
	// Sessions that come, change and go between the pages.
	n := uint32(1000)
	changing := &between{Client: link, fn: func(page int) {
		n++
		b.establish(smf1, request(n, fmt.Sprintf("10.47.0.%d", page)))
		wants(t, pfcp.CauseAccepted, b.delete(smf1, seids[10+page]))
		m := precedence(7)
		wants(t, pfcp.CauseAccepted, b.modify(smf1, seids[20+page], m))
	}}
	if out, err = b.Resynchronise(t.Context(), changing); err != nil || changing.pages < 4 {
		t.Fatalf("%+v %v, %d pages", out, err, changing.pages)
	}
	if out, err = b.Resynchronise(t.Context(), link); err != nil || out != (Outcome{}) {
		t.Errorf("left behind: %+v %v", out, err)
	}
	b.checkConsistent()
	ctx, cancel := context.WithCancel(t.Context())
	changing.pages, changing.fn = 0, func(int) { cancel() }
	if _, err := b.Resynchronise(ctx, changing); err == nil {
		t.Error("it does not end")
	}
}

// endless always announces more, without rows.
type endless struct {
	*dp.Client
	held []api.Digest
}

func (e endless) List(ctx context.Context, l api.List) ([]api.Digest, bool, error) {
	if l.Kind == api.KindSession {
		return e.held, true, nil
	}
	return e.Client.List(ctx, l)
}

func TestResynchroniseEnds(t *testing.T) {
	b := start(t, "", testSettings())
	for _, held := range [][]api.Digest{nil, make([]api.Digest, 1)} {
		_, err := b.Resynchronise(t.Context(), endless{b.c, held})
		testkit.ErrorIf(t, err == nil, "%d objects, and more: no error", len(held))
	}
}
