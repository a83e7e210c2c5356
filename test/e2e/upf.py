# SPDX-License-Identifier: Apache-2.0
"""A UPF under a real PFCP interface: an SMF made of scapy, a gNB and a data network made of packet sockets.

Sessions, rules, usage reports to the byte, buffering and notification, path switch with End Marker, Error Indication,
restarts and outages. At the end tshark checks every PFCP message that was sent."""

import os
import signal
import socket
import struct
import subprocess
import sys

import n4
from frames import DIR, Wire, check, check_sum, done, equal, rows, show, wait_pass, wait_until
from n4 import (DELETE, ESTABLISH, MODIFY, Node, choose_fteid, far_down, far_up, group, ie, message, outer_header,
                pdr_down, pdr_up, rules_of, sdf, u8, u16, u32, ue_ip)
from pfcp_hostile import status
from scapy.all import IP, UDP, Ether, IPv6, Raw
from scapy.contrib import pfcp as p
from scapy.contrib.gtp import GTP_U_Header, GTPErrorIndication, GTPPDUSessionContainer, IE_GSNAddress, IE_TEIDI
from scapy.contrib.pfcp import PFCPSessionEstablishmentRequest
from subscribers import silent_gtpu

HEAD_UDP = 28  # of IPv4 and UDP
BUFFERED = 64  # engine.limits.buffered_packets (upf_test.sh)


class World:
    def __init__(self):
        self.gnb, self.dn = Wire("gnb0"), Wire("dn0")
        self.mac = {port["name"]: port["mac"] for port in show("port")}
        self.smf = Node(n4.SMF1, "smf1.isthmus.test")
        equal("association", getattr(self.smf.associate(), "cause", None), n4.ACCEPTED)
        self.number = 0
        # These sockets are not read: they keep the kernel from answering with port unreachable, which would be counted.
        self.sinks = silent_gtpu()
        for port in (40002, 5005, 5011, 6000):
            for family in (socket.AF_INET, socket.AF_INET6):
                self.sinks.append(sink(family, port))

    def mark(self, size):
        self.number += 1
        return struct.pack(">IQ", 0x15715715, self.number).ljust(size, b"\xa5")

    def up(self, teid, source, size=100, dport=40002, destination=None, qfi=9, outer_source=n4.GNB):
        """A G-PDU of the gNB; returns what its payload begins with."""
        mark = self.mark(size)
        v6 = ":" in source
        head = (IPv6(src=source, dst=destination or n4.DN6, hlim=17) if v6
                else IP(src=source, dst=destination or n4.DN, ttl=17))
        inner = head / UDP(sport=40001, dport=dport) / Raw(mark)
        self.gpdu(teid, inner, qfi, outer_source)
        return mark

    def gpdu(self, teid, inner, qfi=9, outer_source=n4.GNB):
        gtpu = GTP_U_Header(teid=teid, gtp_type=255) / GTPPDUSessionContainer(type=1, QFI=qfi)
        self.gnb.send(Ether(src=self.gnb.mac, dst=self.mac["n3"]) / IP(src=outer_source, dst=n4.N3) /
                      UDP(sport=2152, dport=2152) / gtpu / inner)

    def downlink(self, ue, mark, sport=40002, tos=0):
        v6 = ":" in ue
        head = IPv6(src=n4.DN6, dst=ue, hlim=17) if v6 else IP(src=n4.DN, dst=ue, ttl=17, tos=tos)
        return Ether(src=self.dn.mac, dst=self.mac["n6"]) / head / UDP(sport=sport, dport=40001) / Raw(mark)

    def down(self, ue, size=100, sport=40002, tos=0):
        mark = self.mark(size)
        self.dn.send(self.downlink(ue, mark, sport, tos))
        return mark

    def at_dn(self, mark, what):
        return self.dn.frame(lambda d: mark in d, what)

    def at_gnb(self, mark, what):
        return self.gnb.frame(lambda d: mark in d, what)

    def modify(self, seid, body, what):
        answer = self.smf.request(MODIFY, body, seid=seid)
        equal(what, getattr(answer, "cause", None), n4.ACCEPTED)
        return answer

    def delete(self, seid, what):
        answer = self.smf.request(DELETE, b"", seid=seid)
        equal(what, getattr(answer, "cause", None), n4.ACCEPTED)
        return answer


def sink(family, port):
    s = socket.socket(family, socket.SOCK_DGRAM)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    s.bind(("", port))
    return s


def gtpu_header(frame):
    return int(frame.value("gtp", "gtp.teid") or "0", 0)


