# SPDX-License-Identifier: Apache-2.0
"""What a gateway answers itself: neighbours, echo, GTP-U path messages, ICMP errors, fragments; and what it hands up.

The kernel is the neighbour on the core side (it answers ARP and ND and pings), scapy is everybody else.
"""

import subprocess
import sys

from frames import Wire, check, check_sum, done, drops, equal, rows, show, wait_until
from scapy.all import (ARP, BOOTP, DHCP, IP, UDP, DHCP6_Solicit, Dot1Q, Ether, ICMPv6ND_NA,
                       ICMPv6ND_NS, ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr, IPv6, IPv6ExtHdrFragment, PPPoED,
                       PPPoETag, Raw, fragment, fragment6)
from scapy.contrib.gtp import GTPEchoRequest, GTP_U_Header
from subscribers import (GATEWAY4, GATEWAY6, SUBSCRIBER, ACCESS_GATEWAY4, ACCESS_GATEWAY6, INTERNET4, INTERNET6, UPF4,
                         UPF6, from_upf, inner, payload,
                   same_address, silent_gtpu, to_frame)

BROADCAST = "ff:ff:ff:ff:ff:ff"
N6_HOST4, N6_HOST6, N6_MAC = "10.60.0.2", "fd00:60::2", "02:00:00:00:60:02"


def number(text):
    return None if text is None else int(text, 0)


def has(*parts):
    return lambda data: all(part in data for part in parts)


def mac_bytes(mac):
    return bytes.fromhex(mac.replace(":", ""))


class World:
    def __init__(self):
        self.subscriber, self.upf = Wire("home0"), Wire("upf0")
        mac = {port["name"]: port["mac"] for port in show("port")}
        self.access, self.core = mac["access"], mac["core"]
        self.from_access = lambda data: data[6:12] == mac_bytes(self.access)
        self.from_core = lambda data: data[6:12] == mac_bytes(self.core)

    def core_frame(self, packet, vlan=None):
        ether = Ether(src=self.upf.mac, dst=self.core)
        return bytes(ether / Dot1Q(vlan=vlan) / packet if vlan else ether / packet)


def counted(table, name, before, more, what):
    wait_until(lambda: rows(table).get(name, 0) - before.get(name, 0) >= more, f"{name} to count {what}")
    equal(f"{what}: {name}", rows(table).get(name, 0) - before.get(name, 0), more)


# ---- neighbours ----------------------------------------------------------------------------------------------------


def gateway_resolves(w):
    """The first packets wait for the UPF's MAC address, and all of them arrive."""
    w.upf.forget()
    packets = [inner(4, SUBSCRIBER[n].ipv4, INTERNET4, seed=10 + i) for i, n in enumerate(["alice", "bob"] * 3)]
    w.subscriber.send(*(to_frame(SUBSCRIBER[n], w.access, p) for n, p in zip(["alice", "bob"] * 3, packets)))
    got = w.upf.receive(lambda d: any(d.endswith(bytes(p)) for p in packets), 6, "packets that waited for a neighbour")
    equal("packets to an unknown neighbour", sorted(d[-50:] for d in got), sorted(bytes(p)[-50:] for p in packets))
    arp = w.upf.frame(lambda d: d[12:14] == b"\x08\x06" and d[20:22] == b"\x00\x01", "an ARP request")
    equal("ARP request", [arp.value("arp", f"arp.{f}") for f in
                          ("opcode", "src.hw_mac", "src.proto_ipv4", "dst.hw_mac", "dst.proto_ipv4")],
          ["1", w.core, GATEWAY4, "00:00:00:00:00:00", UPF4])
    nd = w.upf.frame(lambda d: d[12:14] == b"\x86\xdd" and d[20] == 58 and d[54] == 135, "a neighbour solicitation")
    equal("solicitation", [nd.value("eth", "eth.dst"), nd.value("ipv6", "ipv6.hlim"), nd.value("ipv6", "ipv6.dst"),
                           nd.value("icmpv6", "icmpv6.nd.ns.target_address"),
                           (nd.value("icmpv6", "icmpv6.opt.linkaddr") or "").replace(":", ""),
                           nd.value("icmpv6", "icmpv6.checksum.status")],
          ["33:33:ff:00:00:02", "255", "ff02::1:ff00:2", UPF6, w.core.replace(":", ""), "1"])
    table = {n["address"]: (n["mac"], n["state"]) for n in show("neighbour")}
    equal("neighbour IPv4", table.get(UPF4), (w.upf.mac, "reachable"))
    equal("neighbour IPv6", table.get(UPF6), (w.upf.mac, "reachable"))


