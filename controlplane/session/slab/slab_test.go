// SPDX-License-Identifier: Apache-2.0

package slab

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"isthmus/controlplane/testkit"
)

// Records keep their contents, whatever was freed and used again.
func TestRecords(t *testing.T) {
	r := &Slab{}
	random := rand.New(rand.NewPCG(5, 6))
	type held struct {
		number uint64
		owner  uint32
		data   []byte
	}
	model := map[Handle]held{}
	for step := range 50000 {
		if len(model) > 0 && random.IntN(100) < 48 {
			for h := range model {
				delete(model, h)
				r.Drop(h)
				break
			}
			continue
		}
		want := held{uint64(step + 1), random.Uint32(), bytes.Repeat([]byte{byte(step)}, random.IntN(1300))}
		h := r.Add(want.number, want.owner, want.data)
		_, twice := model[h]
		testkit.FatalIf(t, twice || h == 0, "handle %#x is another's", h)
		model[h] = want
		if step%1000 == 0 {
			count := 0
			for range r.All() {
				count++
			}
			testkit.FatalIf(t, count != len(model) || count != r.Count,
				"%d records are passed, %d are there", count, len(model))
			for h, want := range model {
				if number, owner, data := r.Open(h); number != want.number || owner != want.owner ||
					!bytes.Equal(data, want.data) {
					t.Fatalf("%#x: %d %d %x", h, number, owner, data)
				}
			}
		}
	}
	for h := range model {
		r.Drop(h)
	}
	for class := range r.classes {
		testkit.ErrorIf(t, len(r.classes[class].pages) > 1 || len(r.long) > 0,
			"class %d keeps %d pages", class, len(r.classes[class].pages))
	}
}

// The byte count is that of the present records.
func TestRecordsCountBytes(t *testing.T) {
	all := &Slab{}
	var list []Handle
	for n := range 3000 {
		list = append(list, all.Add(uint64(n+1), 1, make([]byte, n)))
	}
	for _, h := range list[100:] {
		all.Drop(h)
	}
	want := uint64(99 * 100 / 2)
	testkit.ErrorIf(t, all.Bytes != want || all.Count != 100, "%d in %d, want %d", all.Bytes, all.Count, want)
}
