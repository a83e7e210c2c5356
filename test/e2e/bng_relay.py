# SPDX-License-Identifier: Apache-2.0
"""A home by PPPoE, without IPv4, gets an address and a prefix from Kea through the gateway's DHCPv6 relay.

Usage: bng_relay.py sign-in, which prints its PPPoE session and the gateway's MAC; bng_relay.py leave SESSION MAC"""

import struct
import sys

import ipoe
import pppoe
from frames import Wire, check, done, equal, show, wait_until
from radius import subscriber
from scapy.all import (DHCP6_Release, DHCP6_Renew, DHCP6_Reply, DHCP6OptClientId, DHCP6OptIA_NA, DHCP6OptIA_PD,
                       DHCP6OptIAAddress, DHCP6OptIAPrefix, DHCP6OptServerId, DUID_EN, DUID_LL, ICMPv6EchoReply,
                       ICMPv6EchoRequest, IPv6)

CORE, USER = "fd00:60::2", "paula"
ADDRESS, PREFIX = "2001:db8:500::5", "2001:db8:600:"


class Home(pppoe.Client):
    """DHCPv6 of an IPoE home, within a PPP session."""
    exchange6, sign_in6 = ipoe.Client.exchange6, ipoe.Client.sign_in6
    link_local = "fe80::77" # of the identifier that IPv6CP is asked for

    def send_ip(self, packet, _=None):
        self.send(pppoe.IP6, bytes(packet))

    def receive_ip(self, _, test, what):
        while (got := self.next(pppoe.IP6)) is not None:
            if test(IPv6(got[3])):
                return IPv6(got[3])
        raise SystemExit(f"no {what}")

    def carries(self):
        for source in self.ipv6, self.delegated.replace("/56", "7"):
            self.send_ip(IPv6(src=source, dst=CORE) / ICMPv6EchoRequest(seq=1))
            self.receive_ip(0, lambda p, to=source: ICMPv6EchoReply in p and p.dst == to, f"answer to {source}")


def addresses():
    row = subscriber(USER)
    return tuple(row.get(key) for key in ("state", "ipv4", "ipv6", "delegated"))


def sign_in():
    home = Home(Wire("home0"), "02:00:00:00:05:01", (), USER)
    check(home.sign_in(v4=False), "the home is not let in")
    home.send(pppoe.LCP, pppoe.control(8, 9, struct.pack(">HBBH", pppoe.IPCP, 1, 1, 4))) # Protocol-Reject
    home.sign_in6()
    check(home.ipv6.startswith(ADDRESS) and home.delegated.startswith(PREFIX), f"{home.ipv6}, {home.delegated}")
    home.carries()
    wait_until(lambda: addresses() == ("up", "", f"{home.ipv6}/128", home.delegated), "a home of IPv6 alone")
    print(home.session, home.gateway.hex(":"), home.ipv6, home.delegated)


def leave(session, gateway, ipv6, delegated):
    home = Home(Wire("home0"), "02:00:00:00:05:01", (), USER)
    home.session, home.gateway = int(session), bytes.fromhex(gateway.replace(":", ""))
    home.ipv6, home.delegated = ipv6, delegated
    home.carries()
    about = DHCP6OptClientId(duid=DUID_LL(lladdr=home.mac.hex(":"))) / \
        DHCP6OptServerId(duid=DUID_EN(enterprisenum=32473, id=b"\1")) / \
        DHCP6OptIA_NA(iaid=1, ianaopts=[DHCP6OptIAAddress(addr=ipv6)]) / \
        DHCP6OptIA_PD(iaid=2, iapdopt=[DHCP6OptIAPrefix(prefix=delegated.split("/", maxsplit=1)[0], plen=56)])
    reply = home.exchange6(DHCP6_Renew(trid=21) / about, DHCP6_Reply)
    equal("renewed", reply[DHCP6OptIA_NA].ianaopts[0].addr, ipv6)
    home.carries()
    home.exchange6(DHCP6_Release(trid=22) / about, DHCP6_Reply)
    wait_until(lambda: addresses() == ("up", "", "", ""), "the address and the prefix to be gone, and not the session")
    home.hang_up()
    wait_until(lambda: all(row["user"] != USER for row in show("subscriber")), "the session to end")
    done("relay")


if sys.argv[1] == "sign-in":
    sign_in()
else:
    leave(*sys.argv[2:])
