// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"isthmus/controlplane/testkit"
)

// world is a network namespace with a device, behind a file, and a Kernel that follows it.
type world struct {
	*Kernel
	t    *testing.T
	file string
	h    *netlink.Handle
	is   State // by Changes
}

// newNamespace makes a namespace that stands at a file.
func newNamespace(t *testing.T, file string) netns.NsHandle {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	home, err := netns.Get()
	testkit.Must(t, err)
	defer home.Close()
	ns, err := netns.New()
	if err != nil {
		t.Skip("no network namespaces here: ", err)
	}
	testkit.Must(t, os.WriteFile(file, nil, 0o600))
	testkit.Must(t, unix.Mount(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()), file, "", unix.MS_BIND, ""))
	testkit.Must(t, netns.Set(home))
	t.Cleanup(func() {
		unix.Unmount(file, unix.MNT_DETACH)
		ns.Close()
	})
	return ns
}

func newWorld(t *testing.T, buffer int) *world {
	t.Helper()
	w := &world{t: t, file: filepath.Join(t.TempDir(), "net"), is: newState()}
	w.Kernel = New(slog.New(slog.DiscardHandler))
	ns := newNamespace(t, w.file)
	var err error
	w.h, err = netlink.NewHandleAt(ns)
	testkit.Must(t, err)
	t.Cleanup(w.h.Close)
	w.device("core0")
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		w.Wait()
	})
	receiveBuffer = buffer
	t.Cleanup(func() { receiveBuffer = receive })
	w.Follow(ctx, w.clones())
	w.until("the device is there", func() bool { return w.is.Devices["core"].Up })
	return w
}

func (w *world) clones() []Clone {
	return []Clone{{Interface: "core", Device: "core0", Namespace: w.file, MTU: 1500}}
}

// device makes a TAP device that is up, as the data plane does.
func (w *world) device(name string) netlink.Link {
	w.t.Helper()
	l := &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: name}, Mode: netlink.TUNTAP_MODE_TAP}
	d, err := netns.GetFromPath(w.file)
	testkit.Must(w.t, err)
	defer d.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	home, err := netns.Get()
	testkit.Must(w.t, err)
	defer home.Close()
	testkit.Must(w.t, netns.Set(d))
	err = netlink.LinkAdd(l)
	testkit.Must(w.t, netns.Set(home))
	if err != nil {
		w.t.Skip("no TAP devices here: ", err)
	}
	made, err := w.h.LinkByName(name)
	testkit.Must(w.t, err)
	testkit.Must(w.t, w.h.LinkSetUp(made))
	return made
}

// look takes over what changed.
func (w *world) look() {
	c := w.Changes()
	if c.All != nil {
		w.is = *c.All
		return
	}
	for _, r := range c.Routes {
		if w.is.Routes[r.At] = r.Route; r.Route == (Route{}) {
			delete(w.is.Routes, r.At)
		}
	}
	for n, mac := range c.Neighbours {
		if w.is.Neighbours[n] = mac; mac == (MAC{}) {
			delete(w.is.Neighbours, n)
		}
	}
}

func (w *world) until(what string, is func() bool) {
	w.t.Helper()
	testkit.Until(w.t, what, func() bool {
		w.look()
		return is()
	})
}

func (w *world) link() netlink.Link {
	w.t.Helper()
	l, err := w.h.LinkByName("core0")
	testkit.Must(w.t, err)
	return l
}

func (w *world) address(text string) *netlink.Addr {
	w.t.Helper()
	a, err := netlink.ParseAddr(text)
	testkit.Must(w.t, err)
	a.Flags = unix.IFA_F_NODAD
	return a
}

func (w *world) routeTo(prefix, via string) *netlink.Route {
	w.t.Helper()
	_, dst, err := net.ParseCIDR(prefix)
	testkit.Must(w.t, err)
	return &netlink.Route{Dst: dst, Gw: net.ParseIP(via), LinkIndex: w.link().Attrs().Index}
}

