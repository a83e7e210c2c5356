// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
)

// The shares where the file says nothing: of all buffers, or of a half or less where the ports' descriptors leave no
// room.
func TestBuffers(t *testing.T) {
	card := "\nports:\n  - {name: a, driver: pci, device: '0000:01:00.0', role: core}\n  - {name: b, driver: pci, " +
		"device: '0000:01:00.1', role: core}\n"
	for _, r := range []struct {
		name, text string
		want       Buffers
	}{
		{"defaults", "engine: {}\n", Buffers{Scheduled: 8192, Paging: 4096, Fragments: 2048, Neighbour: 1024,
			HandedOver: 4096, Punted: 2048}},
		{"two cards", "engine: {workers: 2}" + card, Buffers{Scheduled: 8192, Paging: 4096, Fragments: 2048,
			Neighbour: 1024, HandedOver: 4096, Punted: 2048}},
		{"two cards, four workers", "engine: {workers: 4}" + card,
			Buffers{Scheduled: 4096, Paging: 2048, Fragments: 1024, Neighbour: 512, HandedOver: 2048, Punted: 1024}},
		{"said", "engine: {limits: {buffered_packets: 20000, held_packets: 8}}\n",
			Buffers{Scheduled: 4096, Paging: 20000, Fragments: 1024, Neighbour: 8, HandedOver: 2048, Punted: 1024}},
		{"least", "engine: {packet_buffers: 1024}\n", Buffers{Scheduled: 256, Paging: 128, Fragments: 64, Neighbour: 32,
			HandedOver: 128, Punted: 64}},
	} {
		t.Run(r.name, func(t *testing.T) {
			testkit.Equal(t, mustParse(t, r.text).Buffers, r.want, "buffers")
		})
	}
}

// Whatever the file says: what may be held and what receiving needs are all of the buffers at most, or the file is
// refused.
func TestBuffersSum(t *testing.T) {
	for workers := 1; workers <= 16; workers++ {
		for all := 1024; all <= 1<<20; all *= 4 {
			for _, paging := range []int{0, all / 4, all * 7 / 8, all} {
				for ports := 0; ports < 4; ports++ {
					text := fmt.Sprintf("engine: {workers: %d, packet_buffers: %d, limits: {buffered_packets: %d}}\n",
						workers, all, paging)
					if ports > 0 {
						text += "ports:\n"
					}
					for i := range ports {
						text += fmt.Sprintf("  - {name: p%d, driver: pci, device: '0000:01:00.%d', role: core}\n", i, i)
					}
					c, err := Parse("x.yaml", []byte(text))
					if err != nil {
						if !strings.Contains(err.Error(), "engine.packet_buffers") {
							t.Fatal(err)
						}
						continue
					}
					b, n := c.Buffers, uint64(workers)
					held := uint64(b.Paging + b.Scheduled + b.Fragments + b.Neighbour + b.HandedOver + b.Punted)
					if need := n*256 + n*64*uint64(ports) + 2048*n*uint64(ports); held+need > uint64(all) {
						t.Errorf("%s%d held and %d to receive are more than %d", text, held, need, all)
					}
				}
			}
		}
	}
}
