# SPDX-License-Identifier: Apache-2.0
"""Endless bad input for a UPF, of every kind that the tables of hostile inputs have: frames for N3 and N6, PFCP
messages."""

import ipaddress
import struct

import n4
import pfcp_hostile
from n4 import (ASSOCIATION_SETUP, DELETE, ESTABLISH, HEARTBEAT, MODIFY, fteid, group, ie, message, node_id, recovery,
                rules_of, u8, u16, u32)
from scapy.all import ARP, ICMP, IP, TCP, UDP, Ether, ICMPv6ND_NS, IPv6, Raw, fragment
from scapy.contrib.gtp import GTP_U_Header, GTPPDUSessionContainer

MARTIANS = ("0.0.0.0", "127.0.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255")
OURS = (n4.UPF_N4, n4.N3, "10.60.0.1")


class Frames:
    """Bad frames of the radio network (N3) and of the data network (N6), as bytes."""

    def __init__(self, random, mac, gnb_mac, dn_mac, teids, ues):
        self.random, self.teids, self.ues = random, teids, ues
        self.n3, self.n6 = Ether(src=gnb_mac, dst=mac["n3"]), Ether(src=dn_mac, dst=mac["n6"])

    def inner(self, source=None, destination=n4.DN, **more):
        head = IP(src=source or self.random.choice(self.ues), dst=destination, ttl=17, **more)
        return head / UDP(sport=40001, dport=40002) / Raw(self.random.randbytes(self.random.choice((0, 20, 64, 400))))

    def gpdu(self, inner, teid=None, outer=None, **more):
        gtpu = (GTP_U_Header(teid=self.random.choice(self.teids) if teid is None else teid, gtp_type=255)
                / GTPPDUSessionContainer(type=1, QFI=9))
        return self.n3 / IP(src=outer or n4.GNB, dst=n4.N3, **more) / UDP(sport=2152, dport=2152) / gtpu / inner

    def broken(self):
        """A good G-PDU cut anywhere, or with bits turned behind the Ethernet header (rows G1 to G10, G25)."""
        data = bytearray(bytes(self.gpdu(self.inner())))
        if self.random.random() < 0.3:
            del data[self.random.randrange(14, len(data)):]
        else:
            for _ in range(self.random.randint(1, 4)):
                data[self.random.randrange(14, min(len(data), 90))] ^= 1 << self.random.randrange(8)
        return bytes(data)

    def headers(self):
        """Chains of extension headers: of length 0, too many, past the end (G1 to G3)."""
        chain = b"".join(b"\x01\x00\x00" + bytes([self.random.choice((0xc0, 0x85, 0x40))])
                         for _ in range(self.random.choice((1, 9, 200))))
        body = (struct.pack(">BBHI", 0x34, 255, 4 + len(chain), self.random.choice(self.teids)) + bytes(3) + b"\x85"
                + chain)
        if self.random.random() < 0.5:
            body = body[:12] + b"\x00" + body[13:]
        return self.n3 / IP(src=n4.GNB, dst=n4.N3) / UDP(sport=2152, dport=2152) / Raw(body)

    def unknown(self):
        """Unknown TEIDs, TEID 0 (A13, G14, G15)."""
        return self.gpdu(self.inner(), teid=self.random.choice((0, self.random.getrandbits(32))))

    def spoofed(self):
        """Sources and destinations that are not the UE's to use (A11, G11, G12, G24)."""
        if self.random.random() < 0.5:
            return self.gpdu(self.inner(source=self.random.choice(MARTIANS + ("10.45.99.99", "8.8.8.8"))))
        return self.gpdu(self.inner(destination=self.random.choice(MARTIANS + OURS)))

    def messages(self):
        """Echo Requests, Error Indications, End Markers, unknown types (G17, G18)."""
        kind = self.random.choice((1, 2, 26, 31, 254, self.random.randrange(256)))
        body = self.random.choice((b"", b"\x10" + self.random.randbytes(4) + b"\x85\x00\x04" + bytes(4),
                                   self.random.randbytes(30)))
        head = struct.pack(">BBHI", 0x32, kind, 4 + len(body), self.random.choice([0, *self.teids])) + bytes(4)
        return self.n3 / IP(src=n4.GNB, dst=n4.N3) / UDP(sport=2152, dport=2152) / Raw(head + body)

    def nested(self):
        """GTP-U in GTP-U (G9, G10), UE to UE (G21)."""
        if self.random.random() < 0.5:
            return self.gpdu(self.inner(destination=self.random.choice(self.ues)))
        ue = self.random.choice(self.ues)
        return self.gpdu(IP(src=ue, dst=n4.N3) / UDP(sport=2152, dport=2152)
                         / Raw(bytes(GTP_U_Header(teid=1, gtp_type=255) / self.inner())))

    def fragments(self):
        """Fragments to our own address that never make a whole, tiny ones, overlaps (G22)."""
        whole = (IP(src=f"10.30.0.{self.random.randint(10, 250)}", dst=n4.N3, id=self.random.getrandbits(16))
                 / UDP(sport=2152, dport=2152))
        parts = fragment(whole / Raw(bytes(1400)), fragsize=self.random.choice((8, 64, 600)))
        part = self.random.choice(parts)
        part.frag = max(0, part.frag - self.random.choice((0, 0, 1)))
        return self.n3 / part

    def oversized(self):
        """TTL 1, DF and more than the next link takes, downlink too (G23)."""
        if self.random.random() < 0.5:
            return self.gpdu(IP(src=self.random.choice(self.ues), dst=n4.DN,
                                ttl=1) / UDP(sport=1, dport=2) / Raw(bytes(40)))
        return (self.n6 / IP(src=n4.DN, dst=self.random.choice(self.ues), flags="DF") / UDP(sport=40002, dport=40001)
                / Raw(bytes(1470)))

    def stray(self):
        """On the wrong side, without a receiver, tunnels to the router (G19, G20, G27), UE addresses without a session.
        """
        to = self.random.choice((n4.N3, "10.60.0.1",
                                 f"10.45.{self.random.randrange(256)}.{self.random.randrange(256)}"))
        inner = self.random.choice((UDP(sport=2152, dport=2152) / Raw(bytes(20)),
                                    IP(src="1.2.3.4", dst="5.6.7.8") / Raw(bytes(20)),
                                    TCP(dport=8805, dataofs=3), ICMP() / Raw(bytes(20))))
        return self.n6 / IP(src=n4.DN, dst=to) / inner

    def neighbours(self):
        """Scans that ask for neighbours, spoofed ARP and ND (B11's like on core ports)."""
        scanned = str(ipaddress.IPv6Address(int(ipaddress.IPv6Address("fd00:60::")) + self.random.getrandbits(60)))
        choice = self.random.randrange(3)
        if choice == 0:
            return (Ether(src=self.n6.src, dst="ff:ff:ff:ff:ff:ff")
                    / ARP(op=1, psrc=f"10.60.0.{self.random.randrange(256)}", pdst="10.60.0.1"))
        if choice == 1:
            return self.n6 / IPv6(src="fd00:60::9", dst="fd00:60::1", hlim=255) / ICMPv6ND_NS(tgt=scanned)
        return self.gpdu(self.inner(destination=f"10.60.0.{self.random.randint(3, 250)}"))

    def frame(self):
        """(interface, bytes) of one bad frame."""
        kind = self.random.choice((self.broken, self.broken, self.headers, self.unknown, self.spoofed, self.messages,
                                   self.nested, self.fragments, self.oversized, self.stray, self.neighbours))
        data = bytes(kind())
        return "dn0" if data[6:12] == bytes.fromhex(self.n6.src.replace(":", "")) else "gnb0", data


