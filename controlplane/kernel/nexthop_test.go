// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"isthmus/api"
	"isthmus/controlplane/testkit"
)

// pair makes a veth device that is up, whose carrier its peer is.
func (w *world) pair(name string, addresses ...string) {
	w.t.Helper()
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: name + "p"}
	testkit.Must(w.t, w.h.LinkAdd(veth))
	w.carrier(name, true)
	l, err := w.h.LinkByName(name)
	testkit.Must(w.t, err)
	testkit.Must(w.t, w.h.LinkSetUp(l))
	for _, a := range addresses {
		testkit.Must(w.t, w.h.AddrAdd(l, w.address(a)))
	}
}

func (w *world) carrier(name string, up bool) {
	w.t.Helper()
	peer, err := w.h.LinkByName(name + "p")
	testkit.Must(w.t, err)
	if up {
		err = w.h.LinkSetUp(peer)
	} else {
		err = w.h.LinkSetDown(peer)
	}
	testkit.Must(w.t, err)
}

// newPairs is a world with the devices a and b in place of core0, without the periodic full read.
func newPairs(t *testing.T) *world {
	readAgain = 24 * time.Hour
	t.Cleanup(func() { readAgain = period })
	w := newWorld(t, receive)
	w.pair("va", "10.0.0.1/24", "2001:db8:a::1/64")
	w.pair("vb", "10.1.0.1/24", "2001:db8:b::1/64")
	w.Follow(t.Context(), []Clone{{Interface: "a", Device: "va", Namespace: w.file, MTU: 1500},
		{Interface: "b", Device: "vb", Namespace: w.file, MTU: 1500}})
	w.until("both", func() bool { return w.is.Devices["a"].Up && w.is.Devices["b"].Up })
	return w
}

// ip runs the command in the world's namespace.
func (w *world) ip(command string) {
	w.t.Helper()
	args := append([]string{"--net=" + w.file, "ip"}, strings.Fields(command)...)
	if out, err := exec.Command("nsenter", args...).CombinedOutput(); err != nil {
		w.t.Fatalf("ip %s: %v %s", command, err, out)
	}
}

