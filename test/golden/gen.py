# SPDX-License-Identifier: Apache-2.0
"""Makes the captures that go in. usage: gen.py [CASE...]

CASES names, for each case, the frames of both ports with their times and the reasons under which packets must be
counted.
"""

import os
import sys

from cases import downlink_cases, uplink_cases
from frames import write_pcap
from scapy.all import (ARP, BOOTP, DHCP, IP, UDP, Dot1Q, Ether, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6NDOptDstLLAddr,
                       ICMPv6NDOptSrcLLAddr, IPv6, IPv6ExtHdrFragment, PPPoED, PPPoETag, Raw, fragment, fragment6)
from scapy.contrib.gtp import GTPEchoRequest, GTP_U_Header
from subscribers import (GATEWAY4, GATEWAY6, SUBSCRIBER, ACCESS_GATEWAY4, ACCESS_GATEWAY6, INTERNET4, INTERNET6, UPF4,
                         UPF6, from_upf, inner, to_frame)

ACCESS, CORE, UPF = "02:00:00:00:99:00", "02:00:00:00:99:01", "02:00:00:00:30:02"
BROADCAST = "ff:ff:ff:ff:ff:ff"
HERE = os.path.dirname(os.path.abspath(__file__))


class Case:
    """Frames in, a millisecond apart, on any port; and how many end under which reason."""

    def __init__(self):
        self.access, self.core, self.reasons, self.now = [], [], {}, 0.0

    def put(self, side, frame, reason=None):
        self.now += 0.001
        getattr(self, side).append((self.now, bytes(frame)))
        if reason:
            self.reasons[reason] = self.reasons.get(reason, 0) + 1

    def wait(self, seconds):
        self.now += seconds


def core_frame(packet, vlan=None):
    ether = Ether(src=UPF, dst=CORE)
    return bytes(ether / Dot1Q(vlan=vlan) / packet if vlan else ether / packet)


def traffic(case):
    up, down = list(uplink_cases(ACCESS)), list(downlink_cases(CORE, UPF))
    for i in range(max(len(up), len(down))):
        if i < len(up):
            case.put("access", up[i][4])
        if i < len(down):
            case.put("core", down[i][4])


def upf_message(version, message, port=2152):
    ip = IP(src=UPF4, dst=GATEWAY4) if version == 4 else IPv6(src=UPF6, dst=GATEWAY6)
    return core_frame(ip / UDP(sport=port, dport=2152) / message)