func (w *world) hasRoute(prefix, via string) func() bool {
	d := Destination{"", netip.MustParsePrefix(prefix)}
	return func() bool {
		r, there := w.is.Routes[d]
		return there == (via != "") && (!there || slices.Equal(r.Hops(), by(via)))
	}
}

// by are next hops on core0.
func by(vias ...string) (list []Hop) {
	for _, via := range vias {
		list = append(list, Hop{Via: netip.MustParseAddr(via), Interface: "core"})
	}
	return list
}

func TestAddressesRoutesNeighbours(t *testing.T) {
	w := newWorld(t, receive)
	for _, a := range []string{"10.0.0.1/24", "2001:db8::1/64"} {
		testkit.Must(t, w.h.AddrAdd(w.link(), w.address(a)))
		p := netip.MustParsePrefix(a)
		w.until("address "+a, func() bool {
			for _, is := range w.is.Devices["core"].Addresses {
				if is == p {
					return true
				}
			}
			return false
		})
	}
	for _, r := range [][2]string{
		{"192.0.2.0/24", "10.0.0.2"}, {"0.0.0.0/0", "10.0.0.2"},
		{"2001:db8:1::/48", "2001:db8::2"}, {"::/0", "2001:db8::2"},
	} {
		route := w.routeTo(r[0], r[1])
		testkit.Must(t, w.h.RouteAdd(route))
		w.until("route "+r[0], w.hasRoute(r[0], r[1]))
		testkit.Must(t, w.h.RouteDel(route))
		w.until("no route "+r[0], w.hasRoute(r[0], ""))
	}
	n := &netlink.Neigh{LinkIndex: w.link().Attrs().Index, IP: net.ParseIP("10.0.0.7"), State: unix.NUD_PERMANENT,
		HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 7}}
	key := Neighbour{"core", netip.MustParseAddr("10.0.0.7")}
	testkit.Must(t, w.h.NeighSet(n))
	w.until("a neighbour", func() bool { return w.is.Neighbours[key] == MAC{2, 0, 0, 0, 0, 7} })
	n.State = unix.NUD_STALE
	testkit.Must(t, w.h.NeighSet(n))
	w.until("a neighbour that nobody vouches for", func() bool { _, there := w.is.Neighbours[key]; return !there })
	testkit.Must(t, w.h.LinkSetMTU(w.link(), 1400))
	w.until("the MTU", func() bool { return w.is.Devices["core"].MTU == 1400 })
}

// The lowest metric counts; of other tables, types and devices nothing does.
func TestBestRoute(t *testing.T) {
	w := newWorld(t, receive)
	testkit.Must(t, w.h.AddrAdd(w.link(), w.address("10.0.0.1/24")))
	far, near := w.routeTo("192.0.2.0/24", "10.0.0.3"), w.routeTo("192.0.2.0/24", "10.0.0.2")
	far.Priority, near.Priority = 200, 100
	testkit.Must(t, w.h.RouteAdd(far))
	w.until("a route", w.hasRoute("192.0.2.0/24", "10.0.0.3"))
	testkit.Must(t, w.h.RouteAdd(near))
	w.until("a better one", w.hasRoute("192.0.2.0/24", "10.0.0.2"))
	near.Gw = net.ParseIP("10.0.0.4")
	testkit.Must(t, w.h.RouteReplace(near))
	w.until("another way", w.hasRoute("192.0.2.0/24", "10.0.0.4"))
	testkit.Must(t, w.h.RouteDel(near))
	w.until("the one before", w.hasRoute("192.0.2.0/24", "10.0.0.3"))
	other := w.routeTo("198.51.100.0/24", "10.0.0.2")
	other.Table = 100
	testkit.Must(t, w.h.RouteAdd(other))
	several := &netlink.Route{Dst: &net.IPNet{IP: net.IP{100, 64, 0, 0}, Mask: net.CIDRMask(10, 32)},
		MultiPath: []*netlink.NexthopInfo{
			{LinkIndex: far.LinkIndex, Gw: net.ParseIP("10.0.0.5")},
			{LinkIndex: far.LinkIndex, Gw: net.ParseIP("10.0.0.6")},
		}}
	testkit.Must(t, w.h.RouteAdd(several))
	w.until("several ways", func() bool {
		r := w.is.Routes[Destination{"", netip.MustParsePrefix("100.64.0.0/10")}]
		return slices.Equal(r.Hops(), by("10.0.0.5", "10.0.0.6"))
	})
	if !w.hasRoute("198.51.100.0/24", "")() {
		t.Errorf("routes that are none of ours: %v", w.is.Routes)
	}
}