def volumes(raw):
    """[total, uplink, downlink] of a Usage Report's Volume Measurement, and its trigger octets."""
    at, out, trigger = 0, None, b""
    while at + 4 <= len(raw):
        kind, size = struct.unpack(">HH", raw[at:at + 4])
        value = raw[at + 4:at + 4 + size]
        if kind == 66:
            flags, values = value[0], iter(struct.unpack(f">{(len(value) - 1) // 8}Q", value[1:]))
            out = [next(values) if flags >> bit & 1 else None for bit in range(3)]
        if kind == 63:
            trigger = value
        at += 4 + size
    return out, trigger


def scapy_session(w):
    """A session whose every IE scapy built: CHOOSE, both families."""
    body = bytes(PFCPSessionEstablishmentRequest(IE_list=[
        p.IE_NodeId(id_type=2, id=w.smf.name),
        p.IE_FSEID(v4=1, seid=11, ipv4=w.smf.address),
        p.IE_CreatePDR(IE_list=[
            p.IE_PDR_Id(id=1), p.IE_Precedence(precedence=100),
            p.IE_PDI(IE_list=[p.IE_SourceInterface(interface=0), p.IE_FTEID(V4=1, CH=1, CHID=1, choose_id=5),
                              p.IE_NetworkInstance(instance="access"),
                              p.IE_UE_IP_Address(V4=1, V6=1, ipv4="10.45.1.1", ipv6="2001:db8:45:1::")]),
            p.IE_OuterHeaderRemoval(header=6), p.IE_FAR_Id(id=1)]),
        p.IE_CreatePDR(IE_list=[
            p.IE_PDR_Id(id=2), p.IE_Precedence(precedence=100),
            p.IE_PDI(IE_list=[p.IE_SourceInterface(interface=1), p.IE_NetworkInstance(instance="internet"),
                              p.IE_UE_IP_Address(V4=1, V6=1, SD=1, ipv4="10.45.1.1", ipv6="2001:db8:45:1::")]),
            p.IE_FAR_Id(id=2), p.IE_QER_Id(id=1)]),
        p.IE_CreateFAR(IE_list=[
            p.IE_FAR_Id(id=1), p.IE_ApplyAction(FORW=1),
            p.IE_ForwardingParameters(IE_list=[p.IE_DestinationInterface(interface=1),
                                               p.IE_NetworkInstance(instance="internet")])]),
        p.IE_CreateFAR(IE_list=[
            p.IE_FAR_Id(id=2), p.IE_ApplyAction(FORW=1),
            p.IE_ForwardingParameters(IE_list=[
                p.IE_DestinationInterface(interface=0), p.IE_NetworkInstance(instance="access"),
                p.IE_OuterHeaderCreation(GTPUUDPIPV4=1, TEID=0x9011, ipv4=n4.GNB)])]),
        p.IE_CreateQER(IE_list=[p.IE_QER_Id(id=1), p.IE_GateStatus(ul=0, dl=0), p.IE_QFI(QFI=7)]),
    ]))
    answer = w.smf.request(ESTABLISH, body, seid=0)
    equal("scapy's establishment", answer and answer.cause, n4.ACCEPTED)
    teid = answer.created().get(1)
    check(teid, f"no F-TEID for PDR 1: {answer.created()}")
    for source in ("10.45.1.1", "2001:db8:45:1::77"):
        frame = w.at_dn(w.up(teid, source), f"uplink of {source}")
        layer = "ipv6" if ":" in source else "ip"
        check(socket.inet_pton(socket.AF_INET6 if ":" in source else socket.AF_INET, frame.value(layer, f"{layer}.src")
                               or "::")
              == socket.inet_pton(socket.AF_INET6 if ":" in source else socket.AF_INET, source),
              f"uplink source of {source}")
        frame = w.at_gnb(w.down(source), f"downlink to {source}")
        equal(f"downlink TEID to {source}", gtpu_header(frame), 0x9011)
        equal(f"QFI to {source}", frame.value("gtp", "gtp.ext_hdr.pdu_ses_con.qos_flow_id"), "7")
        equal(f"PDU type to {source}", frame.value("gtp", "gtp.ext_hdr.pdu_ses_con.pdu_type"), "0")
    before = rows("drop").get("source-spoofed", 0)
    w.up(teid, "10.45.1.2")
    w.up(teid, "2001:db8:45:2::77")
    wait_until(lambda: rows("drop").get("source-spoofed", 0) == before + 2, "spoofed sources to be dropped")
    w.delete(answer.seid, "deletion of scapy's session")
    before = rows("drop").get("gtpu-teid-unknown", 0)
    w.up(teid, "10.45.1.1")
    wait_until(lambda: rows("drop").get("gtpu-teid-unknown", 0) == before + 1,
               "the deleted session's TEID to be unknown")


