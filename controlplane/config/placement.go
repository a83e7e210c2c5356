// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"math/bits"
	"slices"

	"isthmus/api"
)

const (
	minPipes = 16
	maxPipes = 65536
)

// byName as a subport: the subscriber's name decides.
const byName = ^uint32(0)

// Placement is which pipes of the schedulers subscribers have, by port. A new configuration starts with the former
// one's, so that no subscriber moves because another is added or removed. Without it names decide, which moves few.
type Placement map[Name]PortPlacement

// PortPlacement is one scheduler's part: the pipes of each subport, and each subscriber's subport and pipe.
type PortPlacement struct {
	Pipes  []uint32             `json:"pipes"`
	Places map[string][2]uint32 `json:"places"`
}

// Placement of this configuration, for the next one.
func (c *Config) Placement() Placement {
	s := make(Placement, len(c.Schedulers))
	for i := range c.Schedulers {
		p := PortPlacement{Places: make(map[string][2]uint32, len(c.Subscribers))}
		for _, g := range c.Schedulers[i].Groups {
			p.Pipes = append(p.Pipes, g.Pipes)
		}
		s[c.Schedulers[i].Port] = p
	}
	for i := range c.Subscribers {
		if p, ok := s[c.Subscribers[i].From.Port]; ok {
			p.Places[c.Subscribers[i].Name] = [2]uint32{c.Subscribers[i].Subport, c.Subscribers[i].Pipe}
		}
	}
	return s
}

// spread is FNV-1a of a name, mixed so that any of its bits may choose.
func spread(name string) uint64 {
	h := api.DigestOf([]byte(name))
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	return h ^ h>>33
}

// placed is a subscriber on its way to a pipe.
type placed struct {
	*Subscriber
	hash uint64
	was  [2]uint32
	had  bool // `was` was its place
}

// placePipes gives every subscriber of a port with a scheduler its subport, pipe and worker, and subports their sizes.
func placePipes(k *checker) {
	lists := make(map[Name][]placed, len(k.Schedulers))
	for i := range k.Subscribers {
		h := &k.Subscribers[i]
		if s := k.schedulers[h.From.Port]; s != nil {
			was, had := k.before[s.Port].Places[h.Name]
			had = had && len(k.before[s.Port].Pipes) == len(s.Groups) // else all are spread again
			lists[s.Port] = append(lists[s.Port], placed{h, spread(h.Name), was, had})
		}
	}
	for i := range k.Schedulers {
		s := &k.Schedulers[i]
		list := lists[s.Port]
		delete(lists, s.Port) // a second scheduler of the port is refused already
		slices.SortFunc(list, func(a, b placed) int {
			return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.Name, b.Name))
		})
		used := s.chooseSubports(list)
		if len(used) > 0 && s.settlePipes(k, used) {
			s.choosePipes(list)
		}
	}
}

// chooseSubports settles the subports that names decide, and counts the subscribers of each.
func (s *Scheduler) chooseSubports(list []placed) []uint32 {
	used := make([]uint32, len(s.Groups))
	free := func(g uint32) int { return int(cmp.Or(s.Groups[g].Pipes, maxPipes)) - int(used[g]) }
	for _, h := range list {
		if h.Subport != byName {
			used[h.Subport]++
		}
	}
	take := func(h placed, g uint32) {
		h.Subport = g
		used[g]++
	}
	for _, h := range list {
		if h.Subport == byName && h.had && h.was[0] < uint32(len(used)) && free(h.was[0]) > 0 {
			take(h, h.was[0])
		}
	}
	for _, h := range list {
		if h.Subport != byName {
			continue
		}
		g := uint32(h.hash % uint64(len(used)))
		if free(g) <= 0 { // only then another one: that with the most room
			for other := range used {
				if free(uint32(other)) > free(g) {
					g = uint32(other)
				}
			}
		}
		take(h, g)
	}
	return used
}

// settlePipes gives each subport that did not ask for a size room for its subscribers. The power of two keeps a
// scheduler as it is when a few come or go, and it does not shrink before three quarters are empty.
func (s *Scheduler) settlePipes(k *checker, used []uint32) bool {
	ok := true
	before := k.before[s.Port].Pipes
	for g := range s.Groups {
		sub := &s.Groups[g]
		size := max(minPipes, uint32(1)<<bits.Len32(max(used[g], 1)-1))
		switch {
		case used[g] > maxPipes:
			k.fail(sub.At, "pipes", "%d subscribers in subport %d, at most %d", used[g], g, maxPipes)
			ok = false
		case sub.Pipes != 0 && used[g] > sub.Pipes:
			k.fail(sub.At, "pipes", "%d subscribers in subport %d, room for %d", used[g], g, sub.Pipes)
			ok = false
		case sub.Pipes == 0:
			sub.Pipes = size
			if len(before) == len(s.Groups) && before[g] > size && before[g] <= min(4*size, maxPipes) &&
				before[g]&(before[g]-1) == 0 {
				sub.Pipes = before[g]
			}
		}
	}
	return ok
}

// choosePipes keeps former pipes; other subscribers get the pipe of their name's hash, or the next free one.
func (s *Scheduler) choosePipes(list []placed) {
	taken := make([][]bool, len(s.Groups))
	for g := range taken {
		taken[g] = make([]bool, s.Groups[g].Pipes)
	}
	for i := range list {
		h := &list[i]
		h.Worker = uint16(s.Groups[h.Subport].Worker)
		pipes := taken[h.Subport]
		h.had = h.had && h.was[0] == h.Subport && h.was[1] < uint32(len(pipes)) && !pipes[h.was[1]]
		if h.had {
			h.Pipe = h.was[1]
			pipes[h.Pipe] = true
		}
	}
	for i := range list {
		h := &list[i]
		if h.had {
			continue
		}
		pipes := taken[h.Subport]
		mask := uint32(len(pipes) - 1)
		h.Pipe = uint32(h.hash>>32) & mask
		for pipes[h.Pipe] {
			h.Pipe = (h.Pipe + 1) & mask
		}
		pipes[h.Pipe] = true
	}
}