// Two namespaces with the same addresses and routes are two VRFs.
func TestVRFs(t *testing.T) {
	w, other := newWorld(t, receive), newWorld(t, receive)
	clones := append(w.clones(),
		Clone{Interface: "other", Device: "core0", Namespace: other.file, VRF: "red", MTU: 1500})
	w.Follow(t.Context(), clones)
	for _, o := range []*world{w, other} {
		testkit.Must(t, o.h.AddrAdd(o.link(), o.address("10.0.0.1/24")))
		testkit.Must(t, o.h.RouteAdd(o.routeTo("192.0.2.0/24", "10.0.0.2")))
	}
	p := netip.MustParsePrefix("192.0.2.0/24")
	of := func(vrf string) string {
		if hops := w.is.Routes[Destination{vrf, p}].Hops(); len(hops) > 0 {
			return hops[0].Interface
		}
		return ""
	}
	w.until("a route in each", func() bool { return of("") == "core" && of("red") == "other" })
	testkit.Must(t, w.h.RouteDel(w.routeTo("192.0.2.0/24", "10.0.0.2")))
	w.until("in one alone", func() bool { return of("") == "" && of("red") == "other" })
}

// Down, the kernel takes IPv4 routes away without a word.
func TestLinkDown(t *testing.T) {
	w := newWorld(t, receive)
	testkit.Must(t, w.h.AddrAdd(w.link(), w.address("10.0.0.1/24")))
	testkit.Must(t, w.h.RouteAdd(w.routeTo("192.0.2.0/24", "10.0.0.2")))
	w.until("a route", w.hasRoute("192.0.2.0/24", "10.0.0.2"))
	testkit.Must(t, w.h.LinkSetDown(w.link()))
	w.until("down", func() bool { return !w.is.Devices["core"].Up && w.hasRoute("192.0.2.0/24", "")() })
	testkit.Must(t, w.h.LinkSetUp(w.link()))
	w.until("up", func() bool { return w.is.Devices["core"].Up })
	testkit.Must(t, w.h.RouteAdd(w.routeTo("192.0.2.0/24", "10.0.0.2")))
	w.until("a route again", w.hasRoute("192.0.2.0/24", "10.0.0.2"))
	testkit.Must(t, w.h.LinkDel(w.link()))
	w.until("gone", func() bool { return len(w.is.Devices) == 0 && len(w.is.Routes) == 0 })
	w.device("core0")
	w.until("there again", func() bool { return w.is.Devices["core"].Up })
}

// A reader that stands still loses messages: then it reads everything.
func TestLostMessages(t *testing.T) {
	w := newWorld(t, 4096)
	testkit.Must(t, w.h.AddrAdd(w.link(), w.address("10.0.0.1/24")))
	w.until("an address", func() bool { return len(w.is.Devices["core"].Addresses) > 0 })
	s := w.spaces[w.file]
	s.mu.Lock() // blocks the reader of the channels, and so of the sockets
	const routes = 8000
	var route *netlink.Route
	for i := range routes {
		r := w.routeTo(fmt.Sprintf("198.%d.%d.0/24", i/250, i%250), "10.0.0.2")
		if err := w.h.RouteAdd(r); err != nil {
			s.mu.Unlock()
			t.Fatal(err)
		}
		route = r
	}
	testkit.Must(t, w.h.RouteDel(route))
	s.mu.Unlock()
	w.until("all routes", func() bool { return len(w.is.Routes) == routes-1+1 }) // and the device's own network
	st := w.Status()[0]
	if st.Lost == 0 || st.Read < 2 {
		t.Errorf("lost %d times, read %d times: the test lost nothing", st.Lost, st.Read)
	}
	// And it goes on.
	testkit.Must(t, w.h.RouteAdd(w.routeTo("192.0.2.0/24", "10.0.0.2")))
	w.until("a route", w.hasRoute("192.0.2.0/24", "10.0.0.2"))
}

