// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"net"
	"net/netip"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"
	"github.com/insomniacslk/dhcp/rfc1035label"

	"isthmus/controlplane/access"
)

// message is a client's message, which is relayed or served.
func (u v6) message(r *request6) {
	if u.relays() {
		u.relay(r)
	} else {
		u.serve(r)
	}
}

// serve is RFC 8415 §18.3. r is kept while something must be waited for.
func (u v6) serve(r *request6) {
	f := access.Families{V6: len(r.Options.IANA()) > 0, Delegated: len(r.Options.IAPD()) > 0}
	if r.to != relaysAndServers { // RFC 8415 §18.3.2: we never sent the Unicast option
		m := u.reply(r, dhcpv6.MessageTypeReply)
		m.AddOption(status(iana.StatusUseMulticast, ""))
		u.send(r, m)
		return
	}
	rapid, pass := false, true
	switch r.MessageType {
	case dhcpv6.MessageTypeSolicit:
		rapid = u.s.c.RapidCommit && r.GetOneOption(dhcpv6.OptionRapidCommit) != nil
		pass = rapid
	case dhcpv6.MessageTypeInformationRequest:
		f, pass = access.Families{V6: true}, false
	case dhcpv6.MessageTypeRequest, dhcpv6.MessageTypeRenew, dhcpv6.MessageTypeRebind:
	default:
		u.leaving(r)
		return
	}
	something := f != (access.Families{})
	if !something && len(r.Options.IATA()) == 0 {
		u.s.count(malformed)
		return
	}
	if something { // temporary addresses, which do not exist here, sign no subscriber in
		u.waiting6 = r
		request := &access.Request{Kind: access.IPoE6, Agent: r.agent, ClientID: r.client, Hint: r.hint()}
		if !u.ready(f, pass, request) {
			return
		}
		u.waiting6 = nil
	}
	kind := dhcpv6.MessageTypeReply
	if r.MessageType == dhcpv6.MessageTypeSolicit && !rapid {
		kind = dhcpv6.MessageTypeAdvertise
	}
	m := u.reply(r, kind)
	if rapid {
		m.AddOption(&dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionRapidCommit})
	}
	u.addresses(r, m)
	if something && kind == dhcpv6.MessageTypeReply && r.MessageType != dhcpv6.MessageTypeInformationRequest {
		u.keep(u.passing)
	}
	u.sleep()
	u.send(r, m)
}

// hint has the client's former addresses (RFC 8415 §18.2.1, §18.2.5), of the first IA of each kind.
func (r *request6) hint() (a access.Addresses) {
	if ia := r.Options.IANA(); len(ia) > 0 {
		if one := ia[0].Options.Addresses(); len(one) > 0 {
			a.IPv6 = hostPrefix(one[0].IPv6Addr)
		}
	}
	if ia := r.Options.IAPD(); len(ia) > 0 {
		if one := ia[0].Options.Prefixes(); len(one) > 0 {
			a.Delegated = prefixOf(one[0].Prefix)
		}
	}
	return a
}

// reply has what all answers have.
func (u v6) reply(r *request6, kind dhcpv6.MessageType) *dhcpv6.Message {
	m := &dhcpv6.Message{MessageType: kind, TransactionID: r.TransactionID}
	m.AddOption(&dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionServerID, OptionData: u.s.c.ServerID})
	if r.client != nil {
		m.AddOption(&dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionClientID, OptionData: r.client})
	}
	return m
}

func status(code iana.StatusCode, text string) *dhcpv6.OptStatusCode {
	return &dhcpv6.OptStatusCode{StatusCode: code, StatusMessage: text}
}

// addresses answers each IA, and adds DNS. Each line has one IA of a kind: the first requested.
func (u v6) addresses(r *request6, m *dhcpv6.Message) {
	preferred, valid := min(u.s.c.Preferred, u.left()), min(u.s.c.Valid, u.left())
	t1, t2 := preferred/2, preferred*4/5
	none := func(code iana.StatusCode, text string) *dhcpv6.OptStatusCode {
		if r.MessageType == dhcpv6.MessageTypeRenew || r.MessageType == dhcpv6.MessageTypeRebind {
			code, text = iana.StatusNoBinding, "not ours"
		}
		u.s.count(noAddress)
		return status(code, text)
	}
	for i, ia := range r.Options.IANA() {
		out := &dhcpv6.OptIANA{IaId: ia.IaId}
		if a := u.hostAddress(); i == 0 && a.IsValid() {
			out.T1, out.T2 = t1, t2
			out.Options.Add(&dhcpv6.OptIAAddress{IPv6Addr: a.AsSlice(), PreferredLifetime: preferred,
				ValidLifetime: valid})
			for _, old := range ia.Options.Addresses() { // no longer the client's (§18.3.4)
				if b, _ := netip.AddrFromSlice(old.IPv6Addr); b != a && renews(r) {
					out.Options.Add(&dhcpv6.OptIAAddress{IPv6Addr: old.IPv6Addr})
				}
			}
			u.bind(address, ia.IaId, m)
		} else {
			out.Options.Add(none(iana.StatusNoAddrsAvail, "no address"))
		}
		m.AddOption(out)
	}
	for i, ia := range r.Options.IAPD() {
		out := &dhcpv6.OptIAPD{IaId: ia.IaId}
		if p := u.session.Grant().Addresses.Delegated; i == 0 && p.IsValid() {
			out.T1, out.T2 = t1, t2
			out.Options.Add(&dhcpv6.OptIAPrefix{Prefix: network(p), PreferredLifetime: preferred,
				ValidLifetime: valid})
			for _, old := range ia.Options.Prefixes() {
				if old.Prefix != nil && old.Prefix.String() != p.String() && renews(r) {
					out.Options.Add(&dhcpv6.OptIAPrefix{Prefix: old.Prefix})
				}
			}
			u.bind(prefix, ia.IaId, m)
		} else {
			out.Options.Add(none(iana.StatusNoPrefixAvail, "no prefix"))
		}
		m.AddOption(out)
	}
	for _, ia := range r.Options.IATA() {
		m.AddOption(temporary(ia, none(iana.StatusNoAddrsAvail, "no temporary address")))
	}
	u.others(r, m)
}

