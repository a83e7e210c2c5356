// SPDX-License-Identifier: Apache-2.0

package intent

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/config"
	"isthmus/controlplane/kernel"
	"isthmus/controlplane/testkit"
)

const cloned = `
engine: {workers: 1}
ports:
  - {name: core, driver: inject, role: core}
  - {name: far, driver: inject, role: core}
interfaces:
  - {name: a, port: core, addresses: [10.1.0.1/24, "2001:db8:1::1/64"], clone: {device: a0, namespace: fabric}}
  - {name: b, port: far, addresses: [10.2.0.1/24], clone: {device: b0}}
  - {name: plain, port: far, outer_vlan: 7, addresses: [10.3.0.1/24]}
routes:
  - {prefix: 192.0.2.0/24, via: 10.1.0.9}
neighbours:
  - {interface: a, address: 10.1.0.9, mac: 02:00:00:00:00:09}
`

func clonedState(t *testing.T) State {
	t.Helper()
	c, err := config.Parse("test.yaml", []byte(cloned))
	testkit.Must(t, err)
	s, err := Compile(c)
	testkit.Must(t, err)
	return s
}

func prefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }

func routeVia(p, via, of string) kernel.RouteChange {
	hop := kernel.Hop{Interface: of}
	if via != "" {
		hop.Via = netip.MustParseAddr(via)
	}
	return kernel.RouteChange{At: kernel.Destination{Prefix: prefix(p)}, Route: kernel.RouteBy(hop)}
}

// kernelState has devices that are as the configuration has them.
func kernelState(routes ...kernel.RouteChange) kernel.State {
	st := kernel.State{Devices: map[string]kernel.Device{"a": {Up: true, MTU: 1500}, "b": {Up: true, MTU: 1500}},
		Routes: map[kernel.Destination]kernel.Route{}, Neighbours: map[kernel.Neighbour]kernel.MAC{}}
	for _, r := range routes {
		st.Routes[r.At] = r.Route
	}
	return st
}

func overlayOf(t *testing.T, st kernel.State) *Overlay {
	t.Helper()
	o := NewOverlay(clonedState(t), nil)
	o.Update(kernel.Changes{All: &st})
	return o
}

// made is an object of the overlay.
func (o *Overlay) made(id objectID) (Object, bool) {
	if it := o.find(id); it != nil {
		return o.make(it)
	}
	return Object{}, false
}

// interfaceOf returns an interface of the overlay, and whether it differs from the configuration's.
func interfaceOf(t *testing.T, o *Overlay, name string) (f api.Interface, differs bool) {
	t.Helper()
	f = o.interfaces[name].body
	key, err := api.MakeKey(name)
	testkit.Must(t, err)
	object, there := o.made(objectID{api.KindInterface, key})
	if there {
		_, err = api.ReadRow(object.Body, &f)
		testkit.Must(t, err)
	}
	return f, there && object.Digest != o.interfaces[name].own.Digest
}

// with has addresses.
func with(addresses ...string) kernel.Device {
	d := kernel.Device{Up: true, MTU: 1500}
	for _, a := range addresses {
		d.Addresses = append(d.Addresses, prefix(a))
	}
	return d
}

