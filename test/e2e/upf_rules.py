# SPDX-License-Identifier: Apache-2.0
"""What the UPF says it can do (UP Function Features), feature by feature: rules by PFCP, then packets that show their
effect.

At the end tshark looks at every PFCP message that was sent.
"""

import socket
import struct
import subprocess
import sys
import time

import n4
from frames import DIR, Wire, check, check_sum, done, equal, rows, show, wait_until
from n4 import (DELETE, PFD, choose_fteid, far_down, far_up, fteid, group, ie, instance, outer_header, pdr_down, pdr_up,
                sdf, u8, u16, u32, ue_ip)
from upf import World, split_groups, volumes
from scapy.all import IP, TCP, UDP, Ether, Raw
from scapy.contrib.gtp import GTP_U_Header, GTPPDUSessionContainer

# Usage Report Trigger (TS 29.244 clause 8.2.41), octet 5 first.
(PERIO, VOLTH, TIMTH, QUHTI, START, STOPT, DROTH, IMMER, VOLQU, TIMQU, LIUSA, TERMR, MONIT, ENVCL, MACAR, EVETH, EVEQU,
 TEBUR, IPMJL, QUVTI) = (1 << n for n in range(20))
EPOCH = n4.EPOCH


def inside(raw):
    """{type: [values]} of the IEs in a grouped one."""
    at, out = 0, {}
    while at + 4 <= len(raw):
        kind, size = struct.unpack(">HH", raw[at:at + 4])
        out.setdefault(kind, []).append(raw[at + 4:at + 4 + size])
        at += 4 + size
    return out


def trigger_of(usage):
    return int.from_bytes(inside(usage)[63][0], "little")


def report_with(w, kind, what, seconds=8, test=lambda r: True):
    """Waits for a report with an IE of this type; others stay."""
    report = w.smf.take_report(lambda r: kind in r.ies and test(r), seconds)
    check(report is not None, f"no report: {what}")
    return report


def open_session(w, cp_seid, rules, what):
    answer = w.smf.establish(cp_seid, rules)
    if not check(answer is not None and answer.cause == n4.ACCEPTED,
                 f"{what}: {answer and (answer.cause, answer.offending, answer.failed_rule)}; "
                 f"{show('n4')['refusals'][:1]}"):
        return None
    return answer


def with_links(pdrs, *links):
    """Create PDRs with more at their ends (URR, QER)."""
    return b"".join(group(1, body, *links) for body in split_groups(pdrs))


def pair(teid, ue, far_down_extra=b"", links=(), down_teid=None, action=2):
    """The usual two PDRs and FARs, with links to QERs or URRs."""
    pdrs = with_links(pdr_up(1, fteid(teid), ue) + pdr_down(2, ue), *links)
    far2 = group(3, u32(108, 2), u8(44, action), group(4, u8(42, 0), instance("access"),
                                                       outer_header(down_teid or teid + 0x8000, n4.GNB)),
                                                       far_down_extra)
    return pdrs + far_up() + far2


def at_dn(w, mark, what):
    """The packet comes to the data network. Not decoded by tshark, as in gnb_teid: there are many."""
    return w.dn.receive(lambda d: mark in d, 1, what)


def gnb_teid(w, mark, what):
    """The TEID with which the packet comes to the gNB."""
    found = w.gnb.receive(lambda d: mark in d, 1, what)
    return struct.unpack(">I", found[0][46:50])[0] if found else None


def features(w):
    """The rows below prove the bits; a new bit needs a new row."""
    equal("UP function features", show("n4")["features"],
          ["DDND", "DLBD", "FTUP", "PFDM", "TREU", "EMPU", "PDIU", "QUOAC", "FRRT", "UEIP", "SSET", "MNOP", "MPAS",
           "VTIME", "IP6PL"])


def choose(w):
    """FTUP: one CHOOSE ID is one F-TEID, another one is another; both families have one TEID."""
    rules = pdr_up(1, choose_fteid(7, v6=True), "10.45.20.1",
                   extra=sdf("permit out 17 from 0.0.0.0/0 5005 to assigned"), precedence=50)
    rules += pdr_up(3, choose_fteid(7, v6=True), "10.45.20.1") + pdr_up(4, choose_fteid(8), "10.45.20.1", precedence=60)
    answer = open_session(w, 20, rules + pdr_down(2, "10.45.20.1") + far_up() + far_down(teid=0x9200), "CHOOSE")
    if answer is None:
        return
    made = answer.created()
    check(made.get(1) and made.get(1) == made.get(3) and made.get(4) not in (None, made[1]),
          f"F-TEIDs of CHOOSE IDs: {made}")
    created = [inside(raw) for raw in answer.ies[8]]
    both = next(c[21][0] for c in created if c[56][0] == b"\0\1")
    equal("F-TEID of both families", both, b"\x03" + struct.pack(">I", made[1]) + n4.ip4(n4.N3) + n4.ip6(n4.N3_6))
    for teid, port in ((made[1], 5005), (made[1], 40002), (made[4], 40002)):
        at_dn(w, w.up(teid, "10.45.20.1", dport=port), f"uplink by TEID {teid:#x}, port {port}")
    w.delete(answer.seid, "deletion of CHOOSE")


