// SPDX-License-Identifier: Apache-2.0

package load

import (
	"encoding/binary"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/pppoe"
)

// discovery is what a crowd sent last: code and tags.
func discovery(t *testing.T, c *crowd) (byte, *pppoe.Tags) {
	t.Helper()
	if c.queued == 0 {
		t.Fatal("nothing was sent")
	}
	f := c.room[c.queued-1]
	if binary.BigEndian.Uint16(f[12:]) != pppoe.EtherDiscovery {
		t.Fatalf("%x", f)
	}
	code, _, payload, _ := pppoe.Header(f[14:])
	tags, ok := pppoe.ParseTags(payload)
	if !ok {
		t.Fatalf("%x", f)
	}
	return code, &tags
}

// says gives a home what the gateway says to its last packet.
func says(t *testing.T, c *crowd, code byte, id uint16, more func(b []byte) []byte) {
	t.Helper()
	_, asked := discovery(t, c)
	b := pppoe.AppendTag(pppoe.AppendHeader(nil, code, id), pppoe.TagService, nil)
	b = pppoe.Finish(more(pppoe.AppendTag(b, pppoe.TagHostUniq, asked.HostUniq)))
	comes(c, pppoe.EtherDiscovery, b)
}

func comes(c *crowd, etherType uint16, b []byte) {
	to := macOf(0)
	c.frame(append(binary.BigEndian.AppendUint16(append(to[:], 2, 0, 0, 0, 0, 1), etherType), b...))
}

// requesting is one home that has sent its PADR.
func requesting(t *testing.T) *crowd {
	t.Helper()
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	opt := AccessOptions{Subscribers: 1, Rate: 1, IPv4: true, Methods: []access.Method{access.CHAP}}
	c, err := newCrowd(opt, file)
	if err != nil {
		t.Fatal(err)
	}
	c.dial(0)
	says(t, c, pppoe.PADO, 0, func(b []byte) []byte {
		return pppoe.AppendTag(pppoe.AppendTag(b, pppoe.TagName, []byte("x")), pppoe.TagCookie, []byte("y"))
	})
	if code, _ := discovery(t, c); code != pppoe.PADR {
		t.Fatalf("code %#x, not a PADR", code)
	}
	return c
}

// A home whose link the gateway terminates (RFC 1661 §5.5) is no longer on line, and dials again.
func TestGatewayTerminates(t *testing.T) {
	c := requesting(t)
	says(t, c, pppoe.PADS, 9, func(b []byte) []byte { return b })
	c.got(0, netip.MustParseAddr("192.0.2.1"), netip.Prefix{})
	if c.online != 1 {
		t.Fatal("the home is not on line")
	}
	terminate := []byte{0xc0, 0x21, 5, 1, 0, 4}
	comes(c, pppoe.EtherSession, pppoe.Finish(append(pppoe.AppendHeader(nil, 0, 9), terminate...)))
	if c.online != 0 || c.result.Ended != 1 || len(c.result.Wrong) != 1 {
		t.Fatalf("%d on line, %+v", c.online, c.result)
	}
	c.queued = 0
	c.began = c.began.Add(-2 * time.Second)
	c.expire()
	if code, _ := discovery(t, c); code != pppoe.PADI {
		t.Fatalf("code %#x, not a PADI", code)
	}
}

// A home that was turned away, or gave up, dials again.
func TestDialsAgain(t *testing.T) {
	c := requesting(t)
	says(t, c, pppoe.PADS, 0, func(b []byte) []byte {
		return pppoe.AppendTag(b, pppoe.TagSystemError, []byte("full"))
	})
	c.queued = 0
	c.began = c.began.Add(-2 * time.Second) // two seconds later
	c.expire()
	if code, _ := discovery(t, c); code != pppoe.PADI {
		t.Fatalf("code %#x, not a PADI", code)
	}
	c.queued = 0
	c.began = c.began.Add(-silentFor - time.Second)
	c.lookAfterSilent() // nothing came of it
	if code, _ := discovery(t, c); code != pppoe.PADI {
		t.Fatalf("code %#x, not a PADI", code)
	}
	for range 7 { // no answer until it gives up, and begins again
		c.queued = 0
		c.began = c.began.Add(-time.Minute)
		c.expire()
	}
	if code, _ := discovery(t, c); code != pppoe.PADI {
		t.Fatalf("code %#x, not a PADI", code)
	}
}

// A subscriber missing after a power cut is reported, though all were on line before.
func TestMissingAfterPowerCut(t *testing.T) {
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_DGRAM|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	file, other := os.NewFile(uintptr(ends[0]), "homes"), os.NewFile(uintptr(ends[1]), "nobody")
	defer file.Close()
	defer other.Close()
	c, err := newCrowd(AccessOptions{Subscribers: 2, Rate: 1e6, IPv4: true, Methods: []access.Method{access.CHAP},
		PowerCut: true, Patience: time.Millisecond}, file)
	if err != nil {
		t.Fatal(err)
	}
	c.result.Online = 2
	if err := c.phases(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.result.Wrong[notBack] != 2 || c.finish().Verdict() == nil {
		t.Fatalf("%+v", c.result)
	}
}