def control(case):
    alice, bob, carol = SUBSCRIBER["alice"], SUBSCRIBER["bob"], SUBSCRIBER["carol"]
    for subscriber in (alice, bob):
        question = ARP(op=1, hwsrc=subscriber.mac, psrc=subscriber.ipv4, pdst=ACCESS_GATEWAY4)
        case.put("access", to_frame(subscriber, BROADCAST, question, tpid=0x8100, ethertype=0x0806))
        question = (IPv6(src=subscriber.ipv6, dst="ff02::1:ff00:1", hlim=255) / ICMPv6ND_NS(tgt=ACCESS_GATEWAY6) /
                    ICMPv6NDOptSrcLLAddr(lladdr=subscriber.mac))
        case.put("access", to_frame(subscriber, "33:33:ff:00:00:01", question))
    for subscriber in (alice, bob, carol):
        for version, gateway in ((4, ACCESS_GATEWAY4), (6, ACCESS_GATEWAY6)):
            case.put("access",
                     to_frame(subscriber, ACCESS, inner(version, subscriber.address(version), gateway, "icmp", 56)))
    for version, us, peer in ((4, GATEWAY4, UPF4), (6, GATEWAY6, UPF6)):
        case.put("core", core_frame(inner(version, peer, us, "icmp", 56)))
        case.put("core",
                 upf_message(version, GTP_U_Header(teid=0, gtp_type=1, S=1, seq=0x4711) / GTPEchoRequest(), 50000))
        case.put("core", from_upf(alice, CORE, UPF, inner(4, INTERNET4, alice.ipv4), outer=version, teid=0xdead),
                 "gtpu-teid-unknown")
        case.put("core", core_frame(inner(version, peer, "10.60.0.9" if version == 4 else "fd00:60::9", ttl=1)))
    case.put("core", core_frame(ARP(op=1, hwsrc=UPF, psrc=UPF4, pdst=GATEWAY4)), "arp")
    solicit = (IPv6(src=UPF6, dst="ff02::1:ff00:1", hlim=255) / ICMPv6ND_NS(tgt=GATEWAY6)
               / ICMPv6NDOptSrcLLAddr(lladdr=UPF))
    case.put("core", bytes(Ether(src=UPF, dst="33:33:ff:00:00:01") / solicit), "nd")
    case.put("core", upf_message(4, GTP_U_Header(teid=alice.teid_down, gtp_type=254)), "gtpu-end-marker")
    padi = PPPoED(code=0x09) / PPPoETag(tag_type=0x0101)
    case.put("access", to_frame(carol, BROADCAST, padi, ethertype=0x8863), "pppoe-discovery")
    echo = Raw(bytes([0x11, 0]) + carol.pppoe.to_bytes(2, "big") + b"\x00\x0a\xc0\x21\x09\x01\x00\x08\x00\x00\x00\x00")
    case.put("access", to_frame(carol, ACCESS, echo, ethertype=0x8864), "ppp-control")
    discover = (IP(src="0.0.0.0", dst="255.255.255.255") / UDP(sport=68, dport=67) /
                BOOTP(chaddr=bytes.fromhex(alice.mac.replace(":", "")), xid=1) /
                DHCP(options=[("message-type", "discover"), "end"]))
    case.put("access", to_frame(alice, BROADCAST, discover), "dhcp")


def in_pieces(frame):
    """A core frame whose outer packet comes in fragments."""
    ip = Ether(frame).payload
    if ip.version == 4:
        pieces = fragment(ip, fragsize=1400)
    else:
        ip.payload, rest = IPv6ExtHdrFragment(id=0x55, nh=17), ip.payload
        ip.plen, ip.nh = None, 44
        pieces = fragment6(ip / rest, 1400)
    return [core_frame(piece) for piece in pieces]


def fragments(case):
    for name in ("alice", "bob", "carol"):
        subscriber = SUBSCRIBER[name]
        case.put("access", to_frame(subscriber, ACCESS, inner(4, subscriber.ipv4, INTERNET4, "udp", 1464, seed=80)))
    for name in ("carol", "dave"):
        subscriber = SUBSCRIBER[name]
        for packet in (inner(4, INTERNET4, subscriber.ipv4, "udp", 1472, seed=90),
                       inner(4, INTERNET4, subscriber.ipv4, "udp", 1472, seed=91, flags="DF"),
                       inner(6, INTERNET6, subscriber.ipv6, "udp", 1452, seed=92)):
            for piece in reversed(in_pieces(from_upf(subscriber, CORE, UPF, packet))):
                case.put("core", piece)
    # One whose second piece never comes.
    case.put("core", in_pieces(from_upf(SUBSCRIBER["carol"], CORE, UPF,
                                        inner(4, INTERNET4, SUBSCRIBER["carol"].ipv4, "udp", 1472)))[0],
             "reassembly-timeout")


def neighbours(case):
    """Packets for hosts of VLAN 60: one answers after half a second, the other never."""
    for version, source, host, us in ((4, UPF4, "10.60.0.2", "10.60.0.1"), (6, UPF6, "fd00:60::2", "fd00:60::1")):
        mac = "02:00:00:00:60:02"
        for seed in (1, 2, 3):
            case.put("core", core_frame(inner(version, source, host, "udp", 40, seed=seed)))
        case.wait(0.5)
        if version == 4:
            answer = ARP(op=2, hwsrc=mac, psrc=host, hwdst=CORE, pdst=us)
        else:
            answer = (IPv6(src=host, dst=us, hlim=255) / ICMPv6ND_NA(tgt=host, R=0, S=1, O=1) /
                      ICMPv6NDOptDstLLAddr(lladdr=mac))
        case.put("core", bytes(Ether(src=mac, dst=CORE) / Dot1Q(vlan=60) / answer))
        case.put("core", core_frame(inner(version, source, host, "udp", 40, seed=4)))
    case.put("core", core_frame(inner(4, UPF4, "10.60.0.3", "udp", 40)))