func TestOverlayInterfaces(t *testing.T) {
	many := make([]string, 12)
	for i := range many {
		many[i] = fmt.Sprintf("10.1.0.%d/24", 100+i)
	}
	for _, row := range []struct {
		what      string
		device    kernel.Device
		addresses uint32 // of a, of which the configuration has 2
		mtu       uint32
		down      bool
	}{
		{"as configured", with("10.1.0.1/24"), 2, 0, false},
		{"more addresses", with("10.9.0.1/24", "fe80::1/64"), 4, 0, false},
		{"more than there is room for", with(many...), api.MaxAddresses, 0, false},
		{"another interface's", with("10.2.0.1/24", "10.3.0.7/32"), 2, 0, false},
		{"another length", with("10.1.0.1/16"), 2, 0, false},
		{"nobody's", with("127.0.0.1/8"), 2, 0, false},
		{"MTU", kernel.Device{Up: true, MTU: 1400}, 2, 1400, false},
		{"MTU above the port's", kernel.Device{Up: true, MTU: 9000}, 2, 0, false},
		{"down", kernel.Device{MTU: 1500}, 2, 0, true},
	} {
		st := kernelState()
		st.Devices["a"] = row.device
		f, differs := interfaceOf(t, overlayOf(t, st), "a")
		if f.Count != row.addresses || f.MTU != row.mtu || (f.Flags&api.InterfaceDown != 0) != row.down ||
			differs != (row.addresses != 2 || row.mtu != 0 || row.down) {
			t.Errorf("%s: %d addresses, MTU %d, flags %d, %v", row.what, f.Count, f.MTU, f.Flags, differs)
		}
	}
}

func TestOverlayRoutes(t *testing.T) {
	discard := routeVia("198.51.100.0/24", "10.1.0.7", "a")
	discard.Route = kernel.Discarding(api.DiscardBlackhole)
	for _, row := range []struct {
		route kernel.RouteChange
		want  string // next hops; or why it is ignored; empty: an interface's own
	}{
		{routeVia("198.51.100.0/24", "10.1.0.7", "a"), "10.1.0.7@a"},
		{routeVia("198.51.100.0/24", "", "a"), "@a"},
		{routeVia("0.0.0.0/0", "10.2.0.7", "b"), "10.2.0.7@b"},
		{routeVia("2001:db8:9::/48", "fe80::7", "a"), "fe80::7@a"},
		{routeVia("2001:db8:9::/48", "2001:db8:1::7", "a"), "2001:db8:1::7@a"},
		{routeVia("198.51.100.0/24", "fe80::7", "a"), "fe80::7@a"},   // RFC 8950
		{routeVia("198.51.100.0/24", "10.2.0.7", "a"), "10.2.0.7@a"}, // on the link
		{discard, "discard 1"},
		{routeVia("192.0.2.0/24", "10.1.0.7", "a"), "configured"},
		{routeVia("198.51.100.0/24", "10.1.0.1", "a"), "ours"},
		{routeVia("198.51.100.0/24", "127.0.0.1", "a"), "gateway"},
		{routeVia("10.1.0.0/24", "", "a"), ""},
		{routeVia("10.3.0.0/24", "10.1.0.7", "a"), ""}, // another's
		{routeVia("198.51.100.0/24", "10.1.0.7", "nowhere"), "device"},
	} {
		o := overlayOf(t, kernelState(row.route))
		testkit.Equal(t, routeOf(t, o, row.route.At), row.want, "%v", row.route.At)
	}
}

// routeOf is a route of the overlay as text: its next hops, or the reason for none.
func routeOf(t *testing.T, o *Overlay, at kernel.Destination) string {
	t.Helper()
	object, taken := o.made(routeID(at))
	if !taken {
		list := o.IgnoredRoutes(10)
		testkit.Equal(t, len(list), len(o.Ignored()), "rows and kinds of what is ignored")
		if len(list) == 0 {
			return ""
		}
		testkit.Equal(t, list[0].Prefix, at.Prefix, "ignored")
		return list[0].Reason.String()
	}
	testkit.Equal(t, len(o.Ignored()), 0, "reasons of what is taken")
	var body api.Route
	rest, err := api.ReadRow(object.Body, &body)
	testkit.Must(t, err)
	if body.Discard != api.DiscardNone {
		return fmt.Sprint("discard ", body.Discard)
	}
	further, _, err := api.TakeRows[api.RouteHop](rest)
	testkit.Must(t, err)
	var words []string
	for _, h := range append([]api.RouteHop{{Via: body.Via, Interface: body.Interface}}, further...) {
		words = append(words, h.Via.String()+"@"+api.CString(h.Interface[:]))
	}
	return strings.Join(words, " ")
}

