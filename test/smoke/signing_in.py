#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Subscribers of scapy sign in to a control plane of test/lib/channel.py: their packets come up, answers come down."""

import os

from channel import Channel
from frames import Wire, check, check_sum, done, equal, rows, show, wait_until
from scapy.all import (BOOTP, DHCP, IP, UDP, Dot1AD, Dot1Q, Ether, ICMPv6ND_RS, IPv6, PPP, PPP_LCP_Configure, PPPoE,
                       PPPoED, PPPoETag)

BROADCAST, STRANGER = "ff:ff:ff:ff:ff:ff", "02:00:00:00:77:01"
PADI, PADO, PADS, PADT = 0x09, 0x07, 0x65, 0xA7
TAGS = {"untagged": (0, 0), "one tag": (300, 0), "two tags": (300, 40)}


def tagged(s_tag, c_tag, packet, destination, source=STRANGER):
    frame = Ether(src=source, dst=destination)
    if s_tag:
        frame /= Dot1AD(vlan=s_tag) if c_tag else Dot1Q(vlan=s_tag)
    if c_tag:
        frame /= Dot1Q(vlan=c_tag)
    return bytes(frame / packet)


def discovery(code, session=0):
    return PPPoED(code=code, sessionid=session) / PPPoETag(tag_type=0x0101, tag_value=b"")


def up(channel, what, frame, wire, reason, tags, ethertype, octets, seid=False):
    wire.send(frame)
    got = channel.next()
    equal(f"{what} came up", (got.port, got.reason, got.s_tag, got.c_tag, got.ethertype, got.octets, got.seid != 0),
          ("access", reason, *tags, ethertype, octets, seid))
    return got


def received():
    return {port["name"]: port["rx_packets"] for port in show("port")}["access"]


def main():
    wire = Wire("home0")
    ours = {port["name"]: port["mac"] for port in show("port")}["access"]
    channel = Channel(os.environ["DIR"] + "/dp.sock")
    equal("ports", channel.ports, {"access": ours})
    for nobody, (what, tags) in enumerate(TAGS.items()):
        padi = discovery(PADI)
        got = up(channel, f"PADI, {what}", tagged(*tags, padi, BROADCAST), wire, "pppoe-discovery", tags, 0x8863,
                 bytes(padi))
        equal(f"MAC, {what}", got.mac, STRANGER)
        channel.send("access", got.mac, 0x8863, bytes(discovery(PADO)), got.tpid, *tags)
        pado = wire.frame(lambda d: d[6:12] == bytes.fromhex(ours.replace(":", "")), f"PADO, {what}")
        equal(f"PADO, {what}", (pado.value("eth", "eth.dst"), pado.value("pppoed", "pppoe.code")), (STRANGER, "0x07"))
        lcp = PPPoE(sessionid=5) / PPP(proto=0xC021) / PPP_LCP_Configure(id=1)
        wire.send(tagged(*tags, lcp, ours))  # no owner yet
        wait_until(lambda: rows("drop").get("ppp-unknown-subscriber", 0) == nobody + 1, f"LCP of nobody, {what}")
        channel.send("access", got.mac, 0x8863, bytes(discovery(PADS, 5)), got.tpid, *tags)
        wire.receive(lambda d: d.find(b"\x11\x65\x00\x05") > 0, 1, f"PADS, {what}")
        up(channel, f"LCP, {what}", tagged(*tags, lcp, ours), wire, "ppp-control", tags, 0x8864, bytes(lcp))
        channel.send("access", got.mac, 0x8863, bytes(discovery(PADT, 5)), got.tpid, *tags)
        wire.receive(lambda d: d.find(b"\x11\xa7\x00\x05") > 0, 1, f"PADT, {what}")
    ask = IP(src="0.0.0.0", dst="255.255.255.255") / UDP(sport=68, dport=67) / BOOTP()
    ask /= DHCP(options=[("message-type", 1), "end"])
    up(channel, "DHCP", tagged(300, 40, ask, BROADCAST), wire, "dhcp", (300, 40), 0x800, bytes(ask))
    up(channel, "DHCP of alice", tagged(100, 1, ask, BROADCAST, "02:00:00:00:00:01"), wire,
       "dhcp", (100, 1), 0x800, bytes(ask), seid=True)
    ask = IPv6(src="fe80::1", dst="ff02::2", hlim=255) / ICMPv6ND_RS()
    up(channel, "RS", tagged(0, 0, ask, "33:33:00:00:00:02"), wire, "router-solicitation", (0, 0), 0x86DD, bytes(ask))
    packet = IP(src="100.64.0.200", dst="192.0.2.1") / UDP(sport=1, dport=2)
    up(channel, "first packet", tagged(300, 40, packet, ours), wire, "first-packet", (300, 40), 0x800, bytes(packet))

    # A flood of one line leaves the others their share.
    before = rows("drop").get("punt-line-limit", 0)
    flood = [tagged(300, 41, discovery(PADI), BROADCAST, f"02:00:00:01:00:{i:02x}") for i in range(250)]
    for at in range(0, len(flood), 50):  # no more than the ring of net_af_packet holds
        had = received()
        wire.send(*flood[at : at + 50])
        wait_until(lambda: received() >= had + 50, "part of a flood")
    wire.send(tagged(300, 42, discovery(PADI), BROADCAST))
    seen = 0
    while channel.next().c_tag == 41:
        seen += 1
    check(100 <= seen < 250, f"{seen} of a flood of 250 came up")
    equal("limited", rows("drop")["punt-line-limit"] - before, len(flood) - seen)
    row = {r["name"]: r for r in show("channel")}
    equal("show channel", (row["pppoe-discovery"]["over_line"], row["down"]["refused"]), (len(flood) - seen, 0))

    # Another one takes the channel over, and the first is notified.
    second = Channel(os.environ["DIR"] + "/dp.sock")
    try:
        channel.next()
        check(False, "two have the channel")
    except OSError as e:
        equal("the first is told", str(e), "another control plane took the channel over")
    wire.send(tagged(300, 40, discovery(PADI), BROADCAST))
    equal("the second one's", second.next().c_tag, 40)
    check_sum("channel")
    done("channel")


main()
