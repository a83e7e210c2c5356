// SPDX-License-Identifier: Apache-2.0

package load

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"

	"isthmus/controlplane/checksum"
)

// dhcpClient asks for an IPv4 address (RFC 2131), and for an address and a delegated prefix (RFC 8415), as its crowd
// wants. It keeps no leases beyond its run.
type dhcpClient struct {
	crowd    *crowd
	number   uint32
	attempts int
	offer    *dhcpv4.DHCPv4
	lease    *dhcpv4.DHCPv4
	duid     dhcpv6.DUID
	server6  dhcpv6.DUID
	granted  *dhcpv6.OptIAPD
	address  *dhcpv6.OptIANA
	xid      uint32
	renews4  bool // a renewal is under way
	renews6  bool
}

const (
	dhcpRepeat   = time.Second
	dhcpAttempts = 8
)

func (d *dhcpClient) mac() net.HardwareAddr {
	m := macOf(d.number)
	return m[:]
}

// Dial begins.
func (d *dhcpClient) Dial() {
	d.attempts, d.offer, d.lease, d.granted, d.address = 0, nil, nil, nil, nil
	d.renews4, d.renews6 = false, false
	d.xid = uint32(d.crowd.random.Uint64())
	d.duid = &dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: d.mac()}
	d.ask()
}

// Expire asks again for what is missing.
func (d *dhcpClient) Expire() {
	if !d.done() {
		d.ask()
	}
}

func (d *dhcpClient) done() bool {
	return (d.lease != nil || !d.crowd.opt.IPv4) && (d.granted != nil || !d.crowd.opt.IPv6)
}

func (d *dhcpClient) ask() {
	if d.attempts++; d.attempts > dhcpAttempts {
		d.crowd.ended(d.number, "no server answers")
		return
	}
	if d.crowd.opt.IPv4 && d.lease == nil {
		if d.offer == nil {
			d.send4(dhcpv4.NewDiscovery(d.mac(), dhcpv4.WithTransactionID(d.id4())))
		} else {
			d.send4(dhcpv4.NewRequestFromOffer(d.offer))
		}
	}
	if d.crowd.opt.IPv6 && d.granted == nil {
		d.solicit()
	}
	d.crowd.wake(d.number, d.crowd.Now()+dhcpRepeat)
}

func (d *dhcpClient) id4() (id dhcpv4.TransactionID) {
	binary.BigEndian.PutUint32(id[:], d.xid)
	return id
}

// Vanish is a power cut.
func (d *dhcpClient) Vanish() { d.crowd.wake(d.number, 0) }

// HangUp gives the leases back.
func (d *dhcpClient) HangUp() {
	if d.lease != nil {
		d.send4(dhcpv4.NewReleaseFromACK(d.lease))
	}
	if d.granted != nil {
		d.about6(dhcpv6.MessageTypeRelease)
	}
	d.Vanish()
}

// about6 sends a message about what it has.
func (d *dhcpClient) about6(kind dhcpv6.MessageType) {
	m, err := dhcpv6.NewMessage(dhcpv6.WithClientID(d.duid), dhcpv6.WithServerID(d.server6))
	if err != nil {
		d.crowd.wrong("no DHCP message: " + err.Error())
		return
	}
	m.MessageType, m.TransactionID = kind, d.id6()
	m.AddOption(d.address)
	m.AddOption(d.granted)
	m.AddOption(dhcpv6.OptElapsedTime(0))
	m.AddOption(wanted6)
	d.send6(m)
}

// wanted6 are name servers (RFC 3646).
var wanted6 = dhcpv6.OptRequestedOption(dhcpv6.OptionDNSRecursiveNameServer)

var iaid = [4]byte{0, 0, 0, 1} // of both

func (d *dhcpClient) id6() dhcpv6.TransactionID {
	return dhcpv6.TransactionID{byte(d.xid >> 16), byte(d.xid >> 8), byte(d.xid)}
}

func (d *dhcpClient) solicit() {
	m, err := dhcpv6.NewMessage(dhcpv6.WithClientID(d.duid), dhcpv6.WithRapidCommit)
	if err != nil {
		d.crowd.wrong("no solicitation: " + err.Error())
		return
	}
	m.MessageType = dhcpv6.MessageTypeSolicit
	m.TransactionID = d.id6()
	m.AddOption(&dhcpv6.OptIANA{IaId: iaid})
	m.AddOption(&dhcpv6.OptIAPD{IaId: iaid})
	m.AddOption(dhcpv6.OptElapsedTime(0))
	m.AddOption(wanted6)
	d.send6(m)
}