// A route stays by its next hops that are up, whichever is the first.
func TestOverlayDeadNextHops(t *testing.T) {
	at := kernel.Destination{Prefix: prefix("198.51.100.0/24")}
	both := kernel.RouteBy(kernel.Hop{Via: netip.MustParseAddr("10.1.0.7"), Interface: "a"},
		kernel.Hop{Via: netip.MustParseAddr("10.2.0.7"), Interface: "b"})
	for _, row := range []struct {
		down []string
		want string
	}{
		{nil, "10.1.0.7@a 10.2.0.7@b"},
		{[]string{"a"}, "10.2.0.7@b"},
		{[]string{"b"}, "10.1.0.7@a"},
		{[]string{"a", "b"}, "dead"},
	} {
		st := kernelState(kernel.RouteChange{At: at, Route: both})
		for _, name := range row.down {
			st.Devices[name] = kernel.Device{MTU: 1500}
		}
		testkit.Equal(t, routeOf(t, overlayOf(t, st), at), row.want, "down: %v", row.down)
	}
}

// Addresses without a link are interfaces without a port, but those that an interface of the VRF has.
func TestOverlayLoopback(t *testing.T) {
	s := clonedState(t)
	o, held := NewOverlay(s, nil), heldOf(s)
	at := func(text string) objectID { return loopbackKey("", netip.MustParseAddr(text)).id() }
	st := kernelState()
	own := []string{"10.255.0.1", "2001:db8:ff::1", "10.1.0.1", "10.3.0.1", "127.0.0.1", "10.1.0.77"}
	st.Loopback = map[string][]netip.Addr{}
	for _, text := range own {
		st.Loopback[""] = append(st.Loopback[""], netip.MustParseAddr(text))
	}
	o.Update(kernel.Changes{All: &st})
	sent(o, held)
	for i, want := range []bool{true, true, false, false, false, true} {
		testkit.Equal(t, held[at(own[i])] != 0, want, "%s", own[i])
	}
	object, _ := o.made(at("10.255.0.1"))
	var body api.Interface
	_, err := api.ReadRow(object.Body, &body)
	testkit.Must(t, err)
	address := body.Address[0].Netip()
	good := body.Count == 1 && address == prefix("10.255.0.1/32") && body.Port == [32]byte{}
	testkit.ErrorIf(t, !good, "%+v", body)
	// A refused object is left out alone; the others stay.
	key := at("2001:db8:ff::1").key
	testkit.ErrorIf(t, !o.Refuse(api.KindInterface, api.CString(key[:]), "why"), "no item")
	sent(o, held)
	testkit.ErrorIf(t, held[at("2001:db8:ff::1")] != 0 || held[at("10.255.0.1")] == 0, "held: %v", held)
	// An interface's that goes is the loopback device's.
	st.Devices["a"] = with("10.9.0.1/24")
	st.Loopback[""] = []netip.Addr{netip.MustParseAddr("10.9.0.1")}
	o.Update(kernel.Changes{All: &st})
	sent(o, held)
	testkit.ErrorIf(t, held[at("10.9.0.1")] != 0 || held[at("10.255.0.1")] != 0, "held: %v", held)
	st.Devices["a"] = with()
	o.Update(kernel.Changes{All: &st})
	sent(o, held)
	testkit.ErrorIf(t, held[at("10.9.0.1")] == 0, "held: %v", held)
	if want := heldOf(o.Over(s)); !maps.Equal(held, want) {
		t.Errorf("%d objects are held, %d should be", len(held), len(want))
	}
	for i := range 2 * mostLoopback {
		st.Loopback[""] = append(st.Loopback[""], netip.AddrFrom4([4]byte{10, 200, byte(i >> 8), byte(i)}))
	}
	o.Update(kernel.Changes{All: &st})
	sent(o, held)
	testkit.Equal(t, len(held)-len(s), mostLoopback, "of more than there is room for")
	n, why := o.Refused()
	testkit.ErrorIf(t, n != mostLoopback+1 || !strings.Contains(why, "loopback"), "%d refused: %s", n, why)
}

