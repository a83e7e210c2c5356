// SPDX-License-Identifier: Apache-2.0

package network

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/testkit"
)

var variants = []Options{
	{Generation: "4g", UEs: 1}, {Generation: "4g", UEs: 5000, Handover: true}, {Generation: "5g", UEs: 1},
	{Generation: "5g", UEs: MaxUEs, N9: true, Handover: true, IPv6: true},
	{Generation: "isp", UEs: 5000, Homes: MaxHomes, Announce: "pool"},
	{Generation: "isp", UEs: 1, Homes: 1, Announce: "host"},
}

// Every configuration that a lab writes is accepted, and every link leads to nodes that there are.
func TestTopology(t *testing.T) {
	for _, opt := range variants {
		opt.Dir = "/run/lab-test"
		l := &Lab{opt: opt, top: newTopology(&opt)}
		for _, f := range l.top.functions {
			text, err := l.config(f)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := plan.Make(f.name+".yaml", text)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if plan.HugePages != "off" {
				t.Fatal("a lab takes huge pages")
			}
		}
		names := map[[2]string]bool{}
		for _, link := range l.top.links {
			for _, e := range []end{link.a, link.b} {
				if !slices.Contains(l.top.nodes, e.node) {
					t.Fatalf("%s/%v: no node %q", opt.Generation, opt.N9, e.node)
				}
				if len(e.name) > 15 || names[[2]string{e.node, e.name}] {
					t.Fatalf("interface %q of %q: too long, or there twice", e.name, e.node)
				}
				names[[2]string{e.node, e.name}] = true
			}
		}
		for _, f := range l.top.functions {
			for _, i := range f.interfaces {
				if !names[[2]string{f.name, i.name}] {
					t.Fatalf("%s has no link at %s", f.name, i.name)
				}
			}
		}
	}
}

func TestAddresses(t *testing.T) {
	seen := map[netip.Addr]bool{}
	for i := range MaxUEs {
		u := ueAddresses(i + 1)
		if !poolIPv4.Contains(u.IPv4) || !poolIPv6.Contains(u.IPv6.Addr()) || seen[u.IPv4] || seen[u.IPv6.Addr()] {
			t.Fatalf("UE %d has %+v", i+1, u)
		}
		seen[u.IPv4], seen[u.IPv6.Addr()] = true, true
	}
	if h := host(ueAddresses(1).IPv6); h != netip.MustParseAddr("2001:db8:45:1::1") {
		t.Fatal(h)
	}
}

func TestOptions(t *testing.T) {
	for _, opt := range []Options{
		{Generation: "3g", UEs: 1}, {Generation: "isp", UEs: 1, Announce: "pool"},
		{Generation: "isp", UEs: 1, Homes: 1, Announce: "none"},
		{Generation: "isp", UEs: 1, Homes: 1, Announce: "pool", IGP: "rip"}, {Generation: "4g"},
		{Generation: "4g", UEs: MaxUEs + 1}, {Generation: "4g", UEs: 1, N9: true},
		{Generation: "isp", UEs: 1, Homes: 1, Announce: "pool", Routes: -1},
		{Generation: "isp", UEs: 1, Homes: 1, Announce: "pool", Routes: MaxRoutes + 1},
		{Generation: "isp", UEs: 1, Homes: 1, Announce: "pool", Flood: -1},
		{Generation: "isp", UEs: 1, Homes: 1, Announce: "pool", IGP: "ospf", Routes: 1},
		{Generation: "isp", UEs: 1, Homes: 1, Announce: "pool", IGP: "isis", Flood: 1},
	} {
		if opt.check() == nil {
			t.Errorf("%+v accepted", opt)
		}
	}
}

// Suggested commands find the program and the lab, wherever they are.
func TestHints(t *testing.T) {
	for _, opt := range []Options{
		{Generation: "isp", UEs: 1, Homes: 1, Announce: "pool", Dir: "/tmp/lab"},
		{Generation: "5g", UEs: 1, Dir: "/tmp/lab"},
	} {
		l := &Lab{opt: opt, top: newTopology(&opt), program: "/opt/isthmus"}
		hints := l.Hints()
		for _, want := range []string{"lab --dir /tmp/lab show\n", "--socket /tmp/lab/"} {
			testkit.ErrorIf(t, !strings.Contains(hints, "  sudo /opt/isthmus "+want), "no %q: %s", want, hints)
		}
		testkit.ErrorIf(t, strings.Contains(hints, "isthmus lab exec"), "without the folder: %s", hints)
	}
}

// One lab to a folder, and never in a folder that holds something else.
func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lab")
	first, err := takeLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := takeLock(dir); err == nil || !strings.Contains(err.Error(), "running already") ||
		holder(dir) != os.Getpid() {
		t.Fatalf("second lab: %v", err)
	}
	first.Close()
	again, err := takeLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	other := t.TempDir()
	os.WriteFile(filepath.Join(other, "precious"), nil, 0o600)
	if _, err := takeLock(other); err == nil {
		t.Fatal("a folder with other files was taken")
	}
}

func TestNameServer(t *testing.T) {
	z := zone{"www.lab": {serverIPv4, serverIPv6}}
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go z.servePackets(c)
	r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", c.LocalAddr().String())
	}}
	have, err := r.LookupHost(t.Context(), "WWW.lab.")
	slices.Sort(have)
	if err != nil || !slices.Equal(have, []string{serverIPv4.String(), serverIPv6.String()}) {
		t.Fatalf("%v, %v", have, err)
	}
	if _, err := r.LookupHost(t.Context(), "nobody.lab."); err == nil {
		t.Fatal("a name that is not")
	}
	query := append(make([]byte, dnsHeader), "\x03www\x03lab\x00\x00\x01\x00\x01"...)
	query[5] = 1
	if a, err := z.answer(query); err != nil || !bytes.HasSuffix(a, serverIPv4.AsSlice()) {
		t.Fatalf("%x, %v", a, err)
	}
	for n := range query { // at any cut: no panic, and no answer with an address
		if a, err := z.answer(query[:n]); err == nil && bytes.HasSuffix(a, serverIPv4.AsSlice()) {
			t.Fatalf("answered %d bytes", n)
		}
	}
}

func FuzzNameServer(f *testing.F) {
	z := zone{"www.lab": {serverIPv4, serverIPv6}}
	f.Add(append(make([]byte, dnsHeader), "\x03www\x03lab\x00\x00\x01\x00\x01"...))
	f.Fuzz(func(t *testing.T, q []byte) {
		if a, err := z.answer(q); err == nil && len(a) > len(q)+64 {
			t.Fatal("an answer much larger than its question")
		}
	})
}