def kernel_resolves(w):
    """The kernel finds the gateway by ARP and ND, and its pings are answered."""
    subprocess.run(["ip", "neigh", "flush", "dev", "upf0"], check=True)
    for address in (GATEWAY4, GATEWAY6):
        ping = subprocess.run(["ping", "-n", "-c", "2", "-i", "0.2", "-W", "3", address], capture_output=True,
                              text=True)
        check(" 0% packet loss" in ping.stdout, f"ping {address}: {ping.stdout}")
        neigh = subprocess.run(["ip", "neigh", "show", address], capture_output=True, text=True).stdout
        check(w.core in neigh, f"the kernel's neighbour {address}: {neigh!r}")


def scapy_resolves(w):
    """A plain packet is routed to a VLAN whose neighbour answers late; TTL and checksum are a router's."""
    w.upf.forget()
    for version, host in ((4, N6_HOST4), (6, N6_HOST6)):
        source = UPF4 if version == 4 else UPF6
        packet = inner(version, source, host, "udp", 64, ttl=9, seed=40 + version)
        w.upf.send(w.core_frame(packet))
        in_vlan = lambda d: d[12:16] == b"\x81\x00\x00\x3c" and w.from_core(d)
        if version == 4:
            w.upf.receive(lambda d: in_vlan(d) and d[16:18] == b"\x08\x06", 1, "an ARP request in VLAN 60")
            answer = ARP(op=2, hwsrc=N6_MAC, psrc=host, hwdst=w.core, pdst="10.60.0.1")
        else:
            w.upf.receive(lambda d: in_vlan(d) and d[58:59] == b"\x87", 1, "a solicitation in VLAN 60")
            answer = (IPv6(src=host, dst="fd00:60::1", hlim=255) / ICMPv6ND_NA(tgt=host, R=0, S=1, O=1) /
                      ICMPv6NDOptDstLLAddr(lladdr=N6_MAC))
        w.upf.send(bytes(Ether(src=N6_MAC, dst=w.core) / Dot1Q(vlan=60) / answer))
        frame = w.upf.frame(lambda d: in_vlan(d) and d.endswith(payload(64, 40 + version)),
                            f"the routed IPv{version} packet")
        equal(f"routed IPv{version}", [frame.value("eth", "eth.dst"), frame.value("eth", "eth.src"),
                                       frame.value("vlan", "vlan.id"),
                                       frame.value("ip", "ip.ttl") or frame.value("ipv6", "ipv6.hlim")],
              [N6_MAC, w.core, "60", "8"])
        equal(f"routed IPv{version}: tshark's complaints", frame.expert(), [])