// temporary answers an IA_TA.
func temporary(ia *dhcpv6.OptIATA, status dhcpv6.Option) *dhcpv6.OptIATA {
	out := &dhcpv6.OptIATA{IaId: ia.IaId}
	out.Options.Add(status)
	return out
}

func renews(r *request6) bool {
	return r.MessageType == dhcpv6.MessageTypeRenew || r.MessageType == dhcpv6.MessageTypeRebind
}

func network(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 128)}
}

// bind notes a lease; an Advertise has none.
func (u v6) bind(kind int, iaid [4]byte, m *dhcpv6.Message) {
	if m.MessageType == dhcpv6.MessageTypeReply {
		u.leased[kind] = lease6{iaid, u.s.host.Now().Add(u.s.c.Valid)}
	}
}

// hostAddress is the subscriber's address for IA_NA: its /128, or one of its /64.
func (u v6) hostAddress() netip.Addr {
	p := u.session.Grant().Addresses.IPv6
	if !p.IsValid() || p.Bits() == 128 {
		return p.Addr()
	}
	a := p.Addr().As16()
	a[15] |= u.iid + 1
	return netip.AddrFrom16(a)
}

func (u v6) others(r *request6, m *dhcpv6.Message) {
	var dns []net.IP
	if u.session != nil {
		for _, d := range u.session.Grant().Addresses.DNS {
			if d.Is6() {
				dns = append(dns, d.AsSlice())
			}
		}
	}
	if len(dns) > 0 {
		m.AddOption(dhcpv6.OptDNS(dns...))
	}
	if u.s.c.Domain != "" && r.IsOptionRequested(dhcpv6.OptionDomainSearchList) {
		m.AddOption(dhcpv6.OptDomainSearchList(&rfc1035label.Labels{Labels: []string{u.s.c.Domain}}))
	}
	if r.MessageType == dhcpv6.MessageTypeInformationRequest {
		m.AddOption(dhcpv6.OptInformationRefreshTime(u.s.c.Valid))
	}
}

// leaving is Release, Decline, Confirm: about what the line has (row B10).
func (u v6) leaving(r *request6) {
	if u.session == nil || u.busy {
		u.s.count(notTheirs)
		return
	}
	m := u.reply(r, dhcpv6.MessageTypeReply)
	if r.MessageType == dhcpv6.MessageTypeConfirm {
		if code, ok := u.confirm(r); ok {
			m.AddOption(status(code, ""))
			u.others(r, m)
			u.send(r, m)
		}
		return
	}
	var gone access.Families
	declines := r.MessageType == dhcpv6.MessageTypeDecline
	unbound := status(iana.StatusNoBinding, "not yours")
	for _, ia := range r.Options.IANA() {
		if u.bound(address) && u.leased[address].iaid == ia.IaId {
			u.leased[address] = lease6{}
			gone = union(gone, u.unleased(address))
			if declines {
				u.iid = (u.iid + 1) & 0x7f
				u.declines++
			}
			continue
		}
		out := &dhcpv6.OptIANA{IaId: ia.IaId}
		out.Options.Add(unbound)
		m.AddOption(out)
	}
	for _, ia := range r.Options.IAPD() {
		if !declines && u.bound(prefix) && u.leased[prefix].iaid == ia.IaId {
			u.leased[prefix] = lease6{}
			gone = union(gone, u.unleased(prefix))
			continue
		}
		out := &dhcpv6.OptIAPD{IaId: ia.IaId}
		out.Options.Add(unbound)
		m.AddOption(out)
	}
	for _, ia := range r.Options.IATA() {
		m.AddOption(temporary(ia, unbound))
	}
	m.AddOption(status(iana.StatusSuccess, ""))
	u.send(r, m)
	switch {
	case declines && uint32(u.declines) >= u.s.c.Limits.Declines && u.ppp == nil:
		u.restart(access.UserRequest)
	case !declines && gone != access.Families{}:
		u.drop(gone, access.UserRequest)
	default:
		u.keep(u.passing)
		u.sleep()
	}
}

// confirm: all addresses of a Confirm are on the line's link; any is false without addresses.
func (u v6) confirm(r *request6) (code iana.StatusCode, any bool) {
	code = iana.StatusSuccess
	mine := u.session.Grant().Addresses.IPv6
	for _, ia := range r.Options.IANA() {
		for _, one := range ia.Options.Addresses() {
			any = true
			if a, ok := netip.AddrFromSlice(one.IPv6Addr); !ok || !mine.Contains(a) {
				code = iana.StatusNotOnLink
			}
		}
	}
	return code, any
}

func (u v6) send(r *request6, m *dhcpv6.Message) {
	if m.MessageType == dhcpv6.MessageTypeAdvertise {
		u.s.count(advertises)
	} else {
		u.s.count(replies)
	}
	d := datagram{from: u.local(), to: r.from, source: serverPort6, dest: r.port, protocol: protocolUDP,
		body: r.wrap(m.ToBytes())}
	u.transmit(d.packet())
}