def usage(w):
    """Volumes exact to the byte: by threshold, by query and at the end; a quota stops the traffic."""
    urr = group(6, u32(81, 1), u8(62, 2), ie(37, b"\x02\x00"), ie(31, b"\x01" + struct.pack(">Q", 10000)))
    link = u32(81, 1)
    pdrs = pdr_up(1, n4.fteid(0x1101), "10.45.2.1") + pdr_down(2, "10.45.2.1")
    pdrs = b"".join(group(1, body, link) for body in split_groups(pdrs))
    answer = w.smf.establish(12, pdrs + far_up() + far_down(teid=0x9021) + urr)
    equal("establishment with URR", answer and answer.cause, n4.ACCEPTED)
    seid, sent = answer.seid, [0, 0]
    w.smf.reports.clear()
    for i in range(40):
        size = 60 + 7 * i
        up = w.up(0x1101, "10.45.2.1", size)
        sent[0] += size + HEAD_UDP
        down = w.down("10.45.2.1", size + 3)
        sent[1] += size + 3 + HEAD_UDP
    w.at_dn(up, "the last uplink packet")  # and so all are counted
    w.at_gnb(down, "the last downlink packet")
    report = w.smf.wait_report()
    check(report is not None, "no usage report at the volume threshold")
    got = [0, 0]
    if report is not None:
        total, trigger = volumes(report.ies[80][0])
        check(trigger and trigger[0] & 2, f"trigger of the report is {trigger.hex()}, expected VOLTH")
        check(total[0] >= 10000, f"threshold of 10000 reported at {total}")
        got[0] += total[1]
        got[1] += total[2]
    answer = w.modify(seid, group(77, u32(81, 1)), "query of the URR")
    while more := w.smf.wait_report(0):  # sent before that answer
        total, _ = volumes(more.ies[80][0])
        got[0] += total[1]
        got[1] += total[2]
    if 78 in answer.ies:
        total, trigger = volumes(answer.ies[78][0])
        check(trigger and trigger[0] & 0x80, f"trigger of the query is {trigger.hex()}, expected IMMER")
        got[0] += total[1]
        got[1] += total[2]
    else:
        check(False, "no usage report in the modification's answer")
    equal("bytes reported, uplink and downlink", got, sent)
    mark = w.up(0x1101, "10.45.2.1", 333)
    w.at_dn(mark, "uplink after the reports")
    answer = w.delete(seid, "deletion with URR")
    total, trigger = volumes(answer.ies[79][0]) if 79 in answer.ies else (None, b"")
    equal("final report", total, [333 + HEAD_UDP, 333 + HEAD_UDP, 0])
    check(len(trigger) > 1 and trigger[1] & 8, f"trigger of the final report is {trigger.hex()}, expected TERMR")


def split_groups(data):
    """Values of the groups one after the other."""
    at = 0
    while at + 4 <= len(data):
        size = struct.unpack(">H", data[at + 2:at + 4])[0]
        yield data[at + 4:at + 4 + size]
        at += 4 + size


def quota(w):
    urr = group(6, u32(81, 1), u8(62, 2), ie(37, b"\x00\x01"), ie(73, b"\x01" + struct.pack(">Q", 1000)))
    pdrs = b"".join(group(1, body, u32(81, 1))
                    for body in split_groups(pdr_up(1, n4.fteid(0x1102), "10.45.2.2") + pdr_down(2, "10.45.2.2")))
    answer = w.smf.establish(13, pdrs + far_up() + far_down(teid=0x9022) + urr)
    equal("establishment with quota", answer and answer.cause, n4.ACCEPTED)
    for _ in range(20):
        w.up(0x1102, "10.45.2.2", 72)  # 100 bytes of IP each
    report = w.smf.wait_report()
    check(report is not None, "no report of the used quota")
    if report is not None:
        total, trigger = volumes(report.ies[80][0])
        check(len(trigger) > 1 and trigger[1] & 1, f"trigger is {trigger.hex()}, expected VOLQU")
        check(1000 <= total[0] <= 1100, f"quota of 1000 bytes, {total[0]} passed")
    w.smf.reports.clear()
    w.modify(answer.seid, group(13, u32(81, 1), ie(73, b"\x01" + struct.pack(">Q", 5000))), "a new quota")
    w.at_dn(w.up(0x1102, "10.45.2.2", 72), "uplink with the new quota")
    w.delete(answer.seid, "deletion of the session with quota")