def no_pdrs(w):
    """All PDRs are removed, others are created in the next message (TS 29.244 clause 7.5.4 requires none to stay); the
    next report has the URR's former count."""
    answer = open_session(w, 21, pair(0x2101, "10.45.21.1", links=(u32(81, 1),))
                          + group(6, u32(81, 1), u8(62, 2), ie(37, b"\0\0\0")), "session")
    if answer is None:
        return
    at_dn(w, w.up(0x2101, "10.45.21.1", 72), "uplink before")
    w.modify(answer.seid, group(15, u16(56, 1)) + group(15, u16(56, 2)), "removal of all PDRs")
    before = rows("drop").get("ue-unknown", 0)
    w.down("10.45.21.1", 72)
    wait_until(lambda: rows("drop").get("ue-unknown", 0) > before, "a packet of the session without PDRs to be dropped")
    equal("session without PDRs", [s["pdrs"] for s in show("session") if s["name"] == f"n4.{answer.seid:016x}"], [0])
    w.modify(answer.seid, with_links(pdr_up(3, fteid(0x2103), "10.45.21.1") + pdr_down(4, "10.45.21.1"), u32(81, 1)),
             "creation of other PDRs")
    at_dn(w, w.up(0x2103, "10.45.21.1", 72), "uplink after")
    gnb_teid(w, w.down("10.45.21.1", 72), "downlink after")
    equal("usage of before and after", volumes(w.delete(answer.seid, "deletion").ies[79][0])[0][0], 300)


def detection(w):
    """PFDM: PFDs define an application; a PDR with the Application ID steers it; new PFDs act on existing sessions."""
    def provision(*flows):
        contents = b"".join(ie(61, b"\x01\x00" + struct.pack(">H", len(f)) + f.encode()) for f in flows)
        answer = w.smf.request(PFD, group(58, ie(24, b"video"), group(59, contents)))
        equal("PFD management", answer and answer.cause, n4.ACCEPTED)
    provision("permit out 17 from 10.60.0.2/32 5005 to assigned")
    pdi = lambda *parts: group(2, u8(20, 0), fteid(0x2101), instance("access"), ue_ip("10.45.21.1"), *parts)
    special = group(1, u16(56, 3), u32(29, 10), pdi(ie(24, b"video")), u8(95, 0), u32(108, 3))
    far = group(3, u32(108, 3), u8(44, 2), group(4, u8(42, 1), instance("access"), outer_header(0x7121, n4.GNB)))
    answer = open_session(w, 21, special + pair(0x2101, "10.45.21.1") + far, "application")
    if answer is None:
        return
    for flows, port, steered in (((), 5005, True), ((), 40002, False),
                                 (("permit out 17 from 10.60.0.2/32 6000 to assigned",
                                   "permit out 17 from any 5011 to assigned"), 5005, False),
                                 ((), 6000, True), ((), 5011, True)):
        if flows:
            commits = show("total")["commits"]
            provision(*flows)
            wait_until(lambda c=commits: show("total")["commits"] > c, "the session to follow")
        mark = w.up(0x2101, "10.45.21.1", dport=port)
        if steered:
            equal(f"TEID of the application at port {port}", gnb_teid(w, mark, f"application at port {port}"), 0x7121)
        else:
            at_dn(w, mark, f"no application: port {port}")
    w.delete(answer.seid, "deletion of the application's session")
    answer = w.smf.request(PFD, group(58, ie(24, b"video")))
    equal("PFDs taken away", answer and answer.cause, n4.ACCEPTED)
    answer = w.smf.establish(21, special + pair(0x2101, "10.45.21.1") + far)
    equal("a PDR of an application without PFDs", answer and (answer.cause, answer.failed_rule),
          (n4.RULE_FAILURE, (0, 3)))
    refusal = show("n4")["refusals"][0]
    equal("the refusal as operators see it",
          (refusal["peer"], refusal["cause"], refusal["offending_ie"], refusal["rule"], "video" in refusal["text"]),
          (n4.SMF1, 73, 24, "PDR 3", True))


