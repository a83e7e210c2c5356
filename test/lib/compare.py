# SPDX-License-Identifier: Apache-2.0
"""The expected frame of the gateway, field by field, for a subscriber's packet."""

from frames import check, equal
from subscribers import GATEWAY4, GATEWAY6, UPF4, UPF6, same_address


def number(text):
    return None if text is None else int(text, 0)


def check_outer_ip(what, frame, subscriber):
    total = len(frame.data) - 14
    if subscriber.outer == 4:
        ip = {key: frame.value("ip", f"ip.{key}") for key in
              ("version", "hdr_len", "dsfield.dscp", "dsfield.ecn", "len", "ttl", "proto", "checksum.status", "src",
               "dst", "frag_offset", "flags.mf")}
        equal(f"{what}: outer IPv4", ip, {
            "version": "4", "hdr_len": "20", "dsfield.dscp": str(subscriber.dscp), "dsfield.ecn": ip["dsfield.ecn"],
            "len": str(total), "ttl": "63", "proto": "17", "checksum.status": "1", "src": GATEWAY4, "dst": UPF4,
            "frag_offset": "0", "flags.mf": "0"})
        return total - 20
    ip = {key: frame.value("ipv6", f"ipv6.{key}") for key in ("version", "plen", "nxt", "hlim")}
    equal(f"{what}: outer IPv6", ip, {"version": "6", "plen": str(total - 40), "nxt": "17", "hlim": "64"})
    equal(f"{what}: outer DSCP", number(frame.value("ipv6", "ipv6.tclass.dscp")), subscriber.dscp)
    check(same_address(frame.value("ipv6", "ipv6.src"), GATEWAY6), f"{what}: outer source")
    check(same_address(frame.value("ipv6", "ipv6.dst"), UPF6), f"{what}: outer destination")
    return total - 40


def check_uplink(what, frame, subscriber, version, packet, core_mac, upf_mac):
    outer = "ip" if subscriber.outer == 4 else "ipv6"
    equal(f"{what}: layers", frame.names()[:5], ["eth", outer, "udp", "gtp", "ip" if version == 4 else "ipv6"])
    equal(f"{what}: MACs", (frame.value("eth", "eth.dst"), frame.value("eth", "eth.src")), (upf_mac, core_mac))
    equal(f"{what}: ethertype", number(frame.value("eth", "eth.type")), 0x0800 if subscriber.outer == 4 else 0x86dd)
    length = check_outer_ip(what, frame, subscriber)
    udp = [frame.value("udp", f"udp.{key}") for key in ("srcport", "dstport", "length")]
    equal(f"{what}: UDP", udp, ["2152", "2152", str(length)])
    status = frame.value("udp", "udp.checksum.status")
    checksum = number(frame.value("udp", "udp.checksum"))
    # A tunnel may omit the checksum (RFC 768; over IPv6 RFC 6935 and RFC 6936); a present one must be right.
    check(status == "1" or checksum == 0, f"{what}: UDP checksum {checksum} has status {status}")
    gtp = {key: number(frame.value("gtp", f"gtp.{key}")) for key in
           ("flags.version", "flags.payload", "flags.e", "flags.s", "flags.pn", "message", "length", "teid")}
    equal(f"{what}: GTP-U", gtp,
          {"flags.version": 1, "flags.payload": 1, "flags.e": int(subscriber.qfi_up != 0), "flags.s": 0,
                                  "flags.pn": 0, "message": 255, "length": length - 16, "teid": subscriber.teid_up})
    if subscriber.qfi_up:
        # TS 29.281 §5.2.2.7 with the UL PDU SESSION INFORMATION of TS 38.415 §5.5.2.2.
        extension = {key: number(frame.value("gtp", f"gtp.{key}")) for key in
                     ("ext_hdr.length", "ext_hdr.pdu_ses_con.pdu_type", "ext_hdr.pdu_ses_con.qos_flow_id")}
        equal(f"{what}: container", extension, {"ext_hdr.length": 1, "ext_hdr.pdu_ses_con.pdu_type": 1,
                                                "ext_hdr.pdu_ses_con.qos_flow_id": subscriber.qfi_up})
        # Of the GTP-U header and of the extension header.
        equal(f"{what}: next extension headers", list(map(number, frame.get("gtp")["gtp.ext_hdr.next"])), [0x85, 0])
    check_inner(what, frame, 2 if version == subscriber.outer else 1, version, packet)


