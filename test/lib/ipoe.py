# SPDX-License-Identifier: Apache-2.0
"""An IPoE home for the tests: DHCPv4 (RFC 2131), DHCPv6 with IA_NA and IA_PD (RFC 8415) by scapy, and plain IP."""

from frames import check
from line import BROADCAST, Line
from scapy.all import (BOOTP, DHCP, ICMP, IP, UDP, DHCP6_Advertise, DHCP6_Reply, DHCP6_Request, DHCP6_Solicit,
                       DHCP6OptClientId, DHCP6OptIA_NA, DHCP6OptIA_PD, DHCP6OptServerId, DUID_LL, IPv6)

ETHERNET_IP4, ETHERNET_IP6 = 0x0800, 0x86DD
ALL_SERVERS, ALL_SERVERS_MAC = "ff02::1:2", bytes.fromhex("333300010002")


class Client(Line):
    """One home. It has ipv4, dns of it, ipv6, delegated; None where it has not asked."""

    def __init__(self, wire, mac, tags=()):
        super().__init__(wire, mac, tags)
        self.ipv4 = self.dns = self.server = self.ipv6 = self.delegated = None
        self.link_local = f"fe80::{self.mac[4]:x}{self.mac[5]:02x}"

    def send_ip(self, packet, to=None):
        self.wire.send(self.frame(ETHERNET_IP6 if packet.version == 6 else ETHERNET_IP4, bytes(packet), to))

    def receive_ip(self, kind, test, what):
        """The next packet of an EtherType that passes the test; without one the test run ends."""
        def is_it(data):
            body = self.mine(data, kind)
            return body is not None and test(IPv6(body) if kind == ETHERNET_IP6 else IP(body))
        got = self.wire.receive(is_it, 1, what)
        if not got:
            raise SystemExit(f"no {what}")
        self.gateway = got[0][6:12]
        return IPv6(self.mine(got[0], kind)) if kind == ETHERNET_IP6 else IP(self.mine(got[0], kind))

    def message4(self, kind, *options, address="0.0.0.0"):
        self.send_ip(IP(src=address, dst="255.255.255.255") / UDP(sport=68, dport=67) /
                     BOOTP(chaddr=self.mac, xid=7, ciaddr=address) /
                     DHCP(options=[("message-type", kind), *options, "end"]), BROADCAST)

    def answered4(self, kind, what):
        def is_it(packet):
            return DHCP in packet and ("message-type", kind) in packet[DHCP].options
        return self.receive_ip(ETHERNET_IP4, is_it, what)

    def sign_in4(self):
        wants = ("param_req_list", [1, 3, 6])
        self.message4("discover", wants)
        offer = self.answered4(2, "DHCPOFFER")
        self.server = {o[0]: o[1] for o in offer[DHCP].options}["server_id"]
        self.message4("request", ("server_id", self.server), ("requested_addr", offer[BOOTP].yiaddr), wants)
        ack = self.answered4(5, "DHCPACK")
        self.ipv4, self.dns = ack[BOOTP].yiaddr, {o[0]: o[1:] for o in ack[DHCP].options}.get("name_server")
        check(self.ipv4 == offer[BOOTP].yiaddr, f"offered {offer[BOOTP].yiaddr}, given {self.ipv4}")

    def release4(self, address=None):
        """Releases its address, or claims that another was its own."""
        self.message4("release", ("server_id", self.server), address=address or self.ipv4)

    def pinged(self, to):
        """A ping is answered."""
        self.send_ip(IP(src=self.ipv4, dst=to) / ICMP(seq=1))
        self.receive_ip(ETHERNET_IP4, lambda p: ICMP in p and p[ICMP].type == 0 and p.dst == self.ipv4,
                        f"answer to a ping of {self.ipv4}")

    def exchange6(self, message, answer):
        header = IPv6(src=self.link_local, dst=ALL_SERVERS, hlim=1) / UDP(sport=546, dport=547)
        self.send_ip(header / message, ALL_SERVERS_MAC)
        return self.receive_ip(ETHERNET_IP6, lambda packet: answer in packet, answer.__name__)

    def sign_in6(self, delegated=True):
        own = DHCP6OptClientId(duid=DUID_LL(lladdr=self.mac.hex(":")))
        wants = DHCP6OptIA_NA(iaid=1)
        if delegated:
            wants = wants / DHCP6OptIA_PD(iaid=2)
        offer = self.exchange6(DHCP6_Solicit(trid=7) / own / wants, DHCP6_Advertise)
        server = DHCP6OptServerId(duid=offer[DHCP6OptServerId].duid)
        reply = self.exchange6(DHCP6_Request(trid=8) / own / server / wants, DHCP6_Reply)
        self.ipv6 = reply[DHCP6OptIA_NA].ianaopts[0].addr
        if delegated:
            prefix = reply[DHCP6OptIA_PD].iapdopt[0]
            self.delegated = f"{prefix.prefix}/{prefix.plen}"