// Receive takes DHCP in IP packets; checksums are the gateway's tests' matter.
func (d *dhcpClient) Receive(etherType uint16, p []byte) {
	switch {
	case !d.crowd.homes[d.number].dials:
	case etherType == 0x0800 && len(p) > 28 && p[0] == 0x45 && p[9] == 17 && binary.BigEndian.Uint16(p[22:]) == 68:
		if m, err := dhcpv4.FromBytes(p[28:]); err == nil && m.TransactionID == d.id4() {
			d.answer4(m)
		}
	case etherType == 0x86dd && len(p) > 48 && p[6] == 17 && binary.BigEndian.Uint16(p[42:]) == 546:
		length := int(binary.BigEndian.Uint16(p[44:]))
		if length < 8 || 40+length > len(p) {
			d.crowd.wrong("a DHCPv6 answer of impossible length")
			return
		}
		if m, err := dhcpv6.MessageFromBytes(p[48 : 40+length]); err == nil {
			d.answer6(m)
		}
	}
}

func (d *dhcpClient) answer4(m *dhcpv4.DHCPv4) {
	kind := m.MessageType()
	if kind == dhcpv4.MessageTypeOffer || kind == dhcpv4.MessageTypeAck {
		d.judge4(m)
	}
	switch {
	case kind == dhcpv4.MessageTypeOffer && d.offer == nil && d.lease == nil:
		d.offer = m
		d.send4(dhcpv4.NewRequestFromOffer(m))
	case kind == dhcpv4.MessageTypeAck && d.offer != nil && d.lease == nil:
		switch {
		case !m.YourIPAddr.Equal(d.offer.YourIPAddr):
			d.crowd.wrong("an acknowledgement of another address than the offer's")
		case !m.ServerIdentifier().Equal(d.offer.ServerIdentifier()):
			d.crowd.wrong("an acknowledgement of another server than the offer's")
		}
		a, _ := netip.AddrFromSlice(m.YourIPAddr.To4())
		d.lease = m
		d.crowd.got(d.number, a, netip.Prefix{})
	case kind == dhcpv4.MessageTypeAck && d.renews4:
		if !m.YourIPAddr.Equal(d.lease.YourIPAddr) {
			d.crowd.wrong("a renewal with another address")
		}
		d.renews4 = false
		d.renewed()
	case kind == dhcpv4.MessageTypeNak:
		if d.renews4 {
			d.crowd.wrong("a renewal was denied")
		}
		d.offer = nil
	}
}

// judge4 notes what RFC 2131 does not allow in an offer or acknowledgement.
func (d *dhcpClient) judge4(m *dhcpv4.DHCPv4) {
	lease, mask := m.IPAddressLeaseTime(0), m.SubnetMask()
	subnet := func(a net.IP) string { return a.Mask(mask).String() }
	switch {
	case !slices.Equal(m.ClientHWAddr, d.mac()):
		d.crowd.wrong("a DHCPv4 answer with the MAC address of another")
	case m.ServerIdentifier() == nil:
		d.crowd.wrong("a DHCPv4 answer without the server's identifier (RFC 2131 §4.3.1)")
	case !m.YourIPAddr.IsGlobalUnicast() || len(mask) != 4:
		d.crowd.wrong("a DHCPv4 answer without an address or a subnet mask")
	case slices.ContainsFunc(m.Router(), func(r net.IP) bool {
		return subnet(r) != subnet(m.YourIPAddr) || r.Equal(m.YourIPAddr)
	}):
		d.crowd.wrong("a DHCPv4 answer with a router outside of the subnet")
	case !lasts(m.IPAddressRenewalTime(lease/2), m.IPAddressRebindingTime(lease*7/8), lease):
		d.crowd.wrong("a DHCPv4 answer whose times do not rise: T1, T2, lease (RFC 2131 §4.4.5)")
	}
	d.crowd.names(true, addresses(m.DNS()))
}

func addresses(list []net.IP) (all []netip.Addr) {
	for _, ip := range list {
		a, _ := netip.AddrFromSlice(ip)
		all = append(all, a.Unmap())
	}
	return all
}