// The same device, address and route in two VRFs: both are taken, each with its own key; routes from one into the other
// are not.
func TestOverlayVRFs(t *testing.T) {
	c, err := config.Parse("test.yaml", []byte(`
ports: [{name: core, driver: inject, role: core}]
interfaces:
  - {name: a, port: core, addresses: [10.1.0.1/24], clone: {device: a0, namespace: fabric}}
  - {name: b, port: core, outer_vlan: 7, vrf: red, clone: {device: a0, namespace: red}}
`))
	testkit.Must(t, err)
	s, err := Compile(c)
	testkit.Must(t, err)
	o := NewOverlay(s, nil)
	p := prefix("192.0.2.0/24")
	st := kernelState(routeVia("192.0.2.0/24", "10.1.0.7", "a"))
	st.Devices["b"] = with("10.1.0.1/24")
	st.Routes[kernel.Destination{VRF: "red", Prefix: p}] = routeVia("192.0.2.0/24", "10.1.0.9", "b").Route
	all := kernel.Destination{VRF: "red", Prefix: prefix("0.0.0.0/0")}
	st.Routes[all] = routeVia("0.0.0.0/0", "10.1.0.7", "a").Route
	o.Update(kernel.Changes{All: &st})
	f, _ := interfaceOf(t, o, "b")
	testkit.Equal(t, f.Count, 1, "addresses of b")
	for vrf, via := range map[string]string{"": "10.1.0.7", "red": "10.1.0.9"} {
		object, there := o.made(routeID(kernel.Destination{VRF: vrf, Prefix: p}))
		var r api.Route
		_, err := api.ReadRow(object.Body, &r)
		is := there && err == nil && api.CString(r.VRF[:]) == vrf && r.Via.Netip().Addr().String() == via
		testkit.ErrorIf(t, !is,
			"route in VRF %q: %v %+v", vrf, there, r)
	}
	_, there := o.made(routeID(all))
	testkit.ErrorIf(t, there, "a route in red by an interface of the default VRF")
}

// sent applies pending changes to a data plane's state.
func sent(o *Overlay, held map[objectID]uint64) {
	deletes, puts := o.Pending()
	for _, d := range deletes {
		delete(held, objectID{d.Kind, d.Key})
	}
	for _, p := range puts {
		held[objectID{p.Kind, p.Key}] = p.Digest
	}
	o.Settled()
}

func heldOf(s State) map[objectID]uint64 {
	held := map[objectID]uint64{}
	for _, object := range s {
		held[objectID{object.Kind, object.Key}] = object.Digest
	}
	return held
}

// randomly changes something of a kernel's state, and returns the change.
func randomly(random *rand.Rand, st *kernel.State) kernel.Changes {
	vias := []string{"10.1.0.7", "10.2.0.7", "10.1.0.1", ""}
	c := kernel.Changes{Neighbours: map[kernel.Neighbour]kernel.MAC{}}
	p := netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18, byte(random.IntN(8)), 0}), 24)
	d := kernel.Destination{Prefix: p}
	host := netip.AddrFrom4([4]byte{10, 1, 0, byte(1 + random.IntN(12))})
	n := kernel.Neighbour{Interface: "a", Address: host}
	switch random.IntN(6) {
	case 0, 1:
		r := routeVia(p.String(), vias[random.IntN(4)], []string{"a", "b"}[random.IntN(2)])
		st.Routes[d], c.Routes = r.Route, []kernel.RouteChange{r}
	case 2:
		delete(st.Routes, d)
		c.Routes = []kernel.RouteChange{{At: d}}
	case 3:
		mac := kernel.MAC{2, 0, 0, 0, 0, byte(random.IntN(2))}
		st.Neighbours[n], c.Neighbours[n] = mac, mac
	case 4:
		delete(st.Neighbours, n)
		c.Neighbours[n] = kernel.MAC{}
	case 5:
		d := with(fmt.Sprintf("10.%d.0.1/24", 1+random.IntN(5)))
		d.Up, d.MTU = random.IntN(4) > 0, 1400+uint32(random.IntN(2))*100
		st.Devices["a"] = d
		c.All = &kernel.State{Devices: maps.Clone(st.Devices), Routes: maps.Clone(st.Routes),
			Neighbours: maps.Clone(st.Neighbours)}
	}
	return c
}