def redirect(w):
    """TREU: an HTTP client that talks to any server gets 302 and the place."""
    url = b"http://portal.test/pay"
    information = ie(38, b"\x02" + struct.pack(">H", len(url)) + url)
    rules = (with_links(pdr_up(1, fteid(0x2201), "10.45.22.1") + pdr_down(2, "10.45.22.1"), u32(81, 1))
             + far_down(teid=0xa201))
    rules += group(6, u32(81, 1), u8(62, 2), ie(37, b"\0\1"))  # volume, reported with the deletion
    sent = []  # bytes of IP packets, up and down
    answer = open_session(w, 22, rules + group(3, u32(108, 1), u8(44, 2),
                                               group(4, u8(42, 1), instance("internet"), information)), "redirection")
    if answer is None:
        return

    def say(tcp):
        gtpu = GTP_U_Header(teid=0x2201, gtp_type=255) / GTPPDUSessionContainer(type=1, QFI=9)
        inner = IP(src="10.45.22.1", dst="192.0.2.80") / tcp
        sent.append((len(inner), 0))
        w.gnb.send(Ether(src=w.gnb.mac, dst=w.mac["n3"]) / IP(src=n4.GNB, dst=n4.N3)
                         / UDP(sport=2152, dport=2152) / gtpu / inner)

    def heard(test, what):
        found = w.gnb.receive(lambda d: d[42 - 8:42 - 4] == b"\x08\x68\x08\x68" and test(tcp_of(d)), 1, what)
        if found:
            inner = found[0].find(n4.ip4("192.0.2.80") + n4.ip4("10.45.22.1")) - 12
            sent.append((0, struct.unpack(">H", found[0][inner + 2:inner + 4])[0]))
        return tcp_of(found[0]) if found else TCP()

    def tcp_of(frame):
        at = frame.find(n4.ip4("192.0.2.80") + n4.ip4("10.45.22.1"))
        return TCP(frame[at + 8:]) if at > 0 else TCP(flags=0)
    say(TCP(sport=33000, dport=80, flags="S", seq=1000, options=[("MSS", 1400)]))
    syn = heard(lambda t: t.flags == "SA", "SYN-ACK in the name of the server")
    equal("acknowledged", syn.ack, 1001)
    say(TCP(sport=33000, dport=80, flags="A", seq=1001, ack=syn.seq + 1))
    say(TCP(sport=33000, dport=80, flags="PA", seq=1001,
            ack=syn.seq + 1) / Raw(b"GET /news HTTP/1.1\r\nHost: news.test\r\n\r\n"))
    text = bytes(heard(lambda t: len(bytes(t.payload)) > 20, "an HTTP answer").payload)
    check(text.startswith(b"HTTP/1.1 302") and b"Location: " + url in text, f"the answer: {text!r}")
    measured = volumes(w.delete(answer.seid, "deletion of the redirection").ies[79][0])[0]
    equal("volume of redirected HTTP (clause 5.2.2.2)", list(measured[1:3]), [sum(n) for n in zip(*sent)])


def paging(w):
    """DDND: the report comes after the BAR's delay. DLBD: its answer sets how long to keep packets, also waiting ones,
    and how many."""
    bar = group(85, u8(88, 1), u8(46, 20))  # 20 times 50 ms
    answer = open_session(w, 23, pair(0x2301, "10.45.23.1", far_down_extra=u8(88, 1), action=12) + bar, "BAR")
    if answer is None:
        return
    w.smf.reports.clear()
    # DL Buffering Duration 1 times 2 s, DL Buffering Suggested Packet Count 3 (clauses 8.2.32, 8.2.33).
    w.smf.report_extra = group(12, u8(88, 1), u8(47, 1), u8(48, 3))
    before, at = rows("drop"), time.monotonic()
    w.down("10.45.23.1")
    report_with(w, 83, "downlink data, delayed")
    check(time.monotonic() - at >= 0.9, f"notification after {time.monotonic() - at:.2f} s, delay is 1 s")
    w.smf.report_extra = b""
    wait_until(lambda: rows("drop").get("buffer-timeout", 0) > before.get("buffer-timeout", 0),
               "the buffering duration to end", 6)
    for _ in range(5):
        w.down("10.45.23.1")
    wait_until(lambda: rows("drop").get("buffer-full", 0) == before.get("buffer-full", 0) + 2,
               "two packets above the count")
    w.delete(answer.seid, "deletion of the idle session")


def endpoints(w):
    """PDIU: the F-TEID and the UE address are those of a traffic endpoint that PDRs refer to."""
    endpoint = group(127, u8(131, 3), choose_fteid(), instance("access"), ue_ip("10.45.24.1"))
    other = group(127, u8(131, 4), instance("internet"), ue_ip("10.45.24.1", destination=True))
    pdr = (lambda id_, source, ep, far:
           group(1, u16(56, id_), u32(29, 100), group(2, u8(20, source), u8(131, ep)),
                 u8(95, 0) if source == 0 else b"", u32(108, far)))
    answer = open_session(w, 24, endpoint + other + pdr(1, 0, 3, 1) + pdr(2, 1, 4, 2) + far_up()
                          + far_down(teid=0xa401), "traffic endpoints")
    if answer is None:
        return
    made = inside(answer.ies.get(128, [b""])[0])
    teid = struct.unpack(">I", made.get(21, [b"\0\0\0\0\0"])[0][1:5])[0]
    check(made.get(131) == [b"\3"] and teid, f"created traffic endpoint: {made}")
    at_dn(w, w.up(teid, "10.45.24.1"), "uplink by traffic endpoint")
    equal("downlink by traffic endpoint", gnb_teid(w, w.down("10.45.24.1"), "downlink by traffic endpoint"), 0xa401)
    w.delete(answer.seid, "deletion of the traffic endpoints")