def subscribers_ask(w):
    """ARP and ND for the gateway address inside QinQ."""
    for name in ("alice", "bob"):
        subscriber = SUBSCRIBER[name]
        w.subscriber.forget()
        question = ARP(op=1, hwsrc=subscriber.mac, psrc=subscriber.ipv4, pdst=ACCESS_GATEWAY4)
        w.subscriber.send(to_frame(subscriber, BROADCAST, question, ethertype=0x0806))
        arp = w.subscriber.frame(w.from_access, f"the ARP reply to {name}")
        check_tags(w, f"ARP reply to {name}", arp, subscriber)
        equal(f"ARP reply to {name}", [arp.value("arp", f"arp.{f}") for f in
                                       ("opcode", "src.hw_mac", "src.proto_ipv4", "dst.hw_mac", "dst.proto_ipv4")],
              ["2", w.access, ACCESS_GATEWAY4, subscriber.mac, subscriber.ipv4])
        for source in (subscriber.ipv6, "fe80::1"):
            question = (IPv6(src=source, dst="ff02::1:ff00:1", hlim=255) / ICMPv6ND_NS(tgt=ACCESS_GATEWAY6) /
                        ICMPv6NDOptSrcLLAddr(lladdr=subscriber.mac))
            w.subscriber.send(to_frame(subscriber, "33:33:ff:00:00:01", question))
            nd = w.subscriber.frame(w.from_access, f"the advertisement to {name} at {source}")
            check_tags(w, f"advertisement to {name}", nd, subscriber)
            equal(f"advertisement to {name}",
                  [nd.value("ipv6", "ipv6.hlim"), nd.value("icmpv6", "icmpv6.type"),
                   nd.value("icmpv6", "icmpv6.nd.na.target_address"), nd.value("icmpv6", "icmpv6.nd.na.flag.s"),
                   nd.value("icmpv6", "icmpv6.nd.na.flag.r"),
                   (nd.value("icmpv6", "icmpv6.opt.linkaddr") or "").replace(":", ""),
                   nd.value("icmpv6", "icmpv6.checksum.status")],
                  ["255", "136", ACCESS_GATEWAY6, "1", "1", w.access.replace(":", ""), "1"])
            check(same_address(nd.value("ipv6", "ipv6.dst"), source), f"advertisement to {name}: destination")


def check_tags(w, what, frame, subscriber):
    """Ethernet and tags of a frame to a subscriber, and that tshark finds nothing wrong in it."""
    equal(f"{what}: MACs", (frame.value("eth", "eth.dst"), frame.value("eth", "eth.src")), (subscriber.mac, w.access))
    equal(f"{what}: outer TPID", number(frame.value("eth", "eth.type")), subscriber.tpid)
    equal(f"{what}: tags", [number(v) for tag in ("ieee8021ad", "vlan") for layer in frame.layers if layer.name == tag
                            for v in layer.get(f"{tag}.id", [])], [subscriber.s_tag, subscriber.c_tag])
    if subscriber.pppoe and "arp" not in frame.names():
        equal(f"{what}: PPPoE session", number(frame.value("pppoes", "pppoe.session_id")), subscriber.pppoe)
    equal(f"{what}: tshark's complaints", frame.expert(), [])


# ---- echo ----------------------------------------------------------------------------------------------------------


def subscribers_ping(w):
    for name in ("alice", "bob", "carol", "dave"):
        subscriber = SUBSCRIBER[name]
        for version, gateway in ((4, ACCESS_GATEWAY4), (6, ACCESS_GATEWAY6)):
            w.subscriber.forget()
            w.subscriber.send(to_frame(subscriber, w.access,
                                       inner(version, subscriber.address(version), gateway, "icmp", 56, seed=60)))
            frame = w.subscriber.frame(w.from_access, f"the echo reply to {name}, IPv{version}")
            what = f"echo reply to {name}, IPv{version}"
            check_tags(w, what, frame, subscriber)
            ip, icmp = ("ip", "icmp") if version == 4 else ("ipv6", "icmpv6")
            check(same_address(frame.value(ip, f"{ip}.src"), gateway), f"{what}: source")
            check(same_address(frame.value(ip, f"{ip}.dst"), subscriber.address(version)), f"{what}: destination")
            fields = ["type", "checksum.status"] + (["ident", "seq"] if version == 4 else ["echo.identifier",
                                                                                          "echo.sequence_number"])
            equal(what, [number(frame.value(icmp, f"{icmp}.{f}")) for f in fields],
                  [0 if version == 4 else 129, 1, 0x1234, 60])
            check(frame.data.endswith(payload(56, 60)), f"{what}: payload")


def upf_packet(version, port, message):
    ip = IP(src=UPF4, dst=GATEWAY4) if version == 4 else IPv6(src=UPF6, dst=GATEWAY6)
    return ip / UDP(sport=port, dport=2152) / message


