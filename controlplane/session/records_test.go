// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/session/store"
)

// Records are what was put into them, whatever was freed and used again.
func TestRecords(t *testing.T) {
	r := &records{}
	random := rand.New(rand.NewPCG(5, 6))
	type held struct {
		number uint64
		owner  uint32
		data   []byte
	}
	model := map[handle]held{}
	for step := range 50000 {
		if len(model) > 0 && random.IntN(100) < 48 {
			for h := range model {
				delete(model, h)
				r.drop(h)
				break
			}
			continue
		}
		want := held{uint64(step + 1), random.Uint32(), bytes.Repeat([]byte{byte(step)}, random.IntN(1300))}
		h := r.add(want.number, want.owner, want.data)
		if _, twice := model[h]; twice || h == 0 {
			t.Fatalf("handle %#x is another's", h)
		}
		model[h] = want
		if step%1000 == 0 {
			count := 0
			for at := (cursor{}); ; count++ {
				if _, _, ok := r.next(&at); !ok {
					break
				}
			}
			if count != len(model) {
				t.Fatalf("%d records are passed, %d are there", count, len(model))
			}
			for h, want := range model {
				if number, owner, data := r.open(h); number != want.number || owner != want.owner || !bytes.Equal(data, want.data) {
					t.Fatalf("%#x: %d %d %x", h, number, owner, data)
				}
			}
		}
	}
	for h := range model {
		r.drop(h)
	}
	for class := range r.classes {
		if len(r.classes[class].pages) > 1 || len(r.long) > 0 {
			t.Errorf("class %d keeps %d pages", class, len(r.classes[class].pages))
		}
	}
}

// What the data plane refuses leaves no record behind: neither of a session that was to be, nor of what one was to become.
func TestRefusedLeavesNoRecord(t *testing.T) {
	p, err := Open("", testSettings(), nil)
	must(t, err)
	defer p.Close()
	d := &strict{t: t, held: heldNothing()}
	p.Attach(d)
	b := &bench{Plane: p, t: t}
	seid := b.atOnce(request(1, "10.46.0.1"), 0)
	was := b.data(seid)
	for i, m := range []pfcp.Message{request(2, "10.46.0.2"), &pfcp.SessionDeletionRequest{}, &pfcp.SessionModificationRequest{
		UpdatePDR: []pfcp.UpdatePDR{{ID: 1, Precedence: ptr(uint32(7))}}}} {
		d.refuse = true
		b.atOnce(m, seid)
		number := 0
		for at := (cursor{}); ; number++ {
			if _, _, ok := p.x.records.next(&at); !ok {
				break
			}
		}
		if number != 1 || b.data(seid) != was || d.refuse {
			t.Errorf("request %d: %d records of one session", i, number)
		}
	}
}

// The bytes of all records are those of the records that are there.
func TestRecordsCountBytes(t *testing.T) {
	all := &records{}
	var list []handle
	for n := range 3000 {
		list = append(list, all.add(uint64(n+1), 1, make([]byte, n)))
	}
	for _, h := range list[100:] {
		all.drop(h)
	}
	if want := uint64(100*store.Overhead + 99*100/2); all.bytes != want {
		t.Errorf("%d, want %d", all.bytes, want)
	}
}