def quota_actions(w):
    """QUOAC: when the quota is used up packets follow the FAR for it. VTIME: a quota that is not used in time is
    reported, and no packet passes then; where there is no quota, the report is all."""
    quota_far = group(3, u32(108, 9), u8(44, 2), group(4, u8(42, 1), instance("access"), outer_header(0x7125, n4.GNB)))
    urr = group(6, u32(81, 1), u8(62, 2), ie(37, b"\x00\x01"), ie(73, b"\x01" + struct.pack(">Q", 1000)), u32(108, 9))
    # All of the first part lies within the validity time, also on a busy machine.
    timed = group(6, u32(81, 2), u8(62, 2), ie(37, b"\x00\x80"), ie(73, b"\x01" + struct.pack(">Q", 100000)),
                  u32(181, 8))
    answer = open_session(w, 25, pair(0x2501, "10.45.25.1", links=(u32(81, 1), u32(81, 2))) + quota_far + urr + timed,
                          "quota actions")
    if answer is None:
        return
    w.smf.reports.clear()
    for n in range(10):
        at_dn(w, w.up(0x2501, "10.45.25.1", 72), f"packet {n + 1} within the quota")
    report = report_with(w, 80, "quota used up", test=lambda r: any(trigger_of(u) & VOLQU for u in r.ies[80]))
    wait_until(lambda: any(r["far"] == 9 for r in show("rule")), "the FAR for quota action to be in force")
    for _ in range(3):
        mark = w.up(0x2501, "10.45.25.1", 72)
        equal("TEID of the FAR for quota action", gnb_teid(w, mark, "uplink above the quota"), 0x7125)
    report = report_with(w, 80, "validity time over", 16, lambda r: any(trigger_of(u) & QUVTI for u in r.ies[80]))
    check(report is not None, "no report at the quota validity time")
    w.delete(answer.seid, "deletion of quota actions")
    for number, quota in ((39, b""), (40, ie(73, b"\x01" + struct.pack(">Q", 100000)))):
        timed = group(6, u32(81, 1), u8(62, 2), ie(37, b"\x00\x80"), quota, u32(181, 1))
        answer = open_session(w, number, pair(0x2500 + number, f"10.45.25.{number}", links=(u32(81, 1),)) + timed,
                              "validity time")
        if answer is None:
            return
        at_dn(w, w.up(0x2500 + number, f"10.45.25.{number}", 72), "packet within the validity time")
        report = report_with(w, 80, f"validity time, quota {quota.hex()}",
                             test=lambda r: any(trigger_of(u) & QUVTI for u in r.ies[80]))
        check(report is not None, f"no report at the validity time, quota {quota.hex()}")
        before = rows("drop").get("usage-quota", 0)
        mark = w.up(0x2500 + number, f"10.45.25.{number}", 72)
        if quota:
            wait_until(lambda: rows("drop").get("usage-quota", 0) > before,
                       "a packet after the validity time to be dropped")
        else:
            at_dn(w, mark, "packet after the validity time without a quota")
        w.delete(answer.seid, "deletion of validity time")


def framed(w):
    """FRRT: networks behind the UE."""
    routes = ie(153, b"10.99.1.0/24 0.0.0.0 1") + ie(155, b"2001:db8:99::/48 :: 1")
    pdrs = pdr_up(1, fteid(0x2601), "10.45.26.1", extra=routes)
    pdi = group(2, u8(20, 1), instance("internet"), ue_ip("10.45.26.1", destination=True), routes)
    pdrs += group(1, u16(56, 2), u32(29, 100), pdi, u32(108, 2))
    answer = open_session(w, 26, pdrs + far_up() + far_down(teid=0xa601), "framed routes")
    if answer is None:
        return
    for host in ("10.99.1.7", "2001:db8:99:5::7", "10.45.26.1"):
        equal(f"downlink to {host}", gnb_teid(w, w.down(host), f"downlink to {host}"), 0xa601)
        at_dn(w, w.up(0x2601, host), f"uplink of {host}")
    before = rows("drop").get("source-spoofed", 0)
    w.up(0x2601, "10.99.2.7")
    wait_until(lambda: rows("drop").get("source-spoofed", 0) == before + 1,
               "a source outside of the framed routes to be dropped")
    w.delete(answer.seid, "deletion of framed routes")


