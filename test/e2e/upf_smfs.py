# SPDX-License-Identifier: Apache-2.0
"""The messages of two SMFs that are out in the world, rebuilt IE by IE: the UPF accepts them, and packets flow as they
say.

What Open5GS 2.7 and free5GC 4 put into their messages was read in their sources (lib/pfcp/build.c,
src/smf/{context,n4-build, binding}.c; internal/context/{datapath,pfcp_rules}.go, internal/pfcp/message/build*.go) and
in logs of users; the bytes here are ours. The UPF's configuration is that of deploy/examples/upf.yaml: nothing in it is
made for an SMF.
"""

import socket
import struct
import sys

import n4
from frames import DIR, Wire, check, check_sum, done, equal, show
from n4 import (ASSOCIATION_SETUP, DELETE, ESTABLISH, EPOCH, GNB, MODIFY, N3, N3_6, Node, fseid, group, ie, ip4,
                node_id, outer_header, recovery, u8, u16, u32, ue_ip)
from scapy.all import ICMPv6ND_RA, ICMPv6ND_RS, IP, UDP, Ether, ICMPv6NDOptPrefixInfo, IPv6, Raw
from scapy.contrib.gtp import GTP_U_Header, GTPPDUSessionContainer
import upf
from upf import gtpu_header, volumes
from subscribers import silent_gtpu

ACCESS, CORE, SGI_LAN, CP = range(4)
DROP, FORW, BUFF, NOCP = 1, 2, 4, 8
# 3GPP Interface Type, TS 29.244 clause 8.2.118
S1_U, S5_U, N3_ACCESS, N6, UL_FORWARDING, DL_FORWARDING = 0, 1, 11, 17, 28, 10
GNB_2, SMF_GTPU = "10.30.0.3", "10.30.0.4"
END_MARKER = 254


def labels(name):
    return b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))


def created_fteids(answer):
    """{PDR id: F-TEID} of Created PDR: flags, TEID and addresses as they are."""
    out = {}
    for raw in answer.ies.get(8, []):
        parts = dict(ies(raw))
        out[struct.unpack(">H", parts[56])[0]] = parts.get(21)
    return out


def ies(raw):
    at = 0
    while at + 4 <= len(raw):
        kind, size = struct.unpack(">HH", raw[at:at + 4])
        yield kind, raw[at + 4:at + 4 + size]
        at += 4 + size


def accepted(answer, what):
    if check(answer is not None and answer.cause == n4.ACCEPTED,
             f"{what}: {answer and (answer.cause, answer.offending, answer.failed_rule)}; "
             f"{show('n4')['refusals'][:1]}"):
        return answer
    return None


def is_gtpu(kind):
    """Test for a GTP-U message of a type."""
    return (lambda d: len(d) >= 50 and d[12:14] == b"\x08\x00" and d[23] == 17 and d[36:38] == b"\x08\x68"
            and d[43] == kind)


class Flow:
    """Packets of one UE in both directions, and what they must look like."""

    def __init__(self, w, ue, teid, qfi=None):
        self.w, self.ue, self.teid, self.qfi = w, ue, teid, qfi

    def both(self, teid_down, gnb=GNB, what=""):
        self.up(what)
        self.down(teid_down, gnb, what)

    def up(self, what="", **more):
        mark = self.w.up(self.teid, self.ue, qfi=self.qfi or 1, **more)
        found = self.w.dn.receive(lambda d: mark in d, 1, f"uplink of {self.ue} {what}")
        v6 = ":" in self.ue
        # Ethernet, IP, UDP, and no tunnel: then comes what World.up sent.
        equal(f"uplink's head {what}", [(d[12:14].hex(), d[20 if v6 else 23], d.index(mark)) for d in found],
              [("86dd" if v6 else "0800", 17, 62 if v6 else 42)])

    def down(self, teid, gnb=GNB, what="", mark=None, **more):
        mark = self.w.down(self.ue, **more) if mark is None else mark
        found = self.w.gnb.receive(lambda d: mark in d, 1, f"downlink to {self.ue} {what}")
        equal(f"downlink's gNB, TEID, QFI {what}", tunnel_of(found[0]) if found else None, (gnb, teid, self.qfi))


# A radio node's packets come with these extension headers, as type and content (TS 29.281 clause 5.2.1). PDCP PDU
# number and its long form: a node in the middle passes these kinds on unread.
CHAINS = ([], [(0xC0, b"\x12\x34")], [(0x82, b"\x02\x34\x56\0\0\0")])