// However the kernel's state came about, the data plane has what it would have at once.
func TestOverlayModel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	s := clonedState(t)
	o := NewOverlay(s, nil)
	st := kernelState()
	first := kernelState()
	o.Update(kernel.Changes{All: &first})
	held := heldOf(s)
	for step := range 2000 {
		o.Update(randomly(random, &st))
		if random.IntN(3) > 0 {
			continue // the next transaction has more
		}
		sent(o, held)
		if want := heldOf(overlayOf(t, st).Over(s)); !maps.Equal(held, want) {
			t.Fatalf("step %d: %d objects are held, %d should be", step, len(held), len(want))
		}
	}
}

func TestOverlayRefusals(t *testing.T) {
	s := clonedState(t)
	long := routeVia("2001:db8:9:1111:2222:3333:4444:5555/128", "2001:db8:1::7", "a") // its key is a digest
	st := kernelState(routeVia("198.51.100.0/24", "10.1.0.7", "a"), long,
		routeVia("203.0.113.0/24", "10.9.0.7", "a"))
	st.Devices["a"] = with("10.9.0.1/24")
	o := NewOverlay(s, nil)
	o.Update(kernel.Changes{All: &st})
	if o.Refuse(api.KindRoute, "192.0.2.0/24", "why") || o.Refuse(api.KindPort, "core", "why") {
		t.Error("the configuration's objects are not the kernel's to leave out")
	}
	if !o.Refuse(api.KindRoute, "198.51.100.0/24", "why") {
		t.Error("a route of the kernel's is")
	}
	key := routeID(long.At).key
	testkit.ErrorIf(t, !o.Refuse(api.KindRoute, api.CString(key[:]), "why"), "so is one with a long name")
	held := heldOf(s)
	sent(o, held)
	id := func(p string) objectID { return routeID(kernel.Destination{Prefix: prefix(p)}) }
	if held[id("198.51.100.0/24")] != 0 || held[id("203.0.113.0/24")] == 0 {
		t.Error("the refused route is there, or the other one is not")
	}
	// An interface without the kernel's addresses; next hops are on its link all the same.
	if !o.Refuse(api.KindInterface, "a", "why") {
		t.Error("an interface of the kernel's is")
	}
	sent(o, held)
	want := heldOf(s)
	want[id("203.0.113.0/24")] = held[id("203.0.113.0/24")]
	if !maps.Equal(held, want) {
		t.Error("more is held than the configuration says, and what is not refused")
	}
	if n, why := o.Refused(); n != 3 || why != "why" {
		t.Errorf("%d refused: %q", n, why)
	}
	list := o.IgnoredRoutes(10)
	testkit.Equal(t, len(list), 2, "routes that are ignored")
	testkit.ErrorIf(t, list[0].Reason != kernel.Refused || list[0].Text != "why", "%+v", list[0])
	// All once more: another chance.
	o.Update(kernel.Changes{All: &st})
	sent(o, held)
	if n, _ := o.Refused(); n != 0 || held[routeID(kernel.Destination{Prefix: prefix("203.0.113.0/24")})] == 0 {
		t.Error("no other chance")
	}
	o.Clear()
	r := routeVia("198.51.100.0/24", "10.1.0.6", "a")
	o.Update(kernel.Changes{Routes: []kernel.RouteChange{r}})
	sent(o, held)
	if !maps.Equal(held, heldOf(s)) || !o.Empty() {
		t.Error("something is left")
	}
}