// The configuration's addresses and routes are put into the kernel, return after an external removal, and go with the
// configuration.
func TestConfiguration(t *testing.T) {
	w := newWorld(t, receive)
	clones := w.clones()
	a := netip.MustParsePrefix("10.0.0.1/24")
	r := RouteBy(by("10.0.0.2", "10.0.0.3")...)
	clones[0].Addresses = []netip.Prefix{a}
	clones[0].Routes = map[netip.Prefix]Route{netip.MustParsePrefix("192.0.2.0/24"): r}
	w.Follow(t.Context(), clones)
	has := func() (address, route bool) {
		addresses, err := w.h.AddrList(w.link(), netlink.FAMILY_V4)
		testkit.Must(t, err)
		routes, err := given(w.h)
		testkit.Must(t, err)
		return len(addresses) == 1, len(routes) == 1 && len(routes[0].MultiPath) == 2
	}
	all := func() bool { address, route := has(); return address && route }
	w.until("address and route", all)
	if !w.hasRoute("192.0.2.0/24", "")() {
		t.Error("the configuration's route comes back as the kernel's")
	}
	testkit.Must(t, w.h.AddrDel(w.link(), w.address("10.0.0.1/24")))
	w.until("both again", all)
	testkit.Must(t, w.h.LinkSetMTU(w.link(), 9000))
	w.until("the MTU", func() bool { return w.link().Attrs().MTU == 1500 })
	testkit.Must(t, w.h.LinkSetDown(w.link()))
	if err := w.h.LinkSetName(w.link(), "other"); err != nil {
		t.Fatal(err)
	}
	w.until("the name", func() bool { _, err := w.h.LinkByName("core0"); return err == nil })
	testkit.Must(t, w.h.LinkSetUp(w.link()))
	w.until("both once more", all)
	w.Follow(t.Context(), w.clones())
	w.until("neither", func() bool { address, route := has(); return !address && !route })
	w.Follow(t.Context(), nil)
	w.until("nothing", func() bool { return reflect.DeepEqual(w.is, newState()) && len(w.Status()) == 0 })
}

func TestNamespaceGoes(t *testing.T) {
	w := newWorld(t, receive)
	testkit.Must(t, unix.Unmount(w.file, unix.MNT_DETACH))
	w.until("gone", func() bool { return len(w.is.Devices) == 0 && w.Status()[0].Error != "" })
	testkit.Must(t, os.Remove(w.file))
	ns := newNamespace(t, w.file)
	h, err := netlink.NewHandleAt(ns)
	testkit.Must(t, err)
	w.h.Close()
	w.h = h
	w.device("core0")
	w.until("another", func() bool { return w.is.Devices["core"].Up && w.Status()[0].Error == "" })
}

// A start waits until the kernel's state is known, or cannot be.
func TestKnown(t *testing.T) {
	w := newWorld(t, receive)
	ctx, cancel := context.WithCancel(t.Context())
	k := New(slog.New(slog.DiscardHandler))
	defer k.Wait()
	defer cancel()
	clones := append(w.clones(), Clone{Interface: "other", Device: "other0", Namespace: "/nowhere"})
	k.Follow(ctx, clones)
	k.Known(ctx)
	if st := k.State(); !st.Devices["core"].Up || len(st.Devices) != 1 {
		t.Errorf("known is %v", st.Devices)
	}
	if st := k.Status(); len(st) != 2 || st[1].Error+st[0].Error == "" {
		t.Errorf("status %+v", st)
	}
}