def gtpu_echo(w):
    for version in (4, 6):
        w.upf.forget()
        request = GTP_U_Header(teid=0, gtp_type=1, S=1, seq=0x4711) / GTPEchoRequest()
        w.upf.send(w.core_frame(upf_packet(version, 50000, request)))
        frame = w.upf.frame(lambda d: w.from_core(d) and has(b"\x08\x68\xc3\x50")(d),
                            f"the echo response, IPv{version}")
        what = f"GTP-U echo response, IPv{version}"
        equal(what, [number(frame.value("gtp", f"gtp.{f}")) for f in
                     ("message", "flags.version", "flags.payload", "flags.s", "teid", "seq_number", "recovery")],
              [2, 1, 1, 1, 0, 0x4711, 0])
        equal(f"{what}: ports", [frame.value("udp", "udp.srcport"), frame.value("udp", "udp.dstport")],
              ["2152", "50000"])
        equal(f"{what}: tshark's complaints", frame.expert(), [])


def error_indication(w):
    """TS 29.281 §7.3.1: header TEID 0, sequence number 0, the TEID and the address of the packet that was refused."""
    before = rows("drop")
    for version in (4, 6):
        w.upf.forget()
        subscriber = SUBSCRIBER["alice" if version == 4 else "bob"]
        w.upf.send(from_upf(subscriber, w.core, w.upf.mac, inner(4, INTERNET4, subscriber.ipv4),
                            teid=0xdeadbee0 + version))
        frame = w.upf.frame(lambda d: w.from_core(d) and has(b"\xde\xad\xbe")(d), f"the Error Indication, IPv{version}")
        what = f"Error Indication, IPv{version}"
        equal(what, [number(frame.value("gtp", f"gtp.{f}")) for f in
                     ("message", "flags.version", "flags.payload", "flags.s", "teid", "seq_number", "teid_data")],
              [26, 1, 1, 1, 0, 0, 0xdeadbee0 + version])
        address = frame.value("gtp", "gtp.gsn_ipv4" if version == 4 else "gtp.gsn_ipv6")
        check(same_address(address, GATEWAY4 if version == 4 else GATEWAY6), f"{what}: peer address {address}")
        equal(f"{what}: port", frame.value("udp", "udp.dstport"), "2152")
        equal(f"{what}: tshark's complaints", frame.expert(), [])
    counted("drop", "gtpu-teid-unknown", before, 2, "unknown TEIDs")
    w.upf.forget()
    w.upf.send(from_upf(SUBSCRIBER["alice"], w.core, w.upf.mac, inner(4, INTERNET4, SUBSCRIBER["alice"].ipv4), teid=0))
    counted("drop", "gtpu-teid-zero", before, 1, "a G-PDU with TEID 0")
    w.upf.quiet(lambda d: w.from_core(d) and has(b"\x08\x68\x08\x68")(d), 0.3, "an answer to TEID 0")


def end_marker(w):
    before = rows("punt"), rows("drop")
    for teid in (SUBSCRIBER["alice"].teid_down, 0xdeadbeef):
        w.upf.send(w.core_frame(upf_packet(4, 2152, GTP_U_Header(teid=teid, gtp_type=254))))
    counted("punt", "gtpu-end-marker", before[0], 1, "an End Marker")
    counted("drop", "gtpu-end-marker-unknown", before[1], 1, "an End Marker of no tunnel")


# ---- ICMP errors and fragments -------------------------------------------------------------------------------------


def ttl_exceeded(w):
    for version, host in ((4, N6_HOST4), (6, N6_HOST6)):
        w.upf.forget()
        packet = inner(version, UPF4 if version == 4 else UPF6, host, "udp", 64, ttl=1, seed=70)
        w.upf.send(w.core_frame(packet))
        frame = w.upf.frame(lambda d: w.from_core(d) and has(payload(64, 70)[:16])(d), f"time exceeded, IPv{version}")
        what = f"time exceeded, IPv{version}"
        icmp, ip = ("icmp", "ip") if version == 4 else ("icmpv6", "ipv6")
        equal(what, [number(frame.value(icmp, f"{icmp}.{f}")) for f in ("type", "code", "checksum.status")],
              [11 if version == 4 else 3, 0, 1])
        check(same_address(frame.value(ip, f"{ip}.src"), GATEWAY4 if version == 4 else GATEWAY6), f"{what}: source")
        check(same_address(frame.value(ip, f"{ip}.dst"), UPF4 if version == 4 else UPF6), f"{what}: destination")
        check(has(bytes(packet)[:48])(frame.data), f"{what}: what it quotes")


