// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"isthmus/api"
)

// Next hop objects (RTM_NEWNEXTHOP): routes name them, and change with them. A removed object's routes go without a
// message. FRR uses them by default.

const (
	attributeNextHop = 30 // RTA_NH_ID
	attributeBridge  = 11 // NHA_FDB
	groupEntry       = 8  // struct nexthop_grp
)

// nextHop is one object; a group's members are others.
type nextHop struct {
	gateway   []byte
	device    uint32
	flags     uint32 // RTNH_F_
	blackhole bool
	tunnel    bool // NHA_ENCAP
	group     []uint32
}

// decodeNextHop reads a message behind the netlink header; false: malformed, or not about routes.
func decodeNextHop(b []byte) (id uint32, n nextHop, ok bool) {
	if len(b) < unix.SizeofNhmsg {
		return 0, n, false
	}
	n.flags = binary.NativeEndian.Uint32(b[4:])
	bridge := false
	ok = eachAttribute(b[unix.SizeofNhmsg:], func(kind uint16, value []byte) {
		switch kind {
		case unix.NHA_ID:
			id = number(value)
		case unix.NHA_GROUP:
			for ; len(value) >= groupEntry; value = value[groupEntry:] {
				n.group = append(n.group, number(value))
			}
		case unix.NHA_BLACKHOLE:
			n.blackhole = true
		case unix.NHA_OIF:
			n.device = number(value)
		case unix.NHA_GATEWAY:
			n.gateway = slices.Clone(value)
		case unix.NHA_ENCAP:
			n.tunnel = true
		case attributeBridge:
			bridge = true
		}
	})
	return id, n, ok && id != 0 && !bridge
}

// setNextHop notes an object, or that it is gone; settleNextHops has its routes follow.
func (t *table) setNextHop(b []byte, there bool) {
	id, n, ok := decodeNextHop(b)
	if !ok {
		return
	}
	if there {
		t.nextHops[id] = n
	} else {
		delete(t.nextHops, id)
	}
	t.changed[id] = true
}

// settleNextHops makes the routes of objects that changed again. No list of an object's routes is kept: changes of
// objects that have some are rare, and come many at once.
func (t *table) settleNextHops() {
	if len(t.changed) == 0 {
		return
	}
	for id, n := range t.nextHops {
		if slices.ContainsFunc(n.group, func(member uint32) bool { return t.changed[member] }) {
			t.changed[id] = true
		}
	}
	maps.DeleteFunc(t.changed, func(id uint32, _ bool) bool { return t.users[id] == 0 })
	if len(t.changed) > 0 {
		for p, e := range t.routes {
			t.renew(p, &e)
		}
	}
	clear(t.changed)
}

// renew makes a prefix's routes by objects that changed again.
func (t *table) renew(p Prefix, e *entry) {
	var room [4]candidate
	list := t.candidates(p, e, room[:])
	if !slices.ContainsFunc(list, func(c candidate) bool { return t.changed[c.nextHop] }) {
		return
	}
	now := make([]candidate, 0, len(list))
	for _, c := range list {
		if t.changed[c.nextHop] {
			if _, there := t.nextHops[c.nextHop]; !there {
				continue
			}
			c.by(t.byNextHop(c.nextHop))
		}
		now = append(now, c)
	}
	if t.put(p, *e, list, now) {
		t.note(p)
	}
}

// byNextHop is a route by an object.
func (t *table) byNextHop(id uint32) Route {
	n, there := t.nextHops[id]
	if there && n.blackhole {
		return Discarding(api.DiscardBlackhole)
	}
	members := n.group
	if there && members == nil {
		members = []uint32{id}
	}
	var paths []pathOf
	for _, id := range members {
		if m, there := t.nextHops[id]; there {
			paths = append(paths, pathOf{m.gateway, m.device, m.flags, m.tunnel, false})
		}
	}
	if len(paths) == 0 {
		return routeOf(&fate{left: left{reason: NoNextHop}})
	}
	return t.along(paths)
}

// readNextHops asks for all objects; a kernel before 5.3 has none.
func (t *table) readNextHops(socket *nl.SocketHandle) error {
	err := dump(socket, unix.RTM_GETNEXTHOP, unix.RTM_NEWNEXTHOP, make(header, unix.SizeofNhmsg), func() {
		clear(t.nextHops)
	}, func(body []byte) { t.setNextHop(body, true) })
	clear(t.changed)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}

// header is what follows the netlink header of a request.
type header []byte

func (h header) Len() int { return len(h) }

func (h header) Serialize() []byte { return h }