def extensions(d):
    """The chain of a GTP-U packet over IPv4."""
    out, kind, at = [], d[53] if d[42] & 4 else 0, 54
    while kind:
        size = 4 * d[at]
        out.append((kind, d[at + 1:at + size - 1]))
        kind, at = d[at + size - 1], at + size
    return out


def give_back(w, teid, ue, to, what):
    """Packets for the UE that a radio node sends back: they go to the other one, with their extension headers."""
    for chain in CHAINS:
        mark = w.mark(100)
        inner = bytes(IP(src=n4.DN, dst=ue) / UDP(sport=40002, dport=40001) / Raw(mark))
        types = [kind for kind, _ in chain] + [0]
        more = b"\0\0\0" + bytes([types[0]]) if chain else b""
        for (_, content), following in zip(chain, types[1:]):
            more += bytes([(len(content) + 2) // 4]) + content + bytes([following])
        gtpu = bytes([0x34 if chain else 0x30, 255]) + struct.pack(">HI", len(more + inner), teid) + more + inner
        w.gnb.send(Ether(src=w.gnb.mac, dst=w.mac["n3"]) / IP(src=GNB, dst=N3)
                         / UDP(sport=2152, dport=2152) / Raw(gtpu))
        found = w.gnb.receive(lambda d: mark in d, 1, f"{what} with extension headers {chain}")
        equal(f"{what}: where to, extension headers", [tunnel_of(d)[:2] + (extensions(d),) for d in found],
              [to + (chain,)])


def tunnel_of(d):
    """Destination, TEID and QFI of a GTP-U packet over IPv4. Not decoded by tshark: there are many."""
    container = d[42] & 4 and d[53] == 0x85  # PDU Session Container, TS 29.281 clause 5.2.1
    return socket.inet_ntoa(d[30:34]), struct.unpack(">I", d[46:50])[0], d[56] & 63 if container else None


class SMF:
    """One session of one SMF: its requests, with what every one of them has."""

    def __init__(self, address, cp_seid):
        self.node = Node(address, "smf.test")
        self.address, self.cp_seid, self.seid = address, cp_seid, None

    def id(self):
        return node_id(address=self.address)

    def associate(self, *more):
        answer = accepted(self.node.request(ASSOCIATION_SETUP,
                                            b"".join((self.id(), recovery(self.node.started)) + more)), "association")
        if answer:
            # SMFs allocate F-TEIDs themselves without the UPF's FTUP (open5gs#1466).
            check(43 in answer.ies and answer.ies[43][0][0] & 0x10, f"features {answer.ies.get(43)}")
            check(60 in answer.ies and 96 in answer.ies, f"node id and recovery time stamp: {sorted(answer.ies)}")

    def establish(self, *parts):
        answer = self.node.request(ESTABLISH, b"".join((self.id(), fseid(self.cp_seid, self.address)) + parts), seid=0)
        if accepted(answer, "establishment"):
            self.seid = Node.peer[self.cp_seid] = answer.seid
            return answer
        return None

    def modify(self, what, *parts):
        return accepted(self.node.request(MODIFY, b"".join(parts), seid=self.seid), what)

    def delete(self):
        return accepted(self.node.request(DELETE, b"", seid=self.seid), "deletion")


# ---- Open5GS -------------------------------------------------------------------------------------------------------


class Open5GS(SMF):
    """5G, DNN internet. Network instances and DNN are labels, Apply Action has two octets, Reporting Triggers three.
    Every F-TEID is CHOOSE with both families; CHOOSE ID 5 is the gNB's tunnel. Rules 3 and 4 carry Router
    Advertisements and Solicitations between UE and SMF, over GTP-U to the SMF's own address."""

    instance = ie(22, labels("internet"))
    choose = ie(21, b"\x0f\x05")

    def __init__(self, address, cp_seid, ue4=None, ue6=None):
        super().__init__(address, cp_seid)
        self.ue4, self.ue6 = ue4, ue6
        # Outer Header Removal and PDN type by the session's type.
        self.removal, self.pdn = {(True, False): (0, 1), (False, True): (1, 2),
                                  (True, True): (6, 3)}[bool(ue4), bool(ue6)]

    @staticmethod
    def kind(value):
        return u8(160, value)

    @staticmethod
    def action(value):
        return ie(44, bytes([value, 0]))

    def pdr(self, id_, precedence, pdi, far, *links):
        removal = u8(95, self.removal) if pdi[4] != CORE else b""
        return group(1, u16(56, id_), u32(29, precedence), group(2, pdi), removal, u32(108, far), *links)

    def radio(self, teid, address, flags=b""):
        return group(11, u8(42, ACCESS), self.instance, outer_header(teid, address), flags, self.kind(N3_ACCESS))

    def establish_default(self):
        urr, qer = u32(81, 1), u32(109, 1)
        down = u8(20, CORE) + self.instance + ue_ip(self.ue4, self.ue6, destination=True) + self.kind(N6)
        up = (u8(20, ACCESS) + self.choose + self.instance + ue_ip(self.ue4, self.ue6) + u8(124, 1)
              + self.kind(N3_ACCESS))
        to_ue = u8(20, CP) + ie(21, b"\x07")
        flow = b"permit out 58 from ff02::2/128 to assigned"
        to_smf = (u8(20, ACCESS) + self.choose + self.instance
                  + ie(23, b"\x01\x00" + struct.pack(">H", len(flow)) + flow) + self.kind(N3_ACCESS))
        rules = [
            self.pdr(1, 65535, down, 1, urr, qer), self.pdr(2, 65535, up, 2, qer), self.pdr(3, 255, to_ue, 1),
            self.pdr(4, 255, to_smf, 3), group(3, u32(108, 1), self.action(BUFF | NOCP), u8(88, 1)),
            group(3, u32(108, 2), self.action(FORW), group(4, u8(42, CORE), self.instance, self.kind(N6))),
            group(3, u32(108, 3), self.action(FORW), group(4, u8(42, CP), outer_header(self.cp_seid, SMF_GTPU))),
            group(6, u32(81, 1), u8(62, 2), ie(37, b"\x02\x00\x00"), ie(31, b"\x01" + struct.pack(">Q", 100 << 20))),
            group(7, u32(109, 1), u8(25, 0), ie(26, (1000000).to_bytes(5, "big") * 2), u8(124, 1)),
            group(85, u8(88, 1))]
        # User ID: IMSI, IMEISV and MSISDN in BCD.
        user = ie(141, b"\x07\x08" + bytes.fromhex("62020100000000f1") + b"\x08" + bytes.fromhex("3407918012345608") +
                  b"\x05" + bytes.fromhex("1032547698"))
        return self.establish(*rules, u8(113, self.pdn), user, ie(159, labels("internet")),
                              ie(257, b"\x01\xff\xff\xff"))

    def connect(self, what, teid, address, flags=b""):
        return self.modify(what, group(10, u32(108, 1), self.action(FORW), self.radio(teid, address, flags)))

    def idle(self):
        return self.modify("the UE becomes idle", group(10, u32(108, 1), self.action(BUFF | NOCP), u8(88, 1)))


def router(w, smf, made, teid_down):
    """Router Solicitation to the SMF, its Router Advertisement to the UE."""
    rs = IPv6(src="fe80::1", dst="ff02::2", hlim=255) / ICMPv6ND_RS()
    gtpu = GTP_U_Header(teid=w.teid_of(made[4]), gtp_type=255) / GTPPDUSessionContainer(type=1, QFI=1)
    w.gnb.send(Ether(src=w.gnb.mac, dst=w.mac["n3"]) / IP(src=GNB, dst=N3) / UDP(sport=2152, dport=2152) / gtpu / rs)
    frame = w.gnb.frame(lambda d: bytes(rs)[40:] in d and is_gtpu(255)(d), "a Router Solicitation at the SMF")
    equal("the SMF's address", frame.value("ip", "ip.dst"), SMF_GTPU)
    equal("GTP-U to the SMF, without the gNB's container", frame.data[42:].hex(),
          bytes(GTP_U_Header(teid=smf.cp_seid, gtp_type=255) / rs).hex())
    ra = (IPv6(src="fe80::ff", dst="fe80::1", hlim=255) / ICMPv6ND_RA()
          / ICMPv6NDOptPrefixInfo(prefix="2001:db8:45:5::", prefixlen=64))
    w.gnb.send(Ether(src=w.gnb.mac, dst=w.mac["n3"]) / IP(src=SMF_GTPU, dst=N3) / UDP(sport=2152, dport=2152) /
               GTP_U_Header(teid=w.teid_of(made[3]), gtp_type=255) / ra)
    frame = w.gnb.frame(lambda d: bytes(ra)[40:] in d and is_gtpu(255)(d), "a Router Advertisement at the gNB")
    equal("the gNB's address", frame.value("ip", "ip.dst"), GNB)
    equal("GTP-U to the gNB", frame.data[42:].hex(), bytes(GTP_U_Header(teid=teid_down, gtp_type=255) / ra).hex())


def open5gs(w):
    smf = Open5GS("10.40.0.2", 51, "10.45.5.1", "2001:db8:45:5::")
    smf.associate(u8(89, 3))
    answer = smf.establish_default()
    if answer is None:
        return
    made = created_fteids(answer)
    equal("PDRs with a F-TEID", sorted(made), [2, 3, 4])
    check(made[2] == made[4] and made[2] != made[3], f"CHOOSE ID 5 is one F-TEID: {made}")
    equal("addresses of the F-TEID", (made[2][0], made[2][5:]), (3, ip4(N3) + n4.ip6(N3_6)))
    flow4, flow6 = (Flow(w, ue, w.teid_of(made[2]), 1) for ue in ("10.45.5.1", "2001:db8:45:5::7"))
    # The gNB does not know its tunnel yet: packets wait, and the SMF gets a report.
    first = w.down("10.45.5.1")
    check(smf.node.wait_report() is not None, "no report of data before the gNB's tunnel is known")
    smf.connect("the gNB's tunnel", 0x5001, GNB)
    flow4.down(0x5001, what="that waited", mark=first)
    flow4.both(0x5001)
    flow6.both(0x5001)
    router(w, smf, made, 0x5001)
    smf.idle()
    smf.node.reports.clear()
    first = w.down("10.45.5.1")
    report = smf.node.wait_report()
    check(report is not None and 83 in report.ies and dict(ies(report.ies[83][0]))[56] == b"\0\1",
          "no Downlink Data Report of PDR 1")
    smf.connect("service request", 0x5002, GNB)
    flow4.down(0x5002, what="that woke the UE", mark=first)
    handover(w, smf, flow4)
    flow(w, smf, made)
    total, _ = volumes(smf.delete().ies[79][0])
    check(total[2] > 0 and total[0] == total[1] + total[2], f"final report: {total}")


def handover(w, smf, default):
    """N2 handover: indirect forwarding through the UPF, path switch with End Marker, forwarding removed."""
    answer = smf.modify("indirect data forwarding", smf.pdr(
        5, 4096, u8(20, ACCESS) + ie(21, b"\x0f\x0a") + smf.instance + u8(124, 1) + smf.kind(UL_FORWARDING), 4,
        u32(109, 1)), group(3, u32(108, 4), smf.action(FORW),
              group(4, u8(42, ACCESS), smf.instance, outer_header(0x5003, GNB_2), smf.kind(DL_FORWARDING))))
    if answer is None:
        return
    made = created_fteids(answer)
    equal("PDRs made by indirect forwarding", sorted(made), [5])
    mark = w.up(w.teid_of(made[5]), n4.DN, destination=default.ue, qfi=1)
    frame = w.at_gnb(mark, "a packet sent back by the old gNB")
    equal("forwarded to", (frame.value("ip", "ip.dst"), gtpu_header(frame)), (GNB_2, 0x5003))
    smf.connect("path switch", 0x5004, GNB_2, u8(49, 2))
    end = w.gnb.frame(is_gtpu(END_MARKER), "an End Marker")
    equal("End Marker to", (end.value("ip", "ip.dst"), gtpu_header(end)), (GNB, 0x5002))
    default.both(0x5004, GNB_2, "after the handover")
    smf.modify("indirect forwarding removed", group(15, u16(56, 5)), group(16, u32(108, 4)))


def flow(w, smf, made):
    """A QoS flow of its own: its rules have SDF filters and no UE address, which only the default flow's have."""
    urr, qer = u32(81, 2), u32(109, 2)
    text = b"permit out 17 from 10.60.0.2/32 5005 to 10.45.5.1/32"
    filter_ = ie(23, b"\x01\x00" + struct.pack(">H", len(text)) + text)
    rate = ie(26, (2000).to_bytes(5, "big") * 2) + ie(27, (1000).to_bytes(5, "big") * 2)
    answer = smf.modify(
        "a dedicated QoS flow",
        smf.pdr(6, 70, u8(20, CORE) + smf.instance + filter_ + smf.kind(N6), 5, urr, qer),
        smf.pdr(7, 70, u8(20, ACCESS) + smf.choose + smf.instance + filter_ + u8(124, 2) + smf.kind(N3_ACCESS), 6, qer),
        group(3, u32(108, 5), smf.action(FORW),
              group(4, u8(42, ACCESS), smf.instance, outer_header(0x5004, GNB_2), smf.kind(N3_ACCESS))),
        group(3, u32(108, 6), smf.action(FORW), group(4, u8(42, CORE), smf.instance, smf.kind(N6))),
        group(6, urr, u8(62, 2), ie(37, b"\x02\x00\x00"), ie(31, b"\x01" + struct.pack(">Q", 100 << 20))),
        group(7, qer, u8(25, 0), rate, u8(124, 2)))
    if answer is None:
        return
    # Open5GS means the session's F-TEID by a CHOOSE ID of an earlier message, and gives the gNB no other.
    equal("the flow's F-TEID, and the session's", created_fteids(answer).get(7), made[2])
    dedicated, default = Flow(w, "10.45.5.1", w.teid_of(made[2]), 2), Flow(w, "10.45.5.1", w.teid_of(made[2]), 1)
    dedicated.down(0x5004, GNB_2, "of the flow", sport=5005)
    dedicated.up("of the flow", dport=5005)
    default.both(0x5004, GNB_2, "beside the flow")
    smf.modify("the flow is removed", group(15, u16(56, 6)), group(15, u16(56, 7)), group(16, u32(108, 5)),
               group(16, u32(108, 6)), group(18, qer), group(17, urr))
    default.down(0x5004, GNB_2, "without the flow", sport=5005)


# ---- free5GC -------------------------------------------------------------------------------------------------------


class Free5GC(SMF):
    """Network instances are text, F-TEIDs are the SMF's, N6 is SGi-LAN, Apply Action has one octet, PDN type is
    IPv4. Each PDR has two QERs (the flow's with QFI, the session's with MBR) and two URRs (before and after QoS);
    updates repeat whole rules."""

    ue, teid = "10.45.6.1", 0x11
    instance = ie(22, b"internet")

    def up_pdr(self, kind=1):
        pdi = group(2, u8(20, ACCESS), n4.fteid(self.teid), self.instance, ue_ip(self.ue))
        return group(kind, u16(56, 1), u32(29, 255), pdi, u8(95, 0), u32(108, 1), *self.links())

    def down_pdr(self, kind=1):
        pdi = group(2, u8(20, SGI_LAN), self.instance, ue_ip(self.ue, destination=True))
        return group(kind, u16(56, 2), u32(29, 255), pdi, u32(108, 2), *self.links())

    @staticmethod
    def links():
        return u32(81, 1), u32(81, 2), u32(109, 2), u32(109, 1)

    @staticmethod
    def urr(id_, information):
        """Volume; by period and by threshold of each direction."""
        threshold = ie(31, b"\x06" + struct.pack(">QQ", 200000, 200000))
        return group(6, u32(81, id_), u8(62, 2), ie(37, b"\x03\x00\x00"), u32(64, 30), threshold, u8(100, information))

    def establish_default(self):
        # Before the gNB is known the downlink FAR forwards to it all the same, without an outer header.
        return self.establish(
            self.up_pdr(), self.down_pdr(),
            group(3, u32(108, 1), u8(44, FORW), group(4, u8(42, SGI_LAN), self.instance)),
            group(3, u32(108, 2), u8(44, FORW), group(4, u8(42, ACCESS))),
            self.urr(1, 0x11), self.urr(2, 0x10),
            # MBR in kbit/s; QFI 0 in the session's QER.
            group(7, u32(109, 1), u8(25, 0), ie(26, (100000).to_bytes(5, "big") + (200000).to_bytes(5, "big")),
                  u8(124, 0)),
            group(7, u32(109, 2), u8(25, 0), u8(124, 1)),
            u8(113, 1))

    def connect(self, what, teid, address, action=FORW, flags=0):
        """As at activation, handover and release of the radio bearers: PDR and FAR, the outer header stays in it."""
        return self.modify(what, fseid(self.cp_seid, self.address), self.down_pdr(9), group(
            10, u32(108, 2), u8(44, action),
            group(11, u8(42, ACCESS), self.instance, outer_header(teid, address), u8(49, flags))))


def free5gc(w):
    smf = Free5GC("10.40.0.3", 0x1efcd)
    smf.associate(u8(89, 0))
    if smf.establish_default() is None:
        return
    flow_ = Flow(w, smf.ue, smf.teid, 1)
    # Nowhere to go yet: not to the gNB, and not back to the data network.
    early = w.down(smf.ue)
    flow_.up("before the gNB is known")
    smf.connect("activation", 0x6001, GNB)
    flow_.both(0x6001)
    check(not any(early in d for wire in (w.gnb, w.dn) for d in wire.waiting), "a packet without a tunnel went out")
    smf.connect("path switch", 0x6002, GNB_2, flags=2)
    end = w.gnb.frame(is_gtpu(END_MARKER), "an End Marker")
    equal("End Marker to", (end.value("ip", "ip.dst"), gtpu_header(end)), (GNB, 0x6001))
    flow_.both(0x6002, GNB_2, "after the path switch")
    smf.connect("the UE becomes idle", 0x6002, GNB_2, BUFF | NOCP)
    smf.node.reports.clear()
    first = w.down(smf.ue)
    report = smf.node.wait_report()
    check(report is not None and 83 in report.ies, "no Downlink Data Report")
    smf.connect("service request", 0x6003, GNB)
    flow_.down(0x6003, what="that woke the UE", mark=first)
    smf.modify("query", fseid(smf.cp_seid, smf.address), group(77, u32(81, 1)), group(77, u32(81, 2)))
    answer = smf.delete()
    equal("final reports", len(answer.ies.get(79, [])), 2)


# ---- Open5GS' SGW-C ------------------------------------------------------------------------------------------------


class SGWC(Open5GS):
    """4G, Sxa: rules have neither precedence nor Outer Header Removal, and the APN is the network instance of both
    sides. Both directions buffer until the other ends are known; there is no PDN type."""

    def tunnel(self, id_, side, kind):
        pdi = group(2, u8(20, side), ie(21, b"\x07"), self.instance, self.kind(kind))
        return group(1, u16(56, id_), pdi, u32(108, id_)) + group(3, u32(108, id_), self.action(BUFF | NOCP), u8(88, 1))

    def establish_default(self):
        return self.establish(self.tunnel(1, CORE, S5_U), self.tunnel(2, ACCESS, S1_U), group(85, u8(88, 1)))

    def to(self, far, side, teid, address, kind, flags=b""):
        return group(10, u32(108, far), self.action(FORW), group(
            11, u8(42, side), self.instance, outer_header(teid, address), flags, self.kind(kind)))


class Bearer:
    """Two tunnels through the SGW-U: PDRs and FARs `down` and `up`, TEIDs of the PGW and the eNodeB."""

    def __init__(self, w, smf, made, down, up, pgw, enb):  # pylint: disable=too-many-arguments
        self.w, self.ue, self.down, self.up, self.pgw, self.enb = w, smf.ue4, made[down], made[up], pgw, enb

    def both(self, what, enb=GNB):
        w = self.w
        frame = w.at_dn(w.up(self.up, self.ue), f"uplink on S5 {what}")
        equal(f"uplink on S5 {what}", (frame.value("ip", "ip.dst"), gtpu_header(frame), frame.names().count("gtp")),
              (n4.DN, self.pgw, 1))
        mark = w.mark(100)
        inner = IP(src="198.51.100.7", dst=self.ue) / UDP(sport=40002, dport=40001) / Raw(mark)
        w.dn.send(Ether(src=w.dn.mac, dst=w.mac["n6"]) / IP(src=n4.DN, dst="10.60.0.1") / UDP(sport=2152, dport=2152) /
                  GTP_U_Header(teid=self.down, gtp_type=255) / inner)
        frame = w.at_gnb(mark, f"downlink on S1-U {what}")
        equal(f"downlink on S1-U {what}", (frame.value("ip", "ip.dst"), gtpu_header(frame), frame.names().count("gtp")),
              (enb, self.enb, 1))


def sgwc(w):
    smf = SGWC("10.40.0.2", 61, "10.45.8.1")
    smf.associate(u8(89, 3))
    answer = smf.establish_default()
    if answer is None:
        return
    made = {id_: w.teid_of(f) for id_, f in created_fteids(answer).items()}
    equal("PDRs with a F-TEID", sorted(made), [1, 2])
    smf.modify("the PGW's tunnel", smf.to(2, CORE, 0x7001, n4.DN, S5_U))
    smf.modify("the eNodeB's tunnel", smf.to(1, ACCESS, 0x7002, GNB, S1_U))
    default = Bearer(w, smf, made, 1, 2, 0x7001, 0x7002)
    default.both("of the default bearer")
    dedicated_bearer(w, smf, default)
    s1_handover(w, smf, default)
    smf.delete()


def dedicated_bearer(w, smf, default):
    """Two more tunnels in the session; they go, and the default bearer stays."""
    answer = smf.modify("a dedicated bearer", smf.tunnel(3, CORE, S5_U), smf.tunnel(4, ACCESS, S1_U))
    if answer is None:
        return
    made = {id_: w.teid_of(f) for id_, f in created_fteids(answer).items()}
    equal("PDRs of the dedicated bearer", sorted(made), [3, 4])
    check(len({default.down, default.up, made[3], made[4]}) == 4, f"a bearer's F-TEIDs are its own: {made}")
    smf.modify("both ends of the dedicated bearer", smf.to(4, CORE, 0x7003, n4.DN, S5_U),
               smf.to(3, ACCESS, 0x7004, GNB, S1_U))
    Bearer(w, smf, made, 3, 4, 0x7003, 0x7004).both("of the dedicated bearer")
    default.both("beside the dedicated bearer")
    smf.modify("the dedicated bearer is removed", *(group(15, u16(56, id_)) for id_ in (3, 4)),
               *(group(16, u32(108, id_)) for id_ in (3, 4)))
    default.both("without the dedicated bearer")


def s1_handover(w, smf, default):
    """S1 handover: indirect forwarding through the SGW-U while the UE moves, path switch with End Marker, forwarding
    removed."""
    answer = smf.modify("indirect data forwarding", group(
        1, u16(56, 5), group(2, u8(20, ACCESS), ie(21, b"\x07"), smf.instance, smf.kind(DL_FORWARDING)), u32(108, 5)),
        group(
            3, u32(108, 5), smf.action(FORW),
            group(4, u8(42, ACCESS), smf.instance, outer_header(0x7005, GNB_2), smf.kind(DL_FORWARDING))))
    if answer is None:
        return
    forwarding = w.teid_of(created_fteids(answer)[5])
    give_back(w, forwarding, smf.ue4, (GNB_2, 0x7005), "indirect forwarding through the SGW-U")
    smf.modify("path switch", smf.to(1, ACCESS, 0x7006, GNB_2, S1_U, u8(49, 2)))
    end = w.gnb.frame(is_gtpu(END_MARKER), "an End Marker")
    equal("End Marker to", (end.value("ip", "ip.dst"), gtpu_header(end)), (GNB, 0x7002))
    default.enb = 0x7006
    default.both("after the handover", GNB_2)
    smf.modify("indirect forwarding removed", group(15, u16(56, 5)), group(16, u32(108, 5)))


class World(upf.World):
    """gNBs and data network, without an SMF."""

    def __init__(self):  # pylint: disable=super-init-not-called
        self.gnb, self.dn = Wire("gnb0"), Wire("dn0")
        self.mac = {port["name"]: port["mac"] for port in show("port")}
        self.number = 0
        # These sockets are not read: they keep the kernel from answering with port unreachable, which would be counted.
        self.sinks = (silent_gtpu()
                      + [upf.sink(f, port) for port in (40002, 5005) for f in (socket.AF_INET, socket.AF_INET6)])

    @staticmethod
    def teid_of(fteid):
        return struct.unpack(">I", fteid[1:5])[0]


def main():
    w = World()
    w.gnb.socket.setblocking(True)
    for flavour in (sgwc,) if sys.argv[1:] == ["sgwu"] else (open5gs, free5gc):
        flavour(w)
    check_sum("end")
    remarks = n4.tshark_remarks(f"{DIR}/n4.pcap")
    check(not remarks, f"tshark's remarks about our PFCP: {sorted(set(remarks))[:10]}")
    done("SMFs")


if __name__ == "__main__":
    main()