def addresses(w):
    """UEIP: the UPF chooses addresses; a released one is not given again at once. IP6PL: prefixes of another length
    than /64."""
    wish = lambda down: ie(93, bytes([0x30 | (4 if down else 0)]))
    def pdrs(teid):
        up = group(2, u8(20, 0), fteid(teid), instance("access"), wish(False))
        down = group(2, u8(20, 1), instance("internet"), wish(True))
        return (group(1, u16(56, 1), u32(29, 100), up, u8(95, 0), u32(108, 1))
                + group(1, u16(56, 2), u32(29, 100), down, u32(108, 2)))
    seen = set()
    for turn in range(2):
        answer = open_session(w, 27 + turn, pdrs(0x2701 + turn) + far_up() + far_down(teid=0xa701 + turn),
                              "UE address by the UPF")
        if answer is None:
            return
        given = {raw for c in map(inside, answer.ies.get(8, [])) for raw in c.get(93, [])}
        pair_ = {(g[1:5], g[5:21]) for g in given}
        if not check(len(pair_) == 1 and all(g[0] & 3 == 3 for g in given), f"UE addresses of created PDRs: {given}"):
            return
        v4, v6 = pair_.pop()
        v4, v6 = socket.inet_ntop(socket.AF_INET, v4), socket.inet_ntop(socket.AF_INET6, v6[:8] + b"\0" * 7 + b"\7")
        check(v4 not in seen and v6 not in seen, f"addresses given twice: {v4}, {v6}")
        seen |= {v4, v6}
        for ue in (v4, v6):
            at_dn(w, w.up(0x2701 + turn, ue), f"uplink of the chosen address {ue}")
            equal(f"downlink to the chosen {ue}", gnb_teid(w, w.down(ue), f"downlink to {ue}"), 0xa701 + turn)
        w.delete(answer.seid, "deletion of a session with a chosen address")
    prefix = lambda down: ie(93, bytes([0x41 | (4 if down else 0)]) + n4.ip6("2001:db8:45:ab00::") + bytes([56]))
    up = group(2, u8(20, 0), fteid(0x2711), instance("access"), prefix(False))
    down = group(2, u8(20, 1), instance("internet"), prefix(True))
    rules = (group(1, u16(56, 1), u32(29, 100), up, u8(95, 0), u32(108, 1))
             + group(1, u16(56, 2), u32(29, 100), down, u32(108, 2)))
    answer = open_session(w, 29, rules + far_up() + far_down(teid=0xa711), "a /56")
    if answer is None:
        return
    at_dn(w, w.up(0x2711, "2001:db8:45:abcd::1"), "uplink from the /56")
    equal("downlink into the /56", gnb_teid(w, w.down("2001:db8:45:abff::9"), "downlink into the /56"), 0xa711)
    before = rows("drop").get("source-spoofed", 0)
    w.up(0x2711, "2001:db8:45:ac00::1")
    wait_until(lambda: rows("drop").get("source-spoofed", 0) == before + 1, "a source beside the /56 to be dropped")
    w.delete(answer.seid, "deletion of the /56")


def copies(w):
    """DUPL: a copy goes to another tunnel; the original goes its way. Transport level marking is in the outer
    header."""
    duplicating = group(5, u8(42, 0), outer_header(0x7130, n4.GNB))
    uplink = group(3, u32(108, 1), u8(44, 0x12), group(4, u8(42, 1), instance("internet")), duplicating)
    down = group(3, u32(108, 2), u8(44, 2),
                 group(4, u8(42, 0), instance("access"), outer_header(0xb001, n4.GNB), u16(30, 0xb8fc)))
    answer = open_session(w, 30, pdr_up(1, fteid(0x3001), "10.45.30.1") + pdr_down(2, "10.45.30.1") + uplink + down,
                          "duplicates and marking")
    if answer is None:
        return
    mark = w.up(0x3001, "10.45.30.1")
    at_dn(w, mark, "the original")
    equal("TEID of the copy", gnb_teid(w, mark, "the copy"), 0x7130)
    mark = w.down("10.45.30.1")
    found = w.gnb.receive(lambda d: mark in d, 1, "downlink with transport level marking")
    equal("DSCP of the outer header", found and found[0][15] >> 2, 46)
    w.delete(answer.seid, "deletion of duplicates")


def marking(w):
    """QFI 42 is DSCP 34 on N3 and 18 on N6 (qfi_dscp); a FAR's Transport Level Marking comes first."""
    qer = group(7, u32(109, 1), u8(25, 0), u8(124, 42))
    answer = open_session(w, 33, pair(0x3301, "10.45.33.1", links=(u32(109, 1),)) + qer, "marking by QFI")
    if answer is None:
        return
    by_map = dscp(w, "10.45.33.1", 0x3301)
    w.modify(answer.seid, group(10, u32(108, 1), group(11, u16(30, 0x30fc)))
             + group(10, u32(108, 2), group(11, u16(30, 0xb8fc))), "marking")
    equal("DSCP on N3 and N6 by QFI, and by the FARs", (by_map, dscp(w, "10.45.33.1", 0x3301)), ((34, 18), (46, 12)))
    w.delete(answer.seid, "deletion of marking by QFI")


def dscp(w, ue, teid):
    """DSCP of what a G-PDU carries, twice each way: by the full nodes, and by the fast path."""
    got = []
    for _ in range(2):
        down, up = w.down(ue), w.up(teid, ue)
        got += [tuple(found and found[0][15] >> 2
                      for found in (w.gnb.receive(lambda d: down in d, 1, "marked downlink"),
                                                                w.dn.receive(lambda d: up in d, 1, "marked uplink")))]
    equal("DSCP by the fast path", got[1], got[0])
    return got[1]


