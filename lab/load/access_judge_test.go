// SPDX-License-Identifier: Apache-2.0

package load

import (
	"encoding/binary"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"

	"isthmus/controlplane/access"
	"isthmus/controlplane/ppp"
	"isthmus/controlplane/pppoe"
	"isthmus/controlplane/testkit"
	"isthmus/lab/dialer"
)

func crowdOf(t *testing.T, opt AccessOptions) *crowd {
	t.Helper()
	file, err := os.Open(os.DevNull)
	testkit.Must(t, err)
	t.Cleanup(func() { file.Close() })
	opt.Rate, opt.Hold = 1, time.Second
	c, err := newCrowd(opt, file)
	testkit.Must(t, err)
	return c
}

// judged wants one fault that has these words, or none at all.
func (c *crowd) judged(t *testing.T, words string) {
	t.Helper()
	faults := slices.Collect(maps.Keys(c.result.Wrong))
	good := words == "" && len(faults) == 0 || words != "" && len(faults) == 1 && strings.Contains(faults[0], words)
	testkit.ErrorIf(t, !good, "%q, want %q", faults, words)
	clear(c.result.Wrong)
}

// answers4 is a server's answer to a client's last message.
func answers4(kind dhcpv4.MessageType, d *dhcpClient, change ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
	m, _ := dhcpv4.New(append([]dhcpv4.Modifier{dhcpv4.WithTransactionID(d.id4()), dhcpv4.WithHwAddr(d.mac()),
		dhcpv4.WithMessageType(kind), dhcpv4.WithYourIP(net.IP{10, 0, 0, 7}),
		dhcpv4.WithNetmask(net.CIDRMask(24, 32)), dhcpv4.WithRouter(net.IP{10, 0, 0, 1}),
		dhcpv4.WithDNS(net.IP{9, 9, 9, 9}), dhcpv4.WithLeaseTime(3600),
		dhcpv4.WithServerIP(net.IP{10, 0, 0, 1}),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IP{10, 0, 0, 1}))}, change...)...)
	return m
}

func TestJudge4(t *testing.T) {
	for _, one := range []struct {
		kind   dhcpv4.MessageType
		change dhcpv4.Modifier
		want   string
	}{
		{dhcpv4.MessageTypeOffer, dhcpv4.WithLeaseTime(3600), ""},
		{dhcpv4.MessageTypeOffer, dhcpv4.WithLeaseTime(0), "times do not rise"},
		{dhcpv4.MessageTypeOffer, dhcpv4.WithGeneric(dhcpv4.OptionRenewTimeValue, []byte{0, 0, 15, 0}),
			"times do not rise"},
		{dhcpv4.MessageTypeOffer, dhcpv4.WithHwAddr(net.HardwareAddr{2, 0, 0, 0, 0, 9}),
			"MAC address of another"},
		{dhcpv4.MessageTypeOffer, dhcpv4.WithRouter(net.IP{10, 0, 1, 1}), "a router outside"},
		{dhcpv4.MessageTypeOffer, dhcpv4.WithRouter(net.IP{10, 0, 0, 7}), "a router outside"},
		{dhcpv4.MessageTypeOffer, dhcpv4.WithYourIP(net.IP{0, 0, 0, 0}), "without an address"},
		{dhcpv4.MessageTypeOffer, dhcpv4.WithGeneric(dhcpv4.OptionServerIdentifier, nil),
			"server's identifier"},
		{dhcpv4.MessageTypeOffer, dhcpv4.WithDNS(net.IP{8, 8, 8, 8}), "other name servers"},
		{dhcpv4.MessageTypeOffer, dhcpv4.WithGeneric(dhcpv4.OptionDomainNameServer, nil), "other name servers"},
		{dhcpv4.MessageTypeAck, dhcpv4.WithYourIP(net.IP{10, 0, 0, 8}), "another address than the offer's"},
		{dhcpv4.MessageTypeAck, dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IP{10, 0, 0, 2})),
			"another server than the offer's"},
	} {
		c := crowdOf(t, AccessOptions{DHCP: true, Subscribers: 1, IPv4: true,
			DNS: []netip.Addr{netip.MustParseAddr("9.9.9.9"), netip.MustParseAddr("2620:fe::9")}})
		c.dial(0)
		d := c.homes[0].protocol.(*dhcpClient)
		if one.kind == dhcpv4.MessageTypeAck {
			d.answer4(answers4(dhcpv4.MessageTypeOffer, d))
		}
		d.answer4(answers4(one.kind, d, one.change))
		c.judged(t, one.want)
	}
}

