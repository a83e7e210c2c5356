// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
)

// Buffers is how many of engine.packet_buffers each holder of packets may have at most, in the whole process. Together
// they leave what receiving needs (dataplane/core/hold.h).
type Buffers struct {
	Paging, Scheduled, Fragments, Neighbour, HandedOver, Punted uint32
}

// What receiving needs, beside the descriptors of network cards.
const (
	buffersOfWalk   = 256 // a worker's other vectors: released, handed over, answers
	buffersOfVector = 64  // of one port
	descriptors     = 1024
)

// copying are the drivers that copy frames on receive and send: their rings hold none of our buffers (share has a pool
// of its own for what it lends).
var copying = map[string]bool{"synth": true, "inject": true, "share": true, "net_af_packet": true, "net_pcap": true,
	"net_memif": true}

// receiving returns the buffers that ports' descriptors hold, and those of the workers' walks and caches.
func (c *Config) receiving() (ports, workers uint64) {
	n := uint64(c.Engine.Workers)
	for _, p := range c.Ports {
		if copying[p.Driver] {
			continue
		}
		queues, size := uint64(p.Queues), uint64(p.QueueSize)
		if queues == 0 {
			queues = n
		}
		if size == 0 {
			size = descriptors
		}
		ports += (queues + n) * size
	}
	// One half more than its size is in a thread's cache before it drains (engine.c: start_pool).
	cache := min(256, uint64(c.Engine.PacketBuffers)/(16*(n+1))) * 3 / 2
	return ports, n*(buffersOfWalk+buffersOfVector*uint64(len(c.Ports))) + cache*(n+1)
}

// holder is one row of the sum: what the file says, or a share of packet_buffers.
type holder struct {
	name  string
	to    *uint32
	given uint32
	parts uint64 // of 32, where the file says nothing
}

func (c *Config) holders() []holder {
	l, b := &c.Engine.Limits, &c.Buffers
	return []holder{
		{"scheduled_packets", &b.Scheduled, l.ScheduledPackets, 8},
		{"buffered_packets", &b.Paging, l.BufferedPackets, 4},
		{"fragments", &b.Fragments, l.Fragments, 2},
		{"held_packets", &b.Neighbour, l.HeldPackets, 1},
		{"hand-over", &b.HandedOver, 0, 4},
		{"punted", &b.Punted, 0, 2},
	}
}

// fill sets all holders for shares of `base` and returns their sum.
func fill(list []holder, base uint64) (sum uint64) {
	for _, h := range list {
		*h.to = h.given
		if h.given == 0 {
			*h.to = uint32(base * h.parts / 32)
		}
		sum += uint64(*h.to)
	}
	return sum
}

// buffers divides engine.packet_buffers. By default the shares are of all, a half, a quarter or an eighth of the
// buffers. The steps are coarse since another limit needs a restart of the data plane, and another port should not.
func (e *Engine) buffers(k *checker) {
	all, list := uint64(e.PacketBuffers), k.holders()
	ports, workers := k.receiving()
	for base := all; base >= all/8; base /= 2 {
		if fill(list, base)+ports+workers <= all {
			return
		}
	}
	sum := fill(list, all/8)
	var rows []string
	for _, h := range list {
		rows = append(rows, fmt.Sprintf("%s %d", h.name, *h.to))
	}
	k.fail(e.At, "packet_buffers", "%d are too few: receiving needs %d (%d for the ports' descriptors, %d for %d "+
		"workers), and %d may be held (%s): %d together",
		all, ports+workers, ports, workers, e.Workers, sum, strings.Join(rows, ", "), ports+workers+sum)
}