def at_gate(wire, mark, way):
    """The packet is dropped at the closed gate, and does not come out. The gate may be changed after that alone."""
    wait_until(lambda: rows("drop").get(f"{way}-gate-closed") == 1, f"{way} packet to be dropped at the closed gate")
    check(wire.quiet(lambda d: mark in d, 0.1, f"{way} through the closed gate"), "gate")


def qos(w):
    """Gates; MBR with GBR; an MBR that two sessions share by QER Correlation ID."""
    qer = lambda kind, gate, *more: group(kind, u32(109, 1), u8(25, gate), *more)
    answer = open_session(w, 31, pair(0x3101, "10.45.31.1", links=(u32(109, 1),)) + qer(7, 4), "gates")  # UL closed
    if answer is None:
        return
    mark = w.up(0x3101, "10.45.31.1")
    gnb_teid(w, w.down("10.45.31.1"), "downlink through the open gate")
    at_gate(w.dn, mark, "uplink")
    w.modify(answer.seid, qer(14, 1), "UL open, DL closed")
    at_dn(w, w.up(0x3101, "10.45.31.1"), "uplink through the open gate")
    at_gate(w.gnb, w.down("10.45.31.1"), "downlink")
    w.delete(answer.seid, "deletion of gates")
    rate = lambda kbit: struct.pack(">Q", kbit)[3:]
    # 8 kbit/s, burst 16 KiB (the least): of 40 packets of 1000 bytes about 16 pass, whether one session sends them or
    # two.
    def passed(sessions, links):
        seids = []
        for n in range(sessions):
            more = links + ie(26, rate(8) + rate(0)) + (ie(27, rate(4) + rate(0)) if not links else b"")
            made = open_session(w, 32 + n,
                                pair(0x3201 + n, f"10.45.32.{n + 1}", links=(u32(109, 1),)) + qer(7, 0, more), "MBR")
            if made is None:
                return -1
            seids.append(made.seid)
        before = rows("drop").get("policer-uplink", 0)
        marks = [w.up(0x3201 + i % sessions, f"10.45.32.{i % sessions + 1}", 972) for i in range(40)]
        ours = lambda d: any(m[:12] in d for m in marks)

        def fate():
            w.dn.has(lambda d: False, 0)  # reads what has come
            return sum(map(ours, w.dn.waiting)) + rows("drop").get("policer-uplink", 0) - before
        wait_until(lambda: fate() == len(marks), "each packet to pass, or to be dropped by the policer")
        for seid in seids:
            w.delete(seid, "deletion of MBR")
        return len(w.dn.receive(ours, 1, "packets within the MBR"))
    for sessions, links, what in ((1, b"", "MBR and GBR of one session"),
                                  (2, u32(28, 77), "MBR shared by two sessions")):
        n = passed(sessions, links)
        check(14 <= n <= 24, f"{what}: {n} of 40 packets passed, expected about 17")


def inactive(w):
    """UPIR: a session without packets for so long is reported once."""
    answer = open_session(w, 34, pair(0x3401, "10.45.34.1") + u32(117, 2), "inactivity timer")
    if answer is None:
        return
    at_dn(w, w.up(0x3401, "10.45.34.1"), "uplink before the silence")
    report = report_with(w, 39, "user plane inactivity", test=lambda r: r.ies[39][0][0] & 8)
    check(report is not None, "no inactivity report")
    w.delete(answer.seid, "deletion of the inactive session")