def idle(w):
    """Buffering, notification, release in order; drop of what waits."""
    answer = w.smf.establish(14, pdr_up(1, n4.fteid(0x1103), "10.45.3.1") + pdr_down(2, "10.45.3.1") + far_up()
                             + far_down(teid=0x9031, action=12))
    equal("establishment of an idle session", answer and answer.cause, n4.ACCEPTED)
    w.smf.reports.clear()
    marks = [w.down("10.45.3.1", 80) for _ in range(5)]
    report = w.smf.wait_report()
    check(report is not None and 83 in report.ies, "no downlink data report")
    equal("one notification only", w.smf.wait_report(1), None)
    check(w.gnb.quiet(lambda d: any(m in d for m in marks), 0.2, "packets of the idle UE"), "buffered packets went out")
    w.modify(answer.seid, group(10, u32(108, 2), u8(44, 2)), "the UE is there again")
    marks.append(w.down("10.45.3.1", 80))
    got = w.gnb.receive(lambda d: any(m in d for m in marks), len(marks), "buffered packets")
    equal("order of the buffered packets", [next(i for i, m in enumerate(marks) if m in d) for d in got],
          list(range(len(marks))))
    w.delete(answer.seid, "deletion of the idle session")


def paging_pool(w):
    """Packets for idle UEs have all buffers of `buffered_packets`: each further UE is paged all the same."""
    before, seids, ues = rows("drop").get("buffer-crowded-out", 0), [], BUFFERED + 16
    for n in range(ues):
        ue = f"10.45.9.{n + 1}"
        rules = pdr_up(1, n4.fteid(0x1200 + n), ue) + pdr_down(2, ue) + far_up() + far_down(teid=0x9100 + n, action=12)
        answer = w.smf.establish(100 + n, rules)
        if not check(answer is not None and answer.cause == n4.ACCEPTED, f"idle UE {n}: {answer and answer.cause}"):
            return
        seids.append(answer.seid)
    w.smf.reports.clear()
    for n in range(ues):
        w.down(f"10.45.9.{n + 1}", 80)
    paged = set()
    while len(paged) < ues and (report := w.smf.take_report(lambda r: 83 in r.ies, 6)):
        paged.add(struct.unpack(">Q", report.data[4:12])[0])
    equal("UEs that are not paged", sorted(set(range(100, 100 + ues)) - paged), [])
    equal("packets that made room", rows("drop").get("buffer-crowded-out", 0) - before, ues - BUFFERED)
    for seid in seids:
        w.delete(seid, "deletion of an idle UE")


def path_switch(w):
    """A new downlink tunnel with SNDEM: an End Marker on the old one, after its last packet."""
    answer = w.smf.establish(15, pdr_up(1, n4.fteid(0x1104), "10.45.4.1") + pdr_down(2, "10.45.4.1") + far_up()
                             + far_down(teid=0x9041))
    w.at_gnb(w.down("10.45.4.1"), "downlink before the switch")
    forwarding = group(11, u8(42, 0), outer_header(0x9042, n4.GNB), u8(49, 2))
    w.modify(answer.seid, group(10, u32(108, 2), forwarding), "path switch")
    end = w.gnb.frame(lambda d: d[42:44] == b"\x30\xfe" or d[42:44] == b"\x34\xfe", "an End Marker")
    equal("TEID of the End Marker", gtpu_header(end), 0x9041)
    equal("TEID after the switch", gtpu_header(w.at_gnb(w.down("10.45.4.1"), "downlink after the switch")), 0x9042)
    # The gNB does not know the tunnel: Error Indication becomes a report.
    w.smf.reports.clear()
    error = (GTP_U_Header(gtp_type=26, teid=0, S=1, seq=1)
             / GTPErrorIndication(IE_list=[IE_TEIDI(TEIDI=0x9042), IE_GSNAddress(length=4, ipv4_address=n4.GNB)]))
    w.gnb.send(Ether(src=w.gnb.mac, dst=w.mac["n3"]) / IP(src=n4.GNB, dst=n4.N3) / UDP(sport=2152, dport=2152) / error)
    report = w.smf.wait_report()
    check(report is not None and 99 in report.ies, "no Error Indication report")
    w.smf.reports.clear()
    w.delete(answer.seid, "deletion after the switch")