def join(frames, l2):
    """Puts the payloads of IP fragments together, with the lengths of Ethernet headers and tags before them given."""
    pieces = {}
    for frame in frames:
        ip = frame.data[l2:]
        if ip[0] >> 4 == 4:
            at, more, body = (ip[6] & 31) << 11 | ip[7] << 3, ip[6] >> 5 & 1, ip[20:ip[2] << 8 | ip[3]]
        else:
            at, more, body = (ip[42] << 8 | ip[43]) & 0xfff8, ip[43] & 1, ip[48:40 + (ip[4] << 8 | ip[5])]
        pieces[at] = (more, body)
    whole = b""
    for at in sorted(pieces):
        more, body = pieces[at]
        check(at == len(whole), f"a fragment at {at}, not {len(whole)}")
        check(more == (at != max(pieces)), f"the more-fragments bit of the fragment at {at}")
        whole += body
    return whole


def long_uplink(w):
    """1500 bytes with tunnel headers do not fit into 1500: the outer packet goes in fragments."""
    for name in ("alice", "bob", "carol"):
        subscriber = SUBSCRIBER[name]
        size = 1500 - 28 - (8 if subscriber.pppoe else 0)
        packet = inner(4, subscriber.ipv4, INTERNET4, "udp", size, seed=80)
        w.upf.forget()
        w.subscriber.send(to_frame(subscriber, w.access, packet))
        kind = b"\x08\x00" if subscriber.outer == 4 else b"\x86\xdd"
        frames = w.upf.frames(lambda d: w.from_core(d) and d[12:14] == kind and len(d) > 60, 2, f"fragments of {name}")
        what = f"long packet of {name}"
        if not check(len(frames) == 2, f"{what}: {len(frames)} fragments"):
            continue
        whole = join(frames, 14)
        check(whole.endswith(bytes(packet)), f"{what}: the inner packet was changed")
        equal(f"{what}: UDP length", whole[4] << 8 | whole[5], len(whole))
        check(all(len(f.data) <= 1514 for f in frames), f"{what}: a fragment is too long")
        last = frames[-1]
        equal(f"{what}: tshark's reassembly",
              [number(last.value("gtp", "gtp.message")), number(last.value("gtp", "gtp.teid")),
                                               last.names().count("udp"), [e for f in frames for e in f.expert()]],
              [255, subscriber.teid_up, 2, []])


def send_as_fragments(w, frame):
    """A UPF whose link takes 1500 bytes: the outer packet comes in pieces, which the gateway itself puts together."""
    before = show("total")
    ip = Ether(frame).payload
    if ip.version == 4:
        pieces = fragment(ip, fragsize=1400)
    else:
        ip.payload, rest = IPv6ExtHdrFragment(id=0x55, nh=17), ip.payload
        ip.plen, ip.nh = None, 44
        pieces = fragment6(ip / rest, 1400)
    w.upf.send(*(w.core_frame(p) for p in pieces))
    merged = lambda: show("total")["merged"] - before["merged"]
    wait_until(lambda: merged() >= len(pieces) - 1, "fragments to be merged")
    equal("merged", merged(), len(pieces) - 1)


def long_downlink(w):
    """1500 bytes do not fit into PPPoE's 1492: fragments where permitted, else an ICMP error."""
    for subscriber in (SUBSCRIBER["carol"], SUBSCRIBER["dave"]):
        free = inner(4, INTERNET4, subscriber.ipv4, "udp", 1472, seed=90)
        w.subscriber.forget()
        send_as_fragments(w, from_upf(subscriber, w.core, w.upf.mac, free))
        frames = w.subscriber.frames(lambda d: w.from_access(d) and has(b"\x88\x64")(d), 2,
                                     f"fragments for {subscriber.name}")
        what = f"fragments for {subscriber.name}"
        if check(len(frames) == 2, f"{what}: {len(frames)}"):
            check(join(frames, 14 + 8 + 8) == bytes(free)[20:], f"{what}: what they make")
            for frame in frames:
                check_tags(w, what, frame, subscriber)
                check(number(frame.value("pppoes", "pppoe.payload_length")) <= 1494, f"{what}: one is too long")
            equal(f"{what}: tshark's reassembly", frames[-1].value("udp", "udp.length"), "1480")
        too_big(w, subscriber, 4, flags="DF")
        too_big(w, subscriber, 6)


