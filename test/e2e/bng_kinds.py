# SPDX-License-Identifier: Apache-2.0
"""Every kind of home on one access port: each carries packets both ways, and none of another's addresses."""

import ipaddress
import struct

import ipoe
import pppoe
from frames import Wire, check, check_sum, done, equal, rows, show, wait_until
from radius import of_kind, subscriber
from scapy.all import ICMP, IP, ICMPv6EchoReply, ICMPv6EchoRequest, IPv6, Raw

CORE = {4: "10.60.0.2", 6: "fd00:60::2"}
STATIC = {4: "10.99.0.1", 6: "2001:db8:99::1"}
FRAME = 14 + 4  # core side of the home of the file: one tag


def echo(source, to=None):
    """An Echo-Request of a family."""
    if ":" in source:
        return IPv6(src=source, dst=to or CORE[6]) / ICMPv6EchoRequest(seq=1) / Raw(b"x" * 64)
    return IP(src=source, dst=to or CORE[4]) / ICMP(seq=1) / Raw(b"x" * 64)


def is_reply(packet, to):
    return packet.dst == to and (ICMPv6EchoReply in packet or ICMP in packet and packet[ICMP].type == 0)


class Dialled(pppoe.Client):
    def send_ip(self, packet):
        self.send(pppoe.IP6 if packet.version == 6 else pppoe.IP4, bytes(packet))

    def answered(self, address):
        got = self.echo_reply(pppoe.IP6 if ":" in address else pppoe.IP4)
        return got is not None and is_reply(IPv6(got) if ":" in address else IP(got), address)


class Plain(ipoe.Client):
    def answered(self, address):
        kind = ipoe.ETHERNET_IP6 if ":" in address else ipoe.ETHERNET_IP4
        return self.receive_ip(kind, lambda packet: is_reply(packet, address), f"answer to {address}") is not None


class OfFile(Plain):
    """The subscriber of the file, whose packets leave by GTP-U; its peer answers here (TS 29.281, clause 5.1)."""

    def __init__(self, wire, mac, tags):
        super().__init__(wire, mac, tags)
        self.core = Wire("core0")

    def answered(self, address):
        def is_it(data):
            return data[12:16] == b"\x81\x00\x00\x46" and struct.unpack(">H", data[FRAME + 22:FRAME + 24])[0] == 2152
        got = self.core.receive(is_it, 1, "GTP-U of the home of the file")
        if not got:
            return False
        tunnel, inner = got[0][FRAME + 28:FRAME + 36], got[0][FRAME + 36:]
        equal("TEID of the uplink", tunnel[4:8], b"\0\0\x01\x01")
        request = IPv6(inner) if ":" in address else IP(inner)
        equal("in the tunnel", (request.src, request.dst), (address, STATIC[request.version]))
        reply = IPv6(src=request.dst, dst=address) / ICMPv6EchoReply(seq=1) if ":" in address else \
            IP(src=request.dst, dst=address) / ICMP(type=0, seq=1)
        payload = struct.pack(">BBHI", 0x30, 255, len(reply), 0x201) + bytes(reply)
        outer = IP(src="10.30.0.2", dst="10.30.0.1", proto=17) / Raw(
            struct.pack(">HHHH", 2152, 2152, 8 + len(payload), 0) + payload)
        self.core.send(got[0][6:12] + got[0][:6] + got[0][12:FRAME] + bytes(outer))
        return super().answered(address)


def in_prefix(prefix, host):
    return str(ipaddress.ip_network(prefix)[host])


def sign_in(wire):
    """All homes, each with the addresses that are its own."""
    homes = {}
    anna = Dialled(wire, "02:00:00:00:00:01", (100, 1))
    check(anna.sign_in(), "anna is not let in")
    wait_until(lambda: subscriber("anna")["ipv6"], "anna's prefix")
    homes["PPPoE, QinQ, dual stack"] = anna, [anna.ipv4, in_prefix(subscriber("anna")["ipv6"], 0x77)]
    paul = Dialled(wire, "02:00:00:00:00:02", (), "paul")
    check(paul.sign_in(v6=False), "paul is not let in")
    homes["PPPoE, untagged, IPv4"] = paul, [paul.ipv4]
    six = Dialled(wire, "02:00:00:00:00:03", (300, 3), "six")
    check(six.sign_in(v4=False), "six is not let in")
    homes["PPPoE, QinQ, IPv6"] = six, [in_prefix(subscriber("six")["ipv6"], 0x77)]

    dual = Plain(wire, "02:00:00:00:00:04", (100, 4))
    dual.sign_in4()
    dual.sign_in6()
    homes["IPoE, QinQ, dual stack, delegated"] = dual, [dual.ipv4, dual.ipv6, in_prefix(dual.delegated, 0x1234)]
    old = Plain(wire, "02:00:00:00:00:05")
    old.sign_in4()
    homes["IPoE, untagged, IPv4"] = old, [old.ipv4]
    new = Plain(wire, "02:00:00:00:00:06", (200, 6))
    new.sign_in6(delegated=False)
    homes["IPoE, QinQ, IPv6"] = new, [new.ipv6]

    # A sign-in by packet gets no answer, and the packet is lost.
    first = Plain(wire, "02:00:00:00:00:07", (100, 7))
    first.gateway = old.gateway
    first.send_ip(echo("100.64.7.7"))
    wait_until(lambda: ("lines:100.7", "up") in [(r["line"], r["state"]) for r in show("subscriber")],
               "the first packet")
    homes["IPoE, QinQ, first packet"] = first, ["100.64.7.7"]
    static = OfFile(wire, "02:00:00:00:00:08", (100, 8))
    static.gateway = old.gateway
    homes["of the file"] = static, ["100.65.0.8", "2001:db8:300::8"]
    return homes


def carries(homes):
    for name, (home, addresses) in homes.items():
        for address in addresses:
            home.send_ip(echo(address, STATIC[6 if ":" in address else 4] if isinstance(home, OfFile) else None))
            check(home.answered(address), f"{name}: no answer to {address}")
        print(f"{name}: {', '.join(addresses)}")


def refused(name, packets, home, reason):
    """A home's packets are dropped under that name, each one, without any other effect."""
    before, known = rows("drop").get(reason, 0), len(show("subscriber"))
    for packet in packets:
        home.send_ip(packet)
    wait_until(lambda: rows("drop").get(reason, 0) == before + len(packets), f"{name}: {len(packets)} times {reason}")
    equal(f"{name}: subscribers", len(show("subscriber")), known)


def theft(homes):
    """Each home with all addresses of all others."""
    for name, (home, own) in homes.items():
        others = [a for _, addresses in homes.values() for a in addresses if a not in own]
        refused(name, [echo(a) for a in others], home, "source-spoofed")


def main():
    wire = Wire("home0")
    homes = sign_in(wire)
    carries(homes)
    theft(homes)
    anna, dual = homes["PPPoE, QinQ, dual stack"][0], homes["IPoE, QinQ, dual stack, delegated"][0]
    stolen = Dialled(wire, dual.mac.hex(":"), dual.tags)
    stolen.gateway, stolen.session = dual.gateway, anna.session
    refused("an IPoE home in another's PPPoE session", [echo(dual.ipv4)], stolen, "subscriber-unknown")
    carries(homes)
    equal("sessions", len(show("session")), len(homes))
    wait_until(lambda: len(of_kind("Start")) == len(homes) - 1, f"a record of each: {of_kind('Start')}")
    check_sum("kinds")
    done("kinds")


main()