def triggers(w):
    """Reports of URRs by themselves: time, period, start and stop of traffic, linked, monitoring time, events, holding
    time, volume of one direction; with packets in the measurement (MNOP)."""
    monitoring = int(time.time()) + EPOCH + 4
    urr = (lambda id_, method, trigger, *more:
           group(6, u32(81, id_), u8(62, method), ie(37, trigger.to_bytes(3, "little")), *more))
    limit = lambda kind, *v: ie(kind, bytes([(1 << len(v)) - 1]) + struct.pack(f">{len(v)}Q", *v))
    # Reporting Triggers (clause 8.2.19) are not all the same bits as the report's: LIUSA, VOLQU and EVETH stand
    # elsewhere.
    sessions = {
        36: urr(1, 1, TIMTH, u32(32, 2), u8(100, 8)) + urr(2, 2, PERIO, u32(64, 2), u8(100, 16)) +
            urr(3, 2, START | STOPT, u32(36, 2)) + urr(4, 2, 1 << 7, u32(82, 2)),
        37: urr(5, 2, VOLTH, limit(31, 1 << 30), u32(33, monitoring), limit(34, 1000))
        + urr(6, 2, QUHTI, limit(73, 1 << 30), u32(71, 3)) +
            urr(7, 4, 1 << 12, u32(149, 1)) + urr(8, 2, VOLTH, limit(31, 1 << 40, 400, 1 << 40)),
    }
    want = {1: TIMTH, 2: PERIO, 3: START | STOPT, 4: LIUSA, 5: MONIT, 6: QUHTI, 7: EVETH, 8: VOLTH}
    seen, usage, opened = dict.fromkeys(want, 0), {}, []
    w.smf.reports.clear()
    for number, urrs in sessions.items():
        first = 1 if number == 36 else 5
        links = tuple(u32(81, n) for n in range(first, first + 4))
        answer = open_session(w, number, pair(0x3500 + number, f"10.45.35.{number}", links=links) + urrs, "four URRs")
        if answer is None:
            return
        opened.append(answer.seid)
        for _ in range(4):
            at_dn(w, w.up(0x3500 + number, f"10.45.35.{number}", 72), "uplink counted by four URRs")

    def look():
        for r in list(w.smf.reports):
            for raw in r.ies.get(80, []):
                u = inside(raw)
                id_ = struct.unpack(">I", u[81][0])[0]
                seen[id_] |= trigger_of(raw)
                usage.setdefault(id_, []).append(u)
            w.smf.reports.remove(r)
        return all(seen[n] & bits == bits for n, bits in want.items())
    for _ in range(120):  # as Node.wait_locked
        if look():
            break
        with w.smf.changed:
            w.smf.changed.wait_for(lambda: w.smf.reports, 0.1)
    for n, bits in want.items():
        check(seen[n] & bits == bits, f"URR {n}: triggers {seen[n]:#x}, expected {bits:#x}")
    if usage.get(2):
        measured = [struct.unpack(">6Q", u[66][0][1:49]) for u in usage[2] if u[66][0][0] == 0x3f]
        equal("volume and packets of the periods (MNOP)", [sum(v) for v in zip(*measured)], [400, 400, 0, 4, 4, 0])
    if usage.get(1):
        check(67 in usage[1][0] and 66 not in usage[1][0], "URR 1 measures time alone")
    parted = [u[90][0] for u in usage.get(5, []) if 90 in u]
    for seid in opened:
        answer = w.delete(seid, "deletion of four URRs")
        parted += [u[90][0] for u in map(inside, answer.ies.get(79, [])) if 90 in u and u[81][0] == b"\0\0\0\5"]
    equal("usage information: before and after the monitoring time", parted, [b"\1", b"\2"])


def uniqueness(w):
    """TC_TEID_ID_UNIQUENESS_UPF (TS 33.513 clause 4.2.2.6): as many sessions as may be at once, every F-TEID and
    SEID another."""
    seids, teids, refused = [], [], None
    for n in range(450):
        answer = w.smf.establish(1000 + n,
                                 n4.rules_of(0, f"10.45.{100 + n // 200}.{n % 200 + 1}", down_teid=0xc000 + n))
        if answer is None or answer.cause != n4.ACCEPTED:
            refused = answer and answer.cause
            break
        seids.append(answer.seid)
        teids.append(answer.created().get(1))
    equal("sessions until the limit, its cause", (len(seids), refused), (400, n4.NO_RESOURCES))
    equal("different SEIDs and TEIDs", (len(set(seids)), len(set(teids)), None in teids, 0 in teids),
          (len(seids), len(seids), False, False))
    # TC_IPUPS_PACKET_HANDLING (clause 4.2.2.7): a tunnel of no session brings nothing to the data network.
    before = rows("drop").get("gtpu-teid-unknown", 0)
    marks = [w.up(t, "10.45.100.1") for t in [n for n in range(1, 400) if n not in teids][:50]]
    wait_until(lambda: rows("drop").get("gtpu-teid-unknown", 0) == before + len(marks),
               "packets of unknown tunnels to be dropped")
    check(w.dn.quiet(lambda d: any(m in d for m in marks), 0.2, "packets of unknown tunnels"),
          "TC_IPUPS_PACKET_HANDLING")
    for seid in seids:
        answer = w.smf.request(DELETE, b"", seid=seid)
        check(answer is not None and answer.cause == n4.ACCEPTED, f"deletion: {answer and answer.cause}")