// answer6 takes a Reply that has both, an address and a prefix, and notes what RFC 8415 does not allow in it.
func (d *dhcpClient) answer6(m *dhcpv6.Message) {
	if m.MessageType != dhcpv6.MessageTypeReply || d.granted != nil && !d.renews6 || m.TransactionID != d.id6() {
		return
	}
	client, na, pd := m.Options.ClientID(), m.Options.OneIANA(), m.Options.OneIAPD()
	switch {
	case m.Options.ServerID() == nil || client == nil || !client.Equal(d.duid):
		d.crowd.wrong("a DHCPv6 reply without the server's DUID, or not with the client's (RFC 8415 §16.10)")
		return
	case na == nil || pd == nil || na.IaId != iaid || pd.IaId != iaid:
		d.crowd.wrong("a DHCPv6 reply without the IAs that were asked for (RFC 8415 §18.3.10)")
		return
	case len(na.Options.Addresses()) != 1 || len(pd.Options.Prefixes()) != 1:
		if d.renews6 {
			d.crowd.wrong("a renewal was denied")
		}
		return // nothing available: it asks again
	}
	address, prefix := na.Options.OneAddress(), pd.Options.Prefixes()[0]
	a, _ := netip.AddrFromSlice(address.IPv6Addr)
	p := prefixOf(prefix)
	switch {
	case !a.Is6() || !a.IsGlobalUnicast() || !p.IsValid() || p != p.Masked() || p.Contains(a):
		d.crowd.wrong("a DHCPv6 reply with an impossible address or prefix")
	case !lasts(na.T1, na.T2, address.PreferredLifetime, address.ValidLifetime) ||
		!lasts(pd.T1, pd.T2, prefix.PreferredLifetime, prefix.ValidLifetime):
		d.crowd.wrong("a DHCPv6 reply whose times do not rise: T1, T2, preferred, valid (RFC 8415 §21.4)")
	}
	d.crowd.names(false, addresses(m.Options.DNS()))
	if d.renews6 {
		if !address.IPv6Addr.Equal(d.address.Options.OneAddress().IPv6Addr) ||
			p != prefixOf(d.granted.Options.Prefixes()[0]) {
			d.crowd.wrong("a renewal with another address")
		}
		d.renews6 = false
		d.renewed()
		return
	}
	d.address, d.granted, d.server6 = na, pd, m.Options.ServerID()
	d.crowd.got(d.number, netip.Addr{}, netip.PrefixFrom(a, 128))
	d.crowd.got(d.number, netip.Addr{}, p)
}

func prefixOf(o *dhcpv6.OptIAPrefix) (p netip.Prefix) {
	if o.Prefix != nil {
		b, _ := netip.AddrFromSlice(o.Prefix.IP)
		bits, _ := o.Prefix.Mask.Size()
		p = netip.PrefixFrom(b, bits)
	}
	return p
}

// renew asks for more time of what it has, as each client does at T1.
func (d *dhcpClient) renew() {
	if !d.renews4 && !d.renews6 {
		d.renews4, d.renews6 = d.lease != nil, d.granted != nil
		d.xid++
	}
	if d.renews4 {
		d.send4(dhcpv4.NewRenewFromAck(d.lease, dhcpv4.WithTransactionID(d.id4())))
	}
	if d.renews6 {
		d.about6(dhcpv6.MessageTypeRenew)
	}
}

func (d *dhcpClient) renewed() {
	if !d.renews4 && !d.renews6 {
		d.crowd.keptAlive(d.number)
	}
}

// lasts: the times of a lease rise, and the last is not 0.
func lasts(times ...time.Duration) bool {
	return slices.IsSorted(times) && times[len(times)-1] > 0
}

// send4 sends from no address to all, but a release, which is from the client's.
func (d *dhcpClient) send4(m *dhcpv4.DHCPv4, err error) {
	if err != nil {
		d.crowd.wrong("no DHCP message: " + err.Error())
		return
	}
	b := m.ToBytes()
	p := make([]byte, 28, 28+len(b))
	p[0], p[8], p[9] = 0x45, 64, 17
	binary.BigEndian.PutUint16(p[2:], uint16(28+len(b)))
	copy(p[12:], m.ClientIPAddr.To4())
	copy(p[16:], []byte{255, 255, 255, 255})
	binary.BigEndian.PutUint16(p[10:], checksum.Of(p[:20], 0))
	binary.BigEndian.PutUint16(p[20:], 68)
	binary.BigEndian.PutUint16(p[22:], 67)
	binary.BigEndian.PutUint16(p[24:], uint16(8+len(b)))
	d.crowd.send(d.number, true, 0x0800, append(p, b...))
}

// send6 sends from the link-local address to all agents (RFC 8415 §7.1).
func (d *dhcpClient) send6(m *dhcpv6.Message) {
	b := m.ToBytes()
	p := make([]byte, 48, 48+len(b))
	p[0], p[6], p[7] = 0x60, 17, 1
	binary.BigEndian.PutUint16(p[4:], uint16(8+len(b)))
	own := macOf(d.number)
	copy(p[8:], []byte{0xfe, 0x80, 0, 0, 0, 0, 0, 0, own[0] ^ 2, own[1], own[2], 0xff, 0xfe, own[3], own[4], own[5]})
	copy(p[24:], []byte{0xff, 0x02, 15: 0x02, 13: 0x01})
	binary.BigEndian.PutUint16(p[40:], 546)
	binary.BigEndian.PutUint16(p[42:], 547)
	binary.BigEndian.PutUint16(p[44:], uint16(8+len(b)))
	p = append(p, b...)
	// The sum is over addresses, length and protocol as well (RFC 8200 §8.1).
	pseudo := append(append([]byte{}, p[8:40]...), 0, 0, p[4], p[5], 0, 0, 0, 17)
	check := checksum.Of(p[40:], checksum.Sum(pseudo, 0))
	if check == 0 {
		check = 0xffff
	}
	binary.BigEndian.PutUint16(p[46:], check)
	to := [6]byte{0x33, 0x33, 0, 1, 0, 2}
	d.crowd.sendTo(d.number, to, 0x86dd, p)
}