class Messages:
    """Bad PFCP: rows P and A."""

    def __init__(self, random, good):
        """`good`: an associated Node, whose messages are imitated."""
        self.random, self.good = random, good
        fake = type("World", (), {"smf": good})
        self.bodies = [body for _, body, *_ in pfcp_hostile.establish_rows(fake)]

    def sequence(self):
        return self.random.getrandbits(24)

    def establishment(self):
        return message(ESTABLISH, self.random.choice(self.bodies), self.sequence(), seid=0)

    def turned(self):
        """A good message with bits turned, or cut."""
        body = self.good.establish_body(self.random.getrandbits(63),
                                        rules_of(self.random.getrandbits(32) or 1, "10.45.77.77"))
        data = bytearray(message(ESTABLISH, body, self.sequence(), seid=0))
        for _ in range(self.random.randint(1, 6)):
            data[self.random.randrange(len(data))] ^= 1 << self.random.randrange(8)
        return bytes(data[:self.random.choice((len(data), self.random.randrange(len(data))))])

    def guess(self):
        kind = self.random.choice((MODIFY, DELETE))
        return message(kind, group(10, u32(108, 2), u8(44, 1)) if kind == MODIFY else b"", self.sequence(),
                       seid=self.random.getrandbits(64))

    def node(self):
        body = self.random.choice((b"", recovery(1),
                                   node_id("n%d.evil.test" % self.random.randrange(10000)) + recovery(1), ie(96, b"\0"),
                                   struct.pack(">HH", 96, 40) + bytes(4)))
        return message(self.random.choice((ASSOCIATION_SETUP, HEARTBEAT, 2, 5, 9, 12, 14, 57, 200)), body,
                       self.sequence(),
                       length=self.random.choice((None, None, 0, 65535)), version=self.random.choice((1, 1, 1, 2, 7)))

    def many(self):
        urrs = b"".join(group(6, u32(81, i), u8(62, 2), ie(37, b"\x02\x00")) for i in range(1, 800))
        return message(ESTABLISH, self.good.establish_body(5, group(1, u16(56, 1), fteid(0)) + urrs), self.sequence(),
                       seid=0)

    def message(self):
        kind = self.random.choice((self.establishment, self.establishment, self.turned, self.turned, self.guess,
                                   self.node, self.many))
        return kind()