def too_big(w, subscriber, version, **flags):
    source, size = (INTERNET4, 1472) if version == 4 else (INTERNET6, 1452)
    packet = inner(version, source, subscriber.address(version), "udp", size, seed=91, **flags)
    w.upf.forget()
    send_as_fragments(w, from_upf(subscriber, w.core, w.upf.mac, packet))
    what = f"too big for {subscriber.name}, IPv{version}"
    frame = w.upf.frame(lambda d: w.from_core(d) and has(b"\x08\x68\x08\x68", payload(size, 91)[:16])(d), what)
    icmp, ip = ("icmp", "ip") if version == 4 else ("icmpv6", "ipv6")
    nth = 1 if version == subscriber.outer else 0  # the outer header is of the same protocol
    equal(what, [number(frame.value("gtp", "gtp.teid"))] +
          [number(frame.value(icmp, f"{icmp}.{f}")) for f in ("type", "code", "mtu", "checksum.status")],
          [subscriber.teid_up] + ([3, 4, 1492, 1] if version == 4 else [2, 0, 1492, 1]))
    check(same_address(frame.value(ip, f"{ip}.src", nth), ACCESS_GATEWAY4 if version == 4 else ACCESS_GATEWAY6),
          f"{what}: source")
    check(same_address(frame.value(ip, f"{ip}.dst", nth), source), f"{what}: destination")


# ---- what goes to the host path ------------------------------------------------------------------------------------


def handed_up(w):
    before = rows("punt")
    alice, carol = SUBSCRIBER["alice"], SUBSCRIBER["carol"]
    w.subscriber.send(to_frame(carol, BROADCAST, PPPoED(code=0x09) / PPPoETag(tag_type=0x0101), ethertype=0x8863))
    counted("punt", "pppoe-discovery", before, 1, "a PADI")
    echo = Raw(bytes([0x11, 0]) + carol.pppoe.to_bytes(2, "big") + b"\x00\x0a\xc0\x21\x09\x01\x00\x08\x00\x00\x00\x00")
    w.subscriber.send(to_frame(carol, w.access, echo, ethertype=0x8864))
    counted("punt", "ppp-control", before, 1, "an LCP echo request")
    discover = (IP(src="0.0.0.0", dst="255.255.255.255") / UDP(sport=68, dport=67) /
                BOOTP(chaddr=mac_bytes(alice.mac), xid=1) / DHCP(options=[("message-type", "discover"), "end"]))
    w.subscriber.send(to_frame(alice, BROADCAST, discover))
    counted("punt", "dhcp", before, 1, "a DHCPDISCOVER")
    solicit = IPv6(src="fe80::1", dst="ff02::1:2", hlim=1) / UDP(sport=546, dport=547) / DHCP6_Solicit(trid=1)
    w.subscriber.send(to_frame(alice, "33:33:00:01:00:02", solicit))
    counted("punt", "dhcp6", before, 1, "a DHCPv6 Solicit")


def main():
    silent = silent_gtpu()
    w = World()
    steps = [gateway_resolves, kernel_resolves, scapy_resolves, subscribers_ask, subscribers_ping, gtpu_echo,
             error_indication, end_marker, ttl_exceeded, long_uplink, long_downlink, handed_up]
    for step in steps:
        step(w)
        wait_until(lambda: show("total")["held"] == 0, "nothing to be held")
        total = check_sum(step.__name__)
        print(f"{step.__name__}: in {total['in']}, out {total['out']}, dropped {total['dropped']}", flush=True)
    expected = {"gtpu-teid-unknown": 2, "gtpu-teid-zero": 1, "gtpu-end-marker-unknown": 1}
    equal("drops", drops(), expected)
    del silent
    done("agf_control")


sys.exit(main())