// A renewal must give the same again; another's addresses, and prefixes within them, are refused.
func TestRenewals(t *testing.T) {
	c := crowdOf(t, AccessOptions{DHCP: true, Subscribers: 2, IPv4: true, IPv6: true})
	na := func(a string) *dhcpv6.OptIANA {
		n := &dhcpv6.OptIANA{IaId: iaid}
		n.Options.Add(&dhcpv6.OptIAAddress{IPv6Addr: net.ParseIP(a), PreferredLifetime: time.Hour,
			ValidLifetime: time.Hour})
		return n
	}
	pd := func(p string) *dhcpv6.OptIAPD {
		_, n, _ := net.ParseCIDR(p)
		d := &dhcpv6.OptIAPD{IaId: iaid}
		d.Options.Add(&dhcpv6.OptIAPrefix{Prefix: n, PreferredLifetime: time.Hour, ValidLifetime: time.Hour})
		return d
	}
	reply := func(d *dhcpClient, options ...dhcpv6.Option) {
		m, _ := dhcpv6.NewMessage(dhcpv6.WithClientID(d.duid), dhcpv6.WithServerID(d.duid))
		m.MessageType, m.TransactionID = dhcpv6.MessageTypeReply, d.id6()
		for _, o := range options {
			m.AddOption(o)
		}
		d.answer6(m)
	}
	c.dial(0)
	c.dial(1)
	a, b := c.homes[0].protocol.(*dhcpClient), c.homes[1].protocol.(*dhcpClient)
	a.answer4(answers4(dhcpv4.MessageTypeOffer, a))
	a.answer4(answers4(dhcpv4.MessageTypeAck, a))
	reply(a, na("2001:db8::1"), pd("2001:db8:100::/56"))
	testkit.Equal(t, c.online, 1, "on line")
	a.renew()
	a.answer4(answers4(dhcpv4.MessageTypeAck, a))
	testkit.Equal(t, c.keeps.count, 0, "half a renewal")
	reply(a, na("2001:db8::1"), pd("2001:db8:100::/56"))
	testkit.Equal(t, c.keeps.count, 1, "kept alive")
	c.judged(t, "")
	a.renew()
	a.answer4(answers4(dhcpv4.MessageTypeNak, a))
	c.judged(t, "a renewal was denied")
	reply(a, na("2001:db8::1"), pd("2001:db8:101::/56"))
	c.judged(t, "a renewal with another address")
	reply(b, na("2001:db8:100:7::1"), pd("2001:db8:102::/56")) // within the other's prefix
	c.judged(t, "given to two subscribers")
	b.answer4(answers4(dhcpv4.MessageTypeOffer, b))
	b.answer4(answers4(dhcpv4.MessageTypeAck, b))
	c.judged(t, "given to two subscribers")
	c.result.Online, c.result.Lapsed = 2, 1
	testkit.Refused(t, c.result.Verdict(), "1 keep-alives were not answered")
}

func TestJudgeEcho(t *testing.T) {
	for _, one := range []struct {
		at   int // of the octet that is wrong, behind LCP's code; negative: none
		want string
	}{{-1, ""}, {1, "identifier and the data"}, {3, "another length"}, {7, "another magic number"},
		{15, "identifier and the data"}} {
		c := crowdOf(t, AccessOptions{Subscribers: 1, IPv4: true, Methods: []access.Method{access.CHAP}})
		d := c.homes[0].protocol.(*dialer.Client)
		c.echo(0, d)
		_, _, asked, ok := pppoe.Header(c.room[c.queued-1][14:])
		testkit.FatalIf(t, !ok || binary.BigEndian.Uint16(asked) != ppp.LCP, "% x", asked)
		b := binary.BigEndian.AppendUint16(pppoe.AppendHeader(nil, 0, d.ID), ppp.LCP)
		at := len(b)
		b = append(b, asked[2:]...)
		b[at] = lcpEchoReply
		if one.at >= 0 {
			b[at+one.at]++
		}
		testkit.ErrorIf(t, !c.isKept(0, pppoe.EtherSession, pppoe.Finish(b)), "no echo")
		c.judged(t, one.want)
		testkit.Equal(t, c.keeps.count == 1, one.want == "", "kept alive")
	}
}

func TestJudgeAdvertisement(t *testing.T) {
	p := make([]byte, 56+32+24)
	p[0], p[6], p[40], p[47] = 0x60, 58, 134, 9
	p[56], p[57], p[58], p[63], p[67] = 3, 4, 64, 9, 9
	copy(p[72:], netip.MustParseAddr("2001:db8:7::").AsSlice())
	p[88], p[89] = 25, 3
	copy(p[96:], netip.MustParseAddr("2620:fe::fe").AsSlice())
	const useless = "SLAAC cannot use"
	for at, want := range map[int]string{0: "", 58: useless, 67: useless, 87: useless, 89: "options do not fit"} {
		b := slices.Clone(p)
		if at > 0 {
			b[at]++
		}
		prefix, names, fault := advertised(b)
		good := fault == "" && prefix == netip.MustParsePrefix("2001:db8:7::/64") && len(names) == 1
		testkit.ErrorIf(t, want == "" && !good || !strings.Contains(fault, want), "%d: %v %v %q, want %q", at,
			prefix, names, fault, want)
	}
}