def classifier(w):
    """SDF filters and precedence: one port goes over N9 to another UPF, the rest to the data network."""
    filter_ = sdf("permit out 17 from 0.0.0.0/0 5000-5010,6000 to assigned")
    rules = (pdr_up(1, n4.fteid(0x1105), "10.45.5.1", far=3, precedence=50, extra=filter_)
             + pdr_up(3, n4.fteid(0x1105), "10.45.5.1", far=1, precedence=200))
    far = group(3, u32(108, 3), u8(44, 2), group(4, u8(42, 1), n4.instance("access"), outer_header(0x7777, n4.GNB)))
    answer = w.smf.establish(16, rules + pdr_down(2, "10.45.5.1") + far_up() + far_down(teid=0x9051) + far)
    equal("establishment of the classifier", answer and (answer.cause, answer.offending, answer.failed_rule),
          (n4.ACCEPTED, None, None))
    for port, branch in ((5005, True), (6000, True), (5011, False), (40002, False)):
        mark = w.up(0x1105, "10.45.5.1", dport=port)
        if branch:
            equal(f"N9 TEID of port {port}", gtpu_header(w.at_gnb(mark, f"port {port} on N9")), 0x7777)
        else:
            w.at_dn(mark, f"port {port} at the data network")
    w.delete(answer.seid, "deletion of the classifier")


def murder(pid):
    os.kill(pid, signal.SIGKILL)


def survival(w):
    """The control plane is killed: packets pass meanwhile, and afterwards session, counts and SEIDs are unchanged. The
    data plane is killed: the session is restored."""
    urr = group(6, u32(81, 1), u8(62, 2), ie(37, b"\x00\x00"))
    pdrs = b"".join(group(1, body, u32(81, 1))
                    for body in split_groups(pdr_up(1, n4.fteid(0x1106), "10.45.6.1") + pdr_down(2, "10.45.6.1")))
    answer = w.smf.establish(17, pdrs + far_up() + far_down(teid=0x9061) + urr)
    seid = answer.seid
    recovered = w.smf.heartbeat().ies[96]
    w.at_dn(w.up(0x1106, "10.45.6.1", 72), "uplink before the restart")
    state = status()
    murder(state["pid"])
    for _ in range(20):
        w.at_dn(w.up(0x1106, "10.45.6.1", 72), "uplink without a control plane")
        w.at_gnb(w.down("10.45.6.1", 72), "downlink without a control plane")
    subprocess.run([f"{os.environ['TEST_ROOT_']}/test/lib/start_control.sh"], check=True)
    equal("data plane", status()["dp_pid"], state["dp_pid"])
    equal("recovery time stamp after a restart with sessions kept", w.smf.heartbeat().ies[96], recovered)
    answer = w.modify(seid, group(77, u32(81, 1)), "query after the restart")
    total, _ = volumes(answer.ies[78][0]) if 78 in answer.ies else (None, b"")
    equal("volume over the restart", total, [4100, 2100, 2000])
    murder(status()["dp_pid"])
    wait_until(lambda: status()["dp_pid"] not in (0, state["dp_pid"]) and status()["data_plane"] == "ready",
               "the data plane to come back", 20)
    wait_until(lambda: show("total")["sessions"] == 1, "the session to come back", 10)
    w.gnb.forget()
    wait_pass(0.5)
    w.up(0x1106, "10.45.6.1", 72)  # resolves neighbours
    wait_pass(0.5)
    w.at_dn(w.up(0x1106, "10.45.6.1", 72), "uplink after the data plane's restart")
    w.delete(seid, "deletion after the restarts")


def smf_restart(w):
    """A newer recovery time stamp in an association set-up: the sessions go (TS 23.527 clause 4.3)."""
    w.smf.establish(18, rules_of(0x1107, "10.45.7.1"))
    equal("sessions before", show("total")["sessions"], 1)
    w.smf.started += 30
    equal("association after the SMF's restart", getattr(w.smf.associate(), "cause", None), n4.ACCEPTED)
    wait_until(lambda: show("total")["sessions"] == 0, "the old sessions to go", 10)


def main():
    w = World()
    w.gnb.socket.setblocking(True)
    scapy_session(w)
    usage(w)
    quota(w)
    idle(w)
    paging_pool(w)
    path_switch(w)
    classifier(w)
    survival(w)
    smf_restart(w)
    check_sum("end")
    remarks = n4.tshark_remarks(f"{DIR}/n4.pcap")
    check(not remarks, f"tshark's remarks about our PFCP: {sorted(set(remarks))[:10]}")
    done("UPF")


if __name__ == "__main__":
    sys.exit(main())