// says is a route as text: its next hops in order.
func says(r Route) string {
	list := []string{}
	for _, h := range r.Hops() {
		via := "link"
		if h.Via.IsValid() {
			via = h.Via.String()
		}
		list = append(list, via+"@"+h.Interface)
	}
	if how := r.Discard(); how != api.DiscardNone {
		list = append(list, fmt.Sprint("discard ", how))
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// leads waits until a prefix has these next hops.
func (w *world) leads(prefix, want string) {
	w.t.Helper()
	d := Destination{"", netip.MustParsePrefix(prefix)}
	w.until(fmt.Sprintf("%s by %q", prefix, want), func() bool { return says(w.is.Routes[d]) == want })
}

// Of several next hops only dead ones go.
func TestDeadNextHops(t *testing.T) {
	w := newPairs(t)
	for _, c := range []struct{ prefix, one, other, both string }{
		{"192.0.2.0/24", "10.0.0.2@a", "10.1.0.2@b", "10.0.0.2@a 10.1.0.2@b"},
		{"2001:db8:1::/48", "2001:db8:a::2@a", "2001:db8:b::2@b", "2001:db8:a::2@a 2001:db8:b::2@b"},
	} {
		add := "route add " + c.prefix
		for _, via := range []string{c.one, c.other} {
			add += " nexthop via " + strings.Split(via, "@")[0]
		}
		w.ip(add)
		w.leads(c.prefix, c.both)
	}
	for _, down := range []struct {
		what     string
		set, end func()
	}{
		{"set down", func() { w.ip("link set dev va down") }, func() {
			w.ip("link set dev va up")
			w.ip("addr replace 2001:db8:a::1/64 dev va nodad")
			w.ip("route replace 2001:db8:1::/48 nexthop via 2001:db8:a::2 nexthop via 2001:db8:b::2")
		}},
		{"no carrier", func() { w.carrier("va", false) }, func() { w.carrier("va", true) }},
	} {
		down.set()
		w.leads("192.0.2.0/24", "10.1.0.2@b")
		w.leads("2001:db8:1::/48", "2001:db8:b::2@b")
		down.end()
		w.leads("192.0.2.0/24", "10.0.0.2@a 10.1.0.2@b")
		w.leads("2001:db8:1::/48", "2001:db8:a::2@a 2001:db8:b::2@b")
	}
	// A route all of whose links have no carrier is the kernel's all the same.
	w.carrier("va", false)
	w.carrier("vb", false)
	w.ip("route add 198.51.100.0/24 via 10.0.0.9")
	w.leads("198.51.100.0/24", "10.0.0.9@a")
	w.leads("192.0.2.0/24", "10.0.0.2@a 10.1.0.2@b")
}

// IPv6 reports next hops that come and go singly.
func TestSingleIP6NextHops(t *testing.T) {
	w := newPairs(t)
	const p = "2001:db8:1::/48"
	w.ip("-6 route add " + p + " via 2001:db8:a::2")
	w.leads(p, "2001:db8:a::2@a")
	for _, c := range []struct{ command, want string }{
		{"append " + p + " via 2001:db8:b::2", "2001:db8:a::2@a 2001:db8:b::2@b"},
		{"append " + p + " via 2001:db8:b::3", "2001:db8:a::2@a 2001:db8:b::2@b 2001:db8:b::3@b"},
		{"del " + p + " via 2001:db8:b::2", "2001:db8:a::2@a 2001:db8:b::3@b"},
		{"del " + p + " via 2001:db8:a::2", "2001:db8:b::3@b"},
		{"replace " + p + " via 2001:db8:b::9", "2001:db8:b::9@b"},
		{"append " + p + " dev va", "2001:db8:b::9@b"}, // another route of the same metric
		{"replace " + p + " nexthop via 2001:db8:a::7 nexthop via 2001:db8:b::7",
			"2001:db8:a::7@a 2001:db8:b::7@b"},
		{"del " + p + " dev va", "link@a"}, // all that begin there
		{"del " + p, ""},
	} {
		w.ip("-6 route " + c.command)
		w.leads(p, c.want)
	}
}

// Next hop objects, alone and in groups, with and without the expansion of the kernel's messages.
func TestNextHopObjects(t *testing.T) {
	for _, compat := range []string{"1", "0"} {
		w := newPairs(t)
		out, err := exec.Command("nsenter", "--net="+w.file, "sysctl", "-w",
			"net.ipv4.nexthop_compat_mode="+compat).CombinedOutput()
		testkit.ErrorIf(t, err != nil, "%s", out)
		w.ip("nexthop add id 1 via 10.0.0.2 dev va")
		w.ip("nexthop add id 2 via 10.1.0.2 dev vb")
		w.ip("nexthop add id 3 group 1/2")
		w.ip("route add 192.0.2.0/24 nhid 3")
		w.ip("route add 198.51.100.0/24 nhid 1")
		w.leads("192.0.2.0/24", "10.0.0.2@a 10.1.0.2@b")
		w.leads("198.51.100.0/24", "10.0.0.2@a")
		w.ip("nexthop replace id 1 via 10.0.0.3 dev va")
		w.leads("192.0.2.0/24", "10.0.0.3@a 10.1.0.2@b")
		w.leads("198.51.100.0/24", "10.0.0.3@a")
		w.ip("nexthop add id 4 via 10.1.0.4 dev vb")
		w.ip("nexthop replace id 3 group 1/2/4")
		w.leads("192.0.2.0/24", "10.0.0.3@a 10.1.0.2@b 10.1.0.4@b")
		w.ip("nexthop del id 4")
		w.leads("192.0.2.0/24", "10.0.0.3@a 10.1.0.2@b")
		w.ip("nexthop del id 1") // its routes go without a word
		w.leads("198.51.100.0/24", "")
		w.leads("192.0.2.0/24", "10.1.0.2@b")
		w.ip("nexthop del id 2") // the group with it
		w.leads("192.0.2.0/24", "")
		w.ip("nexthop add id 5 via 2001:db8:a::2 dev va")
		w.ip("-6 route add 2001:db8:1::/48 nhid 5")
		w.leads("2001:db8:1::/48", "2001:db8:a::2@a")
		w.ip("nexthop replace id 5 via 2001:db8:b::2 dev vb")
		w.leads("2001:db8:1::/48", "2001:db8:b::2@b")
		w.ip("nexthop del id 5")
		w.leads("2001:db8:1::/48", "")
		// Existing objects are read.
		w.ip("nexthop add id 7 via 10.0.0.7 dev va")
		w.ip("route add 203.0.113.0/24 nhid 7")
		w.leads("203.0.113.0/24", "10.0.0.7@a")
		again := New(w.log)
		again.Follow(t.Context(), []Clone{{Interface: "a", Device: "va", Namespace: w.file, MTU: 1500}})
		again.Known(t.Context())
		r := again.State().Routes[Destination{"", netip.MustParsePrefix("203.0.113.0/24")}]
		testkit.Equal(t, says(r), "10.0.0.7@a", "after a start")
		w.carrier("va", false) // removes the object without a message
		w.leads("203.0.113.0/24", "")
	}
}

// randomChange is a command of `ip` that may be refused.
func randomChange(r *rand.Rand) string {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	six := r.IntN(2)
	family := []string{"-4", "-6"}[six]
	prefix := [][]string{{"192.0.2.0/24", "198.51.100.0/24"},
		{"2001:db8:1::/48", "2001:db8:2::/48"}}[six][r.IntN(2)]
	via := func() string {
		network, host := r.IntN(2), 2+r.IntN(3)
		if six == 1 {
			return fmt.Sprintf("via 2001:db8:%c::%d", 'a'+network, host)
		}
		return fmt.Sprintf("via 10.%d.0.%d", network, host)
	}
	object := func() string { return fmt.Sprint(1 + r.IntN(4)) }
	metric := pick("", "", " metric 5")
	switch r.IntN(20) {
	case 0, 1:
		verb := pick("nexthop add", "nexthop replace")
		return verb + " id " + object() + " " + via() + " dev " + pick("va", "vb")
	case 2:
		return "nexthop del id " + pick(object(), "20")
	case 3:
		return pick("nexthop add", "nexthop replace") + " id 20 group " + object() + "/" + object()
	case 4, 5:
		return family + " route " + pick("add ", "del ") + prefix + " table 100 " + via()
	case 6:
		return "route " + pick("add ", "del ") + "192.0.2.0/24 tos 0x10 via 10.0.0.2"
	case 7, 8, 9, 10:
		return family + " route del " + prefix + pick("", " "+via()) + metric
	}
	verb := pick("add ", "append ", "prepend ", "replace ")
	how := pick("blackhole ", "unreachable ", "prohibit ")
	kind := r.IntN(8)
	switch { // of IPv6 the kernel has some twice; its answers leave out what lies between next hops of one route
	case prefix == "2001:db8:1::/48":
		kind = 3 + r.IntN(5)
	case prefix == "2001:db8:2::/48":
		kind, verb = r.IntN(3), pick("add ", "replace ")
	}
	switch kind {
	case 0:
		return family + " route " + verb + how + prefix + metric
	case 1, 2:
		return family + " route " + verb + prefix + " nhid " + pick(object(), "20") + metric
	case 3, 4:
		return family + " route " + verb + prefix + metric + " nexthop " + via() + " nexthop " + via()
	}
	return family + " route " + verb + prefix + " " + via() + metric
}

// The table made from messages equals a full read, after any changes of routes and objects. Nothing is read again
// except what the kernel changes without a message.
func TestMessagesAgainstTheTable(t *testing.T) {
	w := newPairs(t)
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 120 {
		var done []string
		for range 1 + random.IntN(6) {
			command := randomChange(random)
			args := append([]string{"--net=" + w.file, "ip"}, strings.Fields(command)...)
			if exec.Command("nsenter", args...).Run() == nil { // a refused change has no effect
				done = append(done, command)
			}
		}
		fresh := New(w.log)
		ctx, cancel := context.WithCancel(t.Context())
		fresh.Follow(ctx, w.spaces[w.file].clones)
		fresh.Known(ctx)
		want, left := fresh.State().Routes, fresh.Left()
		w.until(fmt.Sprintf("round %d, %q: as the kernel has it", round, done), func() bool {
			return reflect.DeepEqual(w.is.Routes, want) && maps.Equal(w.Left(), left)
		})
		cancel()
		fresh.Wait()
	}
}