def check_downlink(what, frame, subscriber, version, packet, access_mac):
    tags = ["ieee8021ad" if subscriber.tpid == 0x88a8 else "vlan", "vlan"]
    ppp = ["pppoes", "ppp"] if subscriber.pppoe else []
    equal(f"{what}: layers", frame.names()[:4 + len(ppp)], ["eth", *tags, *ppp, "ip" if version == 4 else "ipv6"])
    equal(f"{what}: MACs", (frame.value("eth", "eth.dst"), frame.value("eth", "eth.src")), (subscriber.mac, access_mac))
    equal(f"{what}: outer TPID", number(frame.value("eth", "eth.type")), subscriber.tpid)
    if subscriber.tpid == 0x88a8:
        s = [number(frame.value("ieee8021ad", f"ieee8021ad.{key}")) for key in ("id", "priority", "dei")]
        c = [number(frame.value("vlan", f"vlan.{key}")) for key in ("id", "priority", "dei", "etype")]
    else:
        s = [number(frame.value("vlan", f"vlan.{key}")) for key in ("id", "priority", "dei")]
        equal(f"{what}: inner TPID", number(frame.value("vlan", "vlan.etype")), 0x8100)
        c = [number(frame.value("vlan", f"vlan.{key}", 1)) for key in ("id", "priority", "dei", "etype")]
    kind = 0x8864 if subscriber.pppoe else 0x0800 if version == 4 else 0x86dd
    equal(f"{what}: S-tag", s, [subscriber.s_tag, 0, 0])
    equal(f"{what}: C-tag", c, [subscriber.c_tag, 0, 0, kind])
    if subscriber.pppoe:
        pppoe = [number(frame.value("pppoes", f"pppoe.{key}")) for key in ("version", "type", "code", "session_id")]
        equal(f"{what}: PPPoE", pppoe, [1, 1, 0, subscriber.pppoe])
        equal(f"{what}: PPPoE length", number(frame.value("pppoes", "pppoe.payload_length")), len(packet) + 2)
        equal(f"{what}: PPP", number(frame.value("ppp", "ppp.protocol")), 0x21 if version == 4 else 0x57)
    equal(f"{what}: frame length", len(frame.data), 14 + 8 + (8 if subscriber.pppoe else 0) + len(packet))
    check_inner(what, frame, 1, version, packet)


def check_inner(what, frame, nth, version, packet):
    layer = frame.get("ip" if version == 4 else "ipv6", nth - 1)
    check(layer and frame.data[layer.position:] == bytes(packet), f"{what}: the inner packet was changed")
    equal(f"{what}: tshark's complaints", frame.expert(), [])


def match(direction, cases, frames, compare):
    """Every case's packet comes out once, as compare(name, frame, subscriber, version, packet) demands. Any order."""
    equal(f"{direction}: frames", len(frames), len(cases))
    waiting = {bytes(packet): (name, subscriber, version, packet) for name, subscriber, version, packet, _ in cases}
    for frame in frames:
        found = next((p for p in waiting if frame.data.endswith(p)), None)
        if check(found is not None, f"{direction}: a frame that nobody expects: {frame.data.hex()}"):
            name, subscriber, version, packet = waiting.pop(found)
            compare(name, frame, subscriber, version, packet)
    check(not waiting, f"{direction}: missing {[name for name, *_ in waiting.values()]}")
    print(f"{direction}: {len(frames)} frames compared")