def malformed(w):
    """TC_IPUPS_MALFORMED_MESSAGES (TS 33.513 clause 4.2.2.8): a G-PDU of a live tunnel cut at every length, and with
    every bit of its headers turned. No malformed one passes, and good ones do."""
    answer = open_session(w, 38, pair(0x3801, "10.45.38.1"), "session of the malformed packets")
    if answer is None:
        return
    before, mark = show("total"), b"never-to-pass"
    inner = IP(src="10.45.38.1", dst=n4.DN) / UDP(sport=40001, dport=40002) / Raw(mark)
    good = bytes(GTP_U_Header(teid=0x3801, gtp_type=255) / GTPPDUSessionContainer(type=1, QFI=9) / inner)
    outer = Ether(src=w.gnb.mac, dst=w.mac["n3"]) / IP(src=n4.GNB, dst=n4.N3) / UDP(sport=2152, dport=2152)
    cuts = [good[:n] for n in range(len(good))]
    for cut in cuts:
        w.gnb.send(outer / Raw(cut))
    check(w.dn.quiet(lambda d: mark in d, 0.3, "a cut packet"), "TC_IPUPS_MALFORMED_MESSAGES")
    dropped = lambda: show("total")["dropped"] - before["dropped"]
    wait_until(lambda: dropped() >= len(cuts), f"{len(cuts)} cut packets to be dropped, {dropped()} are")
    for bit in range(16 * 8):  # of the GTP-U header and its extension: some of these are good packets
        turned = bytearray(good)
        turned[bit // 8] ^= 1 << bit % 8
        w.gnb.send(outer / Raw(bytes(turned)))
    at_dn(w, w.up(0x3801, "10.45.38.1"), "a good packet after the malformed ones")
    gnb_teid(w, w.down("10.45.38.1"), "a good downlink packet after the malformed ones")
    w.delete(answer.seid, "deletion after the malformed packets")


def ports(w):
    """TC_BVT_PORT_SCANNING (TS 33.117 clause 4.4.2): PFCP on N4 is the only port that is open; the data plane's
    addresses offer none."""
    out = subprocess.run(["nsenter", "--net=/run/netns/gateway", "ss", "-Htuln"], capture_output=True, text=True,
                         check=True).stdout
    equal("listening sockets", [tuple(line.split()[i] for i in (0, 4)) for line in out.splitlines()],
          [("udp", f"{n4.UPF_N4}:8805")])
    scanned = (20, 22, 23, 25, 53, 80, 111, 123, 161, 179, 443, 2123, 2152, 3868, 5060, 8080, 8805, 9090, 38412)
    for wire, us, to, name in ((w.gnb, n4.GNB, n4.N3, "n3"), (w.dn, n4.DN, "10.60.0.1", "n6")):
        head = Ether(src=wire.mac, dst=w.mac[name]) / IP(src=us, dst=to)
        for port in scanned:
            wire.send(head / TCP(sport=44444, dport=port, flags="S"),
                      head / UDP(sport=44444, dport=port) / Raw(b"scan"))
        answered = (lambda d, us=us: len(d) > 37 and d[12:14] == b"\x08\0" and d[30:34] == n4.ip4(us)
                    and d[23] in (6, 17) and d[36:38] == b"\xad\x9c")
        check(wire.quiet(answered, 0.5, f"an answer to the scan of {to}"), f"open ports at {to}")


def plain_access(w):
    """UEs of plain IP (`lookup: source`) on a port without endpoints: both ways, and from UE to UE by the other's
    downlink rules."""
    ues = ("10.46.0.1", "10.46.0.2")

    def rules(ue, action=2):
        up = group(1, u16(56, 1), u32(29, 100), group(2, u8(20, 0), instance("lan"), ue_ip(ue)), u32(108, 1))
        return (up + pdr_down(2, ue) + far_up()
                + group(3, u32(108, 2), u8(44, action), group(4, u8(42, 0), instance("lan"))))

    def send(source, destination):
        mark = w.mark(100)
        head = Ether(src=w.lan.mac, dst=w.mac["lan"]) / IP(src=source, dst=destination, ttl=17)
        w.lan.send(head / UDP(sport=40001, dport=40002) / Raw(mark))
        return mark

    def arrives(mark, what):
        w.lan.receive(lambda d: mark in d and d[22] < 17, 1, what)  # hop limit: not what was sent here

    w.lan = Wire("lan0")
    made = [open_session(w, 460 + n, rules(ue), f"session of {ue}") for n, ue in enumerate(ues)]
    if None in made:
        return
    at_dn(w, send(ues[0], n4.DN), "uplink of plain IP")
    arrives(w.down(ues[0]), "downlink to plain IP")
    arrives(send(ues[0], ues[1]), "from UE to UE")
    w.modify(made[1].seid, group(10, u32(108, 2), u8(44, 1)), "the second UE's downlink is dropped")
    before = rows("drop").get("downlink-far-drop", 0)
    send(ues[0], ues[1])
    wait_until(lambda: rows("drop").get("downlink-far-drop", 0) == before + 1, "the downlink rule of the second UE")
    for answer in made:
        w.delete(answer.seid, "deletion of a session of plain IP")


def main():
    w = World()
    names = sys.argv[1:]
    for row in (features, choose, no_pdrs, detection, redirect, paging, endpoints, quota_actions, framed, addresses,
                copies, marking, qos, inactive, triggers, uniqueness, malformed, ports, plain_access):
        if not names or row.__name__ in names:
            at = time.monotonic()
            row(w)
            print(f"{row.__name__}: {time.monotonic() - at:.1f} s", flush=True)
    check_sum("end")
    equal("sessions left", show("total")["sessions"], 0)
    remarks = n4.tshark_remarks(f"{DIR}/n4.pcap")
    check(not remarks, f"tshark's remarks about PFCP: {sorted(set(remarks))[:10]}")
    done("rules")


if __name__ == "__main__":
    sys.exit(main())