def changed(data, at, new):
    data = bytearray(data)
    data[at:at + len(new)] = new
    return bytes(data)


def bad_input(case):
    alice, carol = SUBSCRIBER["alice"], SUBSCRIBER["carol"]
    good = inner(4, alice.ipv4, INTERNET4)
    put = lambda reason, frame: case.put("access", frame, reason)
    put("access-ethernet", to_frame(alice, ACCESS, good)[:13])
    put("access-tags", bytes(Ether(src=alice.mac, dst=ACCESS) / Dot1Q(vlan=1) / Dot1Q(vlan=2) / Dot1Q(vlan=3) / good))
    put("access-mac-not-ours", to_frame(alice, "02:00:00:00:99:77", good))
    put("access-source-mac", to_frame(alice, ACCESS, good, mac="03:00:00:00:00:01"))
    put("access-ethertype", to_frame(alice, ACCESS, Raw(bytes(60)), ethertype=0x88b5))
    put("subscriber-unknown", to_frame(alice, ACCESS, good, c_tag=99))
    put("subscriber-unknown", to_frame(alice, ACCESS, good, mac="02:00:00:00:00:77"))
    put("subscriber-unknown", to_frame(carol, ACCESS, inner(4, carol.ipv4, INTERNET4), pppoe=8))
    put("subscriber-unknown", bytes(Ether(src=alice.mac, dst=ACCESS, type=0x8100) / Dot1Q(vlan=100) / good))
    put("pppoe-malformed", changed(to_frame(carol, ACCESS, inner(4, carol.ipv4, INTERNET4)), 26, b"\xff\xff"))
    put("pppoe-malformed", changed(to_frame(carol, ACCESS, inner(4, carol.ipv4, INTERNET4)), 22, b"\x21"))
    put("access-ip-malformed", changed(to_frame(alice, ACCESS, good), 24, b"\xff\xff"))
    put("access-ip-malformed", changed(to_frame(alice, ACCESS, good), 22, b"\x44"))
    put("access-ip-checksum", changed(to_frame(alice, ACCESS, good), 32, b"\xde\xad"))
    put("access-ip-version", changed(to_frame(alice, ACCESS, inner(6, alice.ipv6, INTERNET6)), 20, b"\x08\x00"))
    put("access-martian", to_frame(alice, ACCESS, inner(4, "127.0.0.1", INTERNET4)))
    put("access-multicast", to_frame(alice, ACCESS, inner(4, alice.ipv4, "224.0.0.5")))
    put("source-spoofed", to_frame(alice, ACCESS, inner(4, SUBSCRIBER["bob"].ipv4, INTERNET4)))
    put("source-spoofed", to_frame(alice, ACCESS, inner(6, SUBSCRIBER["bob"].ipv6, INTERNET6)))
    put("subscriber-to-gateway", to_frame(alice, ACCESS, inner(4, alice.ipv4, GATEWAY4)))
    put("subscriber-gtpu",
        to_frame(alice, ACCESS, IP(src=alice.ipv4, dst=INTERNET4) / UDP(sport=1, dport=2152) / b"12345678"))
    spoof = ARP(op=1, hwsrc=alice.mac, psrc=SUBSCRIBER["bob"].ipv4, pdst=ACCESS_GATEWAY4)
    put("neighbour-spoof", to_frame(alice, BROADCAST, spoof, ethertype=0x0806))
    unknown = ARP(op=1, hwsrc="02:00:00:00:00:77", psrc=alice.ipv4, pdst=ACCESS_GATEWAY4)
    put("neighbour-unknown-subscriber", to_frame(alice, BROADCAST, unknown, ethertype=0x0806, mac="02:00:00:00:00:77"))
    bad_core(case)


