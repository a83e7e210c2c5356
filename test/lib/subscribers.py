# SPDX-License-Identifier: Apache-2.0
"""The subscribers of test/e2e/agf_veth.yaml and the packets that scapy makes for them: as subscriber gateways and as
UPF."""

import ipaddress
import random
import socket
from dataclasses import dataclass

from scapy.all import ICMP, IP, TCP, UDP, Dot1Q, Ether, ICMPv6EchoRequest, IPv6, PPPoE, Raw
from scapy.contrib.gtp import GTP_U_Header, GTPPDUSessionContainer

INTERNET4, INTERNET6 = "198.51.100.7", "2001:db8:ffff::7"
GATEWAY4, GATEWAY6 = "10.30.0.1", "fd00:30::1"
UPF4, UPF6 = "10.30.0.2", "fd00:30::2"
ACCESS_GATEWAY4, ACCESS_GATEWAY6 = "100.64.0.1", "2001:db8:1::1"


@dataclass
class Subscriber:
    name: str
    mac: str
    tpid: int
    s_tag: int
    c_tag: int
    pppoe: int
    ipv4: str
    ipv6: str
    outer: int  # IP version of its path
    teid_up: int
    teid_down: int
    qfi_up: int
    qfi_down: int
    dscp: int  # of the outer header

    def address(self, version):
        return self.ipv4 if version == 4 else self.ipv6


SUBSCRIBERS = [
    Subscriber("alice", "02:00:00:00:00:01", 0x88a8, 100, 1, 0, "100.64.0.2", "2001:db8:101::10", 4, 0x101, 0x201, 9, 9,
               10),
    Subscriber("bob", "02:00:00:00:00:02", 0x8100, 100, 2, 0, "100.64.0.3", "2001:db8:102:ff::1", 6, 0x102, 0x202, 5, 5,
               46),
    Subscriber("carol", "02:00:00:00:00:03", 0x88a8, 4094, 4094, 7, "100.64.0.4", "2001:db8:103::1", 4, 0x103, 0x203,
               63, 63,
         10),
    Subscriber("dave", "02:00:00:00:00:04", 0x8100, 1, 1, 65534, "100.64.0.5", "2001:db8:104:1::1", 6, 0xfffffffe,
               0x204, 1, 2,
         46),
    Subscriber("eve", "02:00:00:00:00:05", 0x88a8, 200, 1, 0, "100.64.0.6", "2001:db8:105::1", 4, 0x105, 0x205, 0, 0,
               20),
]
SUBSCRIBER = {subscriber.name: subscriber for subscriber in SUBSCRIBERS}

ICMP4_PROTOCOL, TCP_PROTOCOL, UDP_PROTOCOL, ICMP6_PROTOCOL = 1, 6, 17, 58


def payload(size, seed):
    return random.Random(seed).randbytes(size)


def inner(version, source, destination, kind="udp", size=100, tos=0, ttl=17, seed=1, **more):
    """A subscriber's IP packet with `size` bytes of payload. Ports that no dissector claims."""
    if version == 4:
        head = IP(src=source, dst=destination, ttl=ttl, tos=tos, id=seed & 0xffff, **more)
    else:
        head = IPv6(src=source, dst=destination, hlim=ttl, tc=tos, fl=seed & 0xfffff, **more)
    if kind == "udp":
        transport = UDP(sport=40001, dport=40002)
    elif kind == "tcp":
        transport = TCP(sport=40001, dport=40002, seq=seed, ack=7, flags="PA")
    else:
        transport = ICMP(id=0x1234, seq=seed & 0xff) if version == 4 else ICMPv6EchoRequest(id=0x1234, seq=seed & 0xff)
    packet = head / transport / Raw(payload(size, seed))
    return type(head)(bytes(packet))


def to_frame(subscriber, gateway_mac, packet, tpid=None, pad=True, **change):
    """The subscriber gateway's frames. `packet` is IP, or scapy layers that go behind the tags as they are."""
    part = lambda key: change.get(key, getattr(subscriber, key, None))
    version = {IP: 4, IPv6: 6}.get(type(packet))
    frame = Ether(src=part("mac"), dst=gateway_mac, type=tpid or subscriber.tpid)
    frame /= Dot1Q(vlan=part("s_tag"), prio=3, type=0x8100)
    if subscriber.pppoe and version:
        # Two bytes of PPP protocol: PPPoE has no protocol field compression (RFC 2516 §7), scapy's PPP would compress.
        body = Dot1Q(vlan=part("c_tag"), prio=5, type=0x8864) / PPPoE(sessionid=part("pppoe"))
        body /= Raw(b"\x00\x21" if version == 4 else b"\x00\x57") / packet
    else:
        kind = {4: 0x0800, 6: 0x86dd}.get(version, change.get("ethertype"))
        body = Dot1Q(vlan=part("c_tag"), prio=5, type=kind) / packet
    data = bytes(frame / body)
    return data.ljust(60, b"\x00") if pad else data


def from_upf(subscriber, core_mac, our_mac, packet, outer=None, container=True, teid=None, qfi=None, **more):
    """A G-PDU as a UPF sends it. packet: IP or bytes."""
    version = outer or subscriber.outer
    if version == 4:
        ip = IP(src=UPF4, dst=GATEWAY4, ttl=60, id=77)
    else:
        ip = IPv6(src=UPF6, dst=GATEWAY6, hlim=60)
    gtpu = GTP_U_Header(teid=subscriber.teid_down if teid is None else teid, gtp_type=255, **more)
    if container:
        # Downlink PDU SESSION INFORMATION, TS 38.415 §5.5.2.1.
        gtpu /= GTPPDUSessionContainer(type=0, QFI=subscriber.qfi_down if qfi is None else qfi)
    return bytes(Ether(src=our_mac, dst=core_mac) / ip / UDP(sport=2152, dport=2152) / gtpu / Raw(bytes(packet)))


def silent_gtpu():
    """Keeps the kernel from answering G-PDUs with port unreachable: these sockets are not read."""
    sockets = []
    for family in (socket.AF_INET, socket.AF_INET6):
        s = socket.socket(family, socket.SOCK_DGRAM)
        if family == socket.AF_INET6:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        s.bind(("0.0.0.0" if family == socket.AF_INET else "::", 2152))
        sockets.append(s)
    return sockets


def same_address(a, b):
    return a is not None and b is not None and ipaddress.ip_address(a) == ipaddress.ip_address(b)