// More than there is room for: the others stay, and a removed one makes room in the same transaction.
func TestOverlayRoom(t *testing.T) {
	const room = 8
	c, err := config.Parse("test.yaml", []byte(strings.Replace(cloned, "{workers: 1}",
		fmt.Sprintf("{workers: 1, limits: {routes: %d, neighbours: %d}}", room+1, room+1), 1)))
	testkit.Must(t, err)
	s, err := Compile(c)
	testkit.Must(t, err)
	o, held := NewOverlay(s, nil), heldOf(s)
	count := func(kind uint32) (n int) {
		for id := range held {
			if id.kind == kind {
				n++
			}
		}
		return n
	}
	nth := func(i int) kernel.Destination {
		return kernel.Destination{Prefix: prefix(fmt.Sprintf("198.18.%d.0/24", i))}
	}
	st := kernelState()
	for i := range 3 * room {
		st.Routes[nth(i)] = routeVia(nth(i).Prefix.String(), "10.1.0.7", "a").Route
		host := netip.AddrFrom4([4]byte{10, 1, 0, byte(100 + i)})
		st.Neighbours[kernel.Neighbour{Interface: "a", Address: host}] = kernel.MAC{2, 0, 0, 0, 0, byte(i)}
	}
	o.Update(kernel.Changes{All: &st})
	for _, step := range []string{"a storm", "all once more"} {
		sent(o, held)
		testkit.Equal(t, count(api.KindRoute), room+1, "routes after %s", step)
		testkit.Equal(t, count(api.KindNeighbour), room+1, "neighbours after %s", step)
		n, why := o.Refused()
		testkit.ErrorIf(t, n != 4*room || !strings.Contains(why, "engine.limits."), "%d refused: %q", n, why)
		testkit.Equal(t, o.Ignored()[kernel.NoRoom], 2*room, "routes that are ignored after %s", step)
		o.Update(kernel.Changes{All: &st})
	}
	sent(o, held)
	// Half of the existing ones go, and new ones come, in one transaction and in any order.
	var changes []kernel.RouteChange
	for i := range 3 * room {
		if id := routeID(nth(i)); held[id] != 0 && len(changes) < room/2 {
			changes = append(changes, kernel.RouteChange{At: nth(i)})
		}
	}
	for i := range room / 2 {
		d := kernel.Destination{Prefix: prefix(fmt.Sprintf("198.19.%d.0/24", i))}
		changes = slices.Insert(changes, 0, routeVia(d.Prefix.String(), "10.1.0.7", "a"))
	}
	o.Update(kernel.Changes{Routes: changes})
	sent(o, held)
	testkit.Equal(t, count(api.KindRoute), room+1, "routes")
	for i := range room / 2 {
		d := kernel.Destination{Prefix: prefix(fmt.Sprintf("198.19.%d.0/24", i))}
		testkit.ErrorIf(t, held[routeID(d)] == 0, "%v found no room", d.Prefix)
	}
}

// Another configuration inherits the data plane's state from the one before.
func TestOverlayOfAnotherConfiguration(t *testing.T) {
	s := clonedState(t)
	o := overlayOf(t, kernelState(routeVia("198.51.100.0/24", "10.1.0.7", "a"),
		routeVia("203.0.113.0/24", "10.2.0.7", "b")))
	held := heldOf(s)
	sent(o, held)
	without := slices.DeleteFunc(slices.Clone(s), func(object Object) bool {
		return object.Kind == api.KindClone && object.Name() == "a"
	})
	next := NewOverlay(without, o)
	if _, there := next.made(routeID(kernel.Destination{Prefix: prefix("198.51.100.0/24")})); !there {
		t.Error("a route by an interface is forgotten before the kernel says so")
	}
	state := kernelState(routeVia("203.0.113.0/24", "10.2.0.7", "b"))
	delete(state.Devices, "a")
	next.Update(kernel.Changes{All: &state})
	sent(next, held)
	if !maps.Equal(held, heldOf(next.Over(s))) {
		t.Error("the data plane is not as the new configuration has it")
	}
}