def bad_core(case):
    """Offsets in a core frame: IPv4 at 14, UDP at 34, GTP-U at 42, extension at 54, inner IP at 58."""
    alice = SUBSCRIBER["alice"]
    good = changed(from_upf(alice, CORE, UPF, inner(4, INTERNET4, alice.ipv4)), 40, bytes(2))  # no UDP checksum
    put = lambda reason, frame: case.put("core", frame, reason)
    gtpu = lambda packet, **more: from_upf(alice, CORE, UPF, packet, **more)
    put("ethernet-short", good[:13])
    put("mac-not-ours", changed(good, 0, bytes.fromhex("020000009977")))
    put("interface-unknown", core_frame(Ether(good).payload, vlan=61))
    put("ethertype-unknown", changed(good, 12, b"\x88\xb5"))
    put("ip-checksum", changed(good, 24, b"\xde\xad"))
    put("ip-length",
        bytes(Ether(src=UPF, dst=CORE) / IP(src=UPF4, dst=GATEWAY4, len=2000) / UDP(dport=2152) / b"12345678"))
    put("ip-protocol-unreachable", core_frame(IP(src=UPF4, dst=GATEWAY4, proto=4) / inner(4, INTERNET4, alice.ipv4)))
    put("gtpu-udp-length", changed(good, 38, b"\x00\x10"))
    put("gtpu-udp-checksum", changed(good, 40, b"\xde\xad"))
    put("gtpu-not-endpoint",
        core_frame(IP(src=UPF4, dst="10.60.0.1") / UDP(sport=2152, dport=2152) / bytes(Ether(good))[42:]))
    put("gtpu-short", core_frame(IP(src=UPF4, dst=GATEWAY4) / UDP(sport=2152, dport=2152) / b"\x30\xff\x00"))
    put("gtpu-version", changed(good, 42, b"\x54"))
    put("gtpu-version", changed(good, 42, b"\x24"))
    put("gtpu-length", changed(good, 44, b"\xff\xff"))
    put("gtpu-extension", changed(good, 54, b"\x00"))
    put("gtpu-extension", changed(good, 54, b"\xff"))
    put("gtpu-inner-version", gtpu(b"\x55" + bytes(39)))
    put("gtpu-inner-malformed", gtpu(bytes(inner(4, INTERNET4, alice.ipv4))[:-1]))
    put("gtpu-inner-malformed", gtpu(b"\x45\x00"))
    put("gtpu-inner-checksum", changed(good, 68, b"\xde\xad"))
    put("gtpu-inner-martian", gtpu(inner(4, "127.0.0.1", alice.ipv4)))
    put("destination-not-ue", gtpu(inner(4, INTERNET4, SUBSCRIBER["bob"].ipv4)))
    put("gtpu-teid-zero", gtpu(inner(4, INTERNET4, alice.ipv4), teid=0))
    put("gtpu-message-unknown", upf_message(4, GTP_U_Header(teid=1, gtp_type=77)))
    put("gtpu-end-marker-unknown", upf_message(4, GTP_U_Header(teid=0xdead, gtp_type=254)))


def make(name):
    case = Case()
    CASES[name](case)
    return case


CASES = {"traffic": traffic, "two-workers": traffic, "control": control, "fragments": fragments,
         "neighbours": neighbours, "bad-input": bad_input}

if __name__ == "__main__":
    for name in sys.argv[1:] or CASES:
        case = make(name)
        for side in ("access", "core"):
            frames = getattr(case, side)
            write_pcap(f"{HERE}/{name}/in-{side}.pcap", [data for _, data in frames], [at for at, _ in frames])
