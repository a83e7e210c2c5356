# SPDX-License-Identifier: Apache-2.0
"""Rows P1-P34 and A1-A13 of the table of hostile inputs, sent to a running UPF over UDP.

After every row exactly one reason in `rejected` of `show n4` rose, by the number of bad messages. Both processes are
the same, the next heartbeat is answered, and the good session's packets pass in both directions. The
number of sessions is unchanged. At the end the number of buffers in use is, too. Causes are those of the tables, or of
TS 29.244 §7.6 and §8.2.1 where the tables leave them open.

Argument "names": row A3 where any peer may associate, and A13 with more SEIDs. Argument "chosen": the rows for a UP
function that chooses F-TEIDs itself, and has no IPv6 endpoint (P16, P18)."""

import contextlib

import json
import os
import random
import re
import socket
import struct
import subprocess
import sys
import time

import n4
from frames import DIR, Wire, check, check_sum, done, drops, equal, show, wait_pass, wait_until
from n4 import (ASSOCIATION_SETUP, DELETE, ESTABLISH, HEARTBEAT, MODIFY, Node, choose_fteid, far_down, far_up, fseid,
                fteid, group, ie,
                instance, message, node_id, outer_header, pdr_down, pdr_up, recovery, rules_of, sdf, u8, u16, u32,
                ue_ip)
from scapy.all import IP, UDP, Ether, Raw
from scapy.contrib.gtp import GTP_U_Header, GTPPDUSessionContainer

UE, TEID = "10.45.0.1", 0x1001


# `show n4`'s names of refusals by cause.
REASON = {64: "rejected", 65: "session-not-found", 66: "mandatory-ie-missing", 67: "conditional-ie-missing",
          68: "invalid-length",
          69: "mandatory-ie-incorrect", 70: "invalid-forwarding-policy", 71: "invalid-fteid-allocation",
          73: "rule-failure", 75: "no-resources", 76: "service-not-supported"}
PDR, FAR, QER, URR = range(4)  # types of Failed Rule ID (TS 29.244 §8.2.80)


def risen(now, before):
    return {k: v - before.get(k, 0) for k, v in now.items() if v != before.get(k, 0)}


def status():
    """The control plane's own state, available even while the data plane is away (exit status 1)."""
    out = subprocess.run([os.environ["BIN"] + "/isthmus", "status", "-j"], capture_output=True, text=True,
                         check=False).stdout
    return json.loads(out) if out.startswith("{") else {"pid": 0, "dp_pid": 0, "data_plane": "unknown"}


class World:
    def __init__(self, chosen_here=False):
        self.gnb, self.dn = Wire("gnb0"), Wire("dn0")
        self.mac = {port["name"]: port["mac"] for port in show("port")}
        self.smf = Node(n4.SMF1, "smf1.isthmus.test")
        answer = self.smf.associate()
        equal("association", answer and answer.cause, n4.ACCEPTED)
        answer = self.smf.establish(1, rules_of(0 if chosen_here else TEID, UE))
        equal("good session", answer and answer.cause, n4.ACCEPTED)
        self.good = answer.seid
        self.teid = answer.created()[1] if chosen_here else TEID
        self.number = 0
        state = status()
        self.pids = state["pid"], state["dp_pid"]
        self.sessions = self.count()

    def count(self):
        return show("total")["sessions"]

    def uplink(self, teid=None, source=UE, destination=n4.DN, count=1):
        for _ in range(count):
            self.number += 1
            packet = (IP(src=source, dst=destination, ttl=17) / UDP(sport=40001, dport=40002)
                      / Raw(struct.pack(">IQ", 0x15715715, self.number)))
            gtpu = (GTP_U_Header(teid=self.teid if teid is None else teid, gtp_type=255)
                    / GTPPDUSessionContainer(type=1, QFI=9))
            self.gnb.send(Ether(src=self.gnb.mac, dst=self.mac["n3"]) / IP(src=n4.GNB, dst=n4.N3)
                          / UDP(sport=2152, dport=2152) / gtpu / packet)
        return struct.pack(">IQ", 0x15715715, self.number)

    def downlink(self):
        self.number += 1
        mark = struct.pack(">IQ", 0x15715715, self.number)
        self.dn.send(Ether(src=self.dn.mac, dst=self.mac["n6"]) / IP(src=n4.DN, dst=UE, ttl=17)
                         / UDP(sport=40002, dport=40001) / Raw(mark))
        return mark

    def traffic(self, what):
        up, down = self.uplink(), self.downlink()
        self.dn.receive(lambda d: up in d, 1, f"{what}: uplink of the good session")
        self.gnb.receive(lambda d: down in d, 1, f"{what}: downlink of the good session")

    @contextlib.contextmanager
    def row(self, what, reason, count=1, sessions=None):
        """Bad messages, `count` of them, of which each raises this reason, and nothing else does."""
        want = {reason: count} if reason else {}
        before = show("n4")["rejected"]
        yield
        rose = lambda: risen(show("n4")["rejected"], before)
        wait_until(lambda: sum(rose().values()) >= count, f"{what}: {count} counted", 5)
        equal(f"{what}: counted", rose(), want)
        self.unharmed(what, sessions)

    def unharmed(self, what, sessions=None):
        state = status()
        equal(f"{what}: processes", (state["pid"], state["dp_pid"]), self.pids)
        check(self.smf.heartbeat() is not None, f"{what}: no heartbeat answered")
        self.traffic(what)
        equal(f"{what}: sessions", self.count(), self.sessions if sessions is None else sessions)


def answered(what, answer, cause, offending=None, rule=None):
    """The answer has the cause, and names the IE and the rule."""
    if check(answer is not None, f"{what}: no answer"):
        got = answer.cause, answer.offending if offending else None, answer.failed_rule if rule else None
        equal(f"{what}: cause, offending IE, failed rule", got, (cause, offending, rule))


def establish_rows(w):
    """Bad establishments: (row, body, cause, offending IE, failed rule)."""
    node, cp = node_id(w.smf.name), fseid(77, w.smf.address)
    good = rules_of(0x2001, "10.45.0.77")
    up, down, fars = pdr_up(1, fteid(0x2001), "10.45.0.77"), pdr_down(2, "10.45.0.77"), far_up() + far_down()
    bare_pdi = (lambda *parts, more=b"":
                group(1, u16(56, 1), u32(29, 100), group(2, *parts), u8(95, 0), u32(108, 1), more))
    qer = lambda id_, extra=b"": group(7, u32(109, id_), u8(25, 0), extra)
    urr = lambda id_, extra=b"": group(6, u32(81, id_), u8(62, 2), ie(37, b"\x02\x00"), extra)
    bad_far = lambda *parts: group(3, u32(108, 2), u8(44, 2), group(4, u8(42, 0), *parts))
    sdf_pdr = lambda text: pdr_up(1, fteid(0x2001), "10.45.0.77", extra=sdf(text)) + down + fars
    yield "P10 no node id", cp + good, 66, 60, None
    yield "P10 no CP F-SEID", node + good, 66, 57, None
    yield "P11 no PDR", node + cp + fars, 66, 1, None
    yield "P11 nothing", node + cp, 66, 1, None
    yield "P12 PDN type 0", node + cp + u8(113, 0) + good, 69, 113, None
    yield ("P13 PDR without FAR", node + cp
           + group(1, u16(56, 1), u32(29, 1), group(2, u8(20, 0), fteid(0x2001)), u8(95, 0)) + fars, 67, 108, None)
    yield "P14 PDI without source", node + cp + bare_pdi(fteid(0x2001)) + fars, 66, 20, None
    yield "P15 F-TEID too long", node + cp + bare_pdi(u8(20, 0), ie(21, b"\x01" + bytes(60))) + fars, 68, 21, None
    yield "P15 F-TEID empty", node + cp + bare_pdi(u8(20, 0), ie(21)) + fars, 68, 21, None
    yield "P17 TEID 0", node + cp + pdr_up(1, fteid(0), "10.45.0.77") + down + fars, 69, 21, None
    yield ("P17 F-TEID of another address", node + cp + pdr_up(1, fteid(0x2001, "10.9.9.9"), "10.45.0.77") + down
           + fars, 73, 21, (PDR, 1))
    yield "P19 outer header empty", node + cp + up + down + far_up() + bad_far(ie(84)), 68, 84, None
    yield ("P19 outer header without address", node + cp + up + down + far_up()
           + bad_far(ie(84, b"\x01\x00\x00\x00\x00\x01")), 68, 84, None)
    yield ("P19 outer header cut", node + cp + up + down + far_up()
           + bad_far(ie(84, b"\x01\x00\x00\x00\x00\x01\x0a\x1e")), 68, 84, None)
    yield ("P21 destination 0x99", node + cp + up + down + far_up()
           + group(3, u32(108, 2), u8(44, 2), group(4, u8(42, 0x99))), 69, 42, None)
    for name, text in (("permit", "permit"), ("unknown action", "unknown action aaaaaaaa"),
                       ("prefix /33", "permit out ip from 1.2.3.4/33 to assigned"),
                       ("port 65536", "permit out 17 from any 65536 to assigned"),
                       ("range reversed", "permit out 17 from any 90-80 to assigned"),
                       ("not UTF-8", b"permit out ip from \xff\xfe to assigned"),
                       ("long", "permit out ip from any to assigned" + " " * 60000)):
        yield f"P22 {name}", node + cp + sdf_pdr(text), 73, 23, (PDR, 1)
    yield ("P22 flow length 0xffff", node + cp
           + pdr_up(1, fteid(0x2001), "10.45.0.77", extra=ie(23, b"\x01\x00\xff\xffpermit")) + down + fars, 73, 23,
           (PDR, 1))
    yield "P23 MBR of 3 bytes", node + cp + good + qer(1, ie(26, b"\x00\x01\x02")), 68, 26, None
    yield "P23 dropped traffic threshold cut", node + cp + good + urr(1, ie(72, b"\x03\x00\x00")), 68, 72, None
    yield "P25 five QERs of four", node + cp + good + b"".join(qer(i) for i in range(1, 6)), 75, None, None
    yield ("P25 33 PDRs", node + cp + good + b"".join(pdr_up(i, fteid(0x3000 + i), "10.45.0.77") for i in range(3, 34)),
           75, None, None)
    yield "P25 17 FARs of 16", node + cp + good + b"".join(far_up(i) for i in range(3, 18)), 75, None, None
    yield "P25 nine URRs of eight", node + cp + good + b"".join(urr(i) for i in range(1, 10)), 75, None, None
    yield "P26 a thousand URRs", node + cp + good + b"".join(urr(i) for i in range(1, 1001)), 75, None, None
    yield "P27 PDR twice", node + cp + up + up + down + fars, 73, 1, (PDR, 1)
    yield "P27 FAR twice", node + cp + up + down + fars + far_up(), 73, 3, (FAR, 1)
    yield "P27 QER twice", node + cp + good + qer(1) + qer(1), 73, 7, (QER, 1)
    yield "P27 URR twice", node + cp + good + urr(1) + urr(1), 73, 6, (URR, 1)
    yield "P27 unknown FAR", node + cp + pdr_up(1, fteid(0x2001), "10.45.0.77", far=99) + down + fars, 73, 108, (PDR, 1)
    yield ("P27 unknown QER", node + cp + bare_pdi(u8(20, 0), fteid(0x2001), more=u32(109, 9)) + down + fars, 73, 109,
           (PDR, 1))
    yield ("P27 unknown URR", node + cp + bare_pdi(u8(20, 0), fteid(0x2001), more=u32(81, 9)) + down + fars, 73, 81,
           (PDR, 1))
    yield "P33 apply action 0", node + cp + up + down + far_up(action=0) + far_down(), 69, 44, None
    yield "P33 drop and forward", node + cp + up + down + far_up(action=3) + far_down(), 69, 44, None
    yield ("A5 UE address of a live session", node + cp + pdr_up(1, fteid(0x2001), UE) + pdr_down(2, UE) + fars, 73, 93,
           (PDR, 2))
    yield "F-TEID of a live session", node + cp + pdr_up(1, fteid(TEID), "10.45.0.77") + down + fars, 73, 21, (PDR, 1)
    yield ("header enrichment", node + cp + up + down + far_up()
           + bad_far(outer_header(1, n4.GNB), ie(98, b"\x00\x01a\x01b")), 76, 98, None)


def after_refusal(w, what):
    """GTP-U for the session that was refused: one counted drop of an unknown TEID a packet, nothing passes (P13,
    P21)."""
    before = drops()
    mark = w.uplink(0x2001, "10.45.0.77", count=5)
    rose = lambda: risen(drops(), before)
    wait_until(lambda: sum(rose().values()) >= 5, f"{what}: its packets to be dropped")
    equal(f"{what}: packets dropped", rose(), {"gtpu-teid-unknown": 5})
    w.traffic(what)
    check(not any(mark in d for d in w.dn.waiting), f"{what}: a packet of the refused session passed")


def repeated_row(w):
    """P20: P19 twice on one session, then a while, then its deletion: the second one, and the deletion, find nothing
    broken."""
    answer = w.smf.establish(20, rules_of(0x2020, "10.45.0.20"))
    answered("P20 establish", answer, n4.ACCEPTED)
    bad = group(10, u32(108, 2), group(11, ie(84, b"\x01\x00\x00\x00\x00\x01\x0a\x1e")))
    with w.row("P20", REASON[68], 2, w.sessions + 1):
        for what in ("P20 first", "P20 second"):
            answered(what, w.smf.request(MODIFY, bad, seid=answer.seid), 68, 84)
    wait_pass(1.5)
    answered("P20 delete", w.smf.request(DELETE, b"", seid=answer.seid), n4.ACCEPTED)
    w.unharmed("P20 deleted")


def node_rows(w):
    """P1-P9: node messages, at the second configured peer's address, which is not associated."""
    other = Node(n4.SMF2, "smf2.isthmus.test")
    with w.row("P1", REASON[66]):
        answered("P1", other.associate(recovery(1.7e9)), 66, 60)
    with w.row("P2", REASON[66]):
        answered("P2", other.associate(node_id(other.name)), 66, 96)
    for what, body in (("P3", b""), ("P4 length 0", ie(96)), ("P4 length 3", ie(96, b"\0\0\0")),
                       ("P4 length 5", ie(96, bytes(5)))):
        with w.row(what, "heartbeat-malformed"):
            w.smf.send(message(HEARTBEAT, body, 8))
        with w.row(f"{what}, response", "response-unmatched"):
            w.smf.send(message(2, body, 9))
    vendor = ie(0x8001, b"\x0d\xe9hello") + ie(0x8002, b"\x01")
    with w.row("P5", None, 0):
        answer = w.smf.request(HEARTBEAT, vendor + recovery(w.smf.started) + ie(0x7001, b"x"))
        equal("P5: kind of the answer", answer and answer.kind, 2)
    lengths = (11, 13, 7, 9, 0, 65535)
    with w.row("P6", "length", len(lengths)):
        for length in lengths:
            w.smf.send(message(HEARTBEAT, recovery(1), 0xffffff, length=length))
    for sequence in (0, 0xffffff):
        answer = w.smf.request(HEARTBEAT, recovery(w.smf.started), sequence=sequence)
        equal("P6: kind of the answer", answer and answer.kind, 2)
    with w.row("P7", REASON[68]):
        answered("P7", other.associate(node_id(other.name) + struct.pack(">HH", 96, 40) + b"\0\0\0\0"), 68, 96)
    deep = b""
    for _ in range(50):
        deep = group(1, deep)
    for what, body, cause in (("P8 deep", deep, 68), ("P8 length 0xffff", struct.pack(">HH", 1, 0xffff), 68)):
        with w.row(what, REASON[cause]):
            answered(what, w.smf.request(ESTABLISH, w.smf.establish_body(5, body), seid=0), cause)
    with w.row("P9 version", "version"):
        answer = w.smf.request(0, b"", sequence=4242, raw=message(HEARTBEAT, recovery(1), 4242, version=2))
        equal("P9: version 2 is answered by", answer and answer.kind, 11)
    with w.row("P9 short", "too-short"):
        w.smf.send(b"\x20\x01")
    with w.row("P9 type", "unknown-type"):
        w.smf.send(message(200, b"", 5))
    other.close()


def modification_rows(w):
    modify = lambda body, seid=None, **more: w.smf.request(MODIFY, body, seid=w.good if seid is None else seid, **more)
    # One valid change (the downlink now drops) and an invalid one: neither may happen.
    drop = group(10, u32(108, 2), u8(44, 1))
    before = show("session")
    for what, body, cause, offending, rule in (
            ("P28 remove PDR", group(15, u16(56, 99)), 73, None, (PDR, 99)),
            ("P28 update PDR", group(9, u16(56, 99), u32(29, 5)), 73, None, (PDR, 99)),
            ("P28 remove QER", group(18, u32(109, 99)), 73, None, (QER, 99)),
            ("P28 remove URR", group(17, u32(81, 99)), 73, None, (URR, 99)),
            ("P28 query URR", group(77, u32(81, 99)), 73, None, (URR, 99)),
            ("P28 update QER", group(14, u32(109, 99)), 73, None, (QER, 99)),
            ("P29", group(1, u16(56, 9)), 66, 29, None),
            ("P30", drop + group(9, u16(56, 99), u32(29, 5)), 73, None, (PDR, 99)),
            ("P30 bad IE", drop + group(10, u32(108, 1), group(11, ie(84, b"\x01"))), 68, 84, None)):
        with w.row(what, REASON[cause]):
            answered(what, modify(body), cause, offending, rule)
    same = lambda rows_: [{k: v for k, v in r.items() if not any(x in k for x in ("packets", "bytes"))} for r in rows_]
    equal("P28-P30: the session", same(show("session")), same(before))
    with w.row("P31", REASON[65], 6):
        for seid in (0, 1 << 63, (1 << 64) - 1):
            answered(f"P31 modify {seid:x}", modify(drop, seid=seid), 65)
            answered(f"P31 delete {seid:x}", w.smf.request(DELETE, b"", seid=seid), 65)
    with w.row("P32", "response-unmatched", 2):
        w.smf.send(message(57, b"", 77, w.good))
        w.smf.send(message(57, u8(19, 1), 78, 12345))


def urr_row(w):
    """P24: a threshold of zero would be a report a packet, and is refused; the id and ISTM alone are accepted, and have
    no effect."""
    urr = lambda volume, seconds: group(6, u32(81, 65535), u8(62, 3), ie(37, b"\x06\x00"), u8(100, 8),
                                        ie(31, b"\x01" + struct.pack(">Q", volume)), u32(32, seconds))
    rules = lambda *thresholds: rules_of(0x2401, "10.45.0.24") + urr(*thresholds)
    for what, thresholds, offending in (("P24 volume", (0, 60), 31), ("P24 time", (1 << 30, 0), 32)):
        with w.row(what, REASON[69]):
            answered(what, w.smf.establish(24, rules(*thresholds)), 69, offending)
    with w.row("P24", None, 0):
        answer = w.smf.establish(24, rules(1 << 30, 3600))
        answered("P24", answer, n4.ACCEPTED)
        w.smf.reports.clear()
        w.uplink(0x2401, "10.45.0.24", count=20)
        wait_pass(2)
        equal("P24: reports of 20 packets", [r.ies for r in w.smf.reports if r.kind == n4.REPORT], [])
        answered("P24 delete", w.smf.request(DELETE, b"", seid=answer.seid), n4.ACCEPTED)


def fragmented(w):
    """P34: datagrams that IP must take apart: 3, 8 and 20 fragments, and 64 kB."""
    with w.row("P34", None, 0):
        for size in (4000, 11000, 29000, 60000):
            answer = w.smf.request(HEARTBEAT, recovery(w.smf.started) + ie(0x7001, bytes(size)))
            equal(f"P34: heartbeat of {size} bytes", answer and answer.kind, 2)


def unknown_peers(w, unknown, other):
    """A1-A3: who may associate."""
    with w.row("A1", "peer-not-allowed"):
        answered("A1", unknown.associate(), 64)
    unknown.name, other.name = w.smf.name, w.smf.name
    with w.row("A2", "peer-not-allowed", 2):
        answered("A2: the live SMF's node id from an unknown address", unknown.associate(), 64)
        answered("A2: the live SMF's node id from another's address", other.associate(), 64)
    other.name = "smf2.isthmus.test"
    with w.row("A3", "peer-not-allowed", 200):
        for i in range(200):
            unknown.send(message(ASSOCIATION_SETUP, node_id(f"n{i}.evil.test") + recovery(1.7e9), 10000 + i))
    answered("A3: the second SMF still associates", other.associate(), n4.ACCEPTED)


def endless(w, other):
    """A6: sessions that are never deleted; returns those that were made."""
    made, answer = [], None
    with w.row("A6", REASON[75], 1, w.sessions + 400):
        for i in range(600):
            answer = other.establish(1000 + i, rules_of(0, f"10.45.{8 + i // 200}.{i % 200 + 1}", down_teid=0xa000 + i))
            if answer is None or answer.cause != n4.ACCEPTED:
                break
            made.append(answer.seid)
        answered("A6", answer, 75)
    equal("A6: sessions of one association", len(made), 400)
    return made


def forged(w, unknown, sessions):
    """A7: a newer time stamp, from an unknown address and, spoofed, from the SMF's own, causes a heartbeat and is not
    believed."""
    before = show("n4")["events"]
    with w.row("A7", None, 0, sessions):
        unknown.send(message(HEARTBEAT, recovery(time.time() + 100), 5))
        spoofed = message(HEARTBEAT, recovery(time.time() + 100), 6)
        Wire("smf0").send(Ether(src=w.dn.mac, dst=neighbour_mac()) / IP(src=n4.SMF1, dst=n4.UPF_N4)
                          / UDP(sport=5555, dport=8805) / Raw(spoofed))
        unconfirmed = lambda: risen(show("n4")["events"], before).get("restart-not-confirmed", 0)
        wait_until(lambda: unconfirmed() == 1, "A7: the SMF to be asked")
    check("peer-restarted" not in risen(show("n4")["events"], before), "A7: the forged time stamp was believed")


def repeated(w, other, made):
    """A8: a request three times, the same number from another peer, a response to nothing."""
    body = w.smf.establish_body(800, rules_of(0x8001, "10.45.0.80"))
    before = show("n4")["events"]
    with w.row("A8", None, 0, w.sessions + 401):
        first = w.smf.request(ESTABLISH, body, seid=0, sequence=70000)
        answered("A8", first, n4.ACCEPTED)
        again = [w.smf.request(ESTABLISH, body, seid=0, sequence=70000) for _ in range(2)]
        check(all(a is not None and a.data == first.data for a in again),
              "A8: a repeated request is not answered alike")
    equal("A8: answers from the cache", risen(show("n4")["events"], before).get("answered-from-cache"), 2)
    answered("A8: the other peer makes room", other.request(DELETE, b"", seid=made.pop()), n4.ACCEPTED)
    with w.row("A8 from another peer", None, 0, w.sessions + 401):
        theirs = other.establish(999, rules_of(0, "10.45.0.81", down_teid=0xafff), sequence=70000)
        answered("A8 from another peer", theirs, n4.ACCEPTED)
    check(theirs.seid != first.seid, "A8: the other peer got the first one's session")
    made.append(theirs.seid)
    answered("A8 delete", w.smf.request(DELETE, b"", seid=first.seid), n4.ACCEPTED)
    with w.row("A8 response to nothing", "unexpected-type", 1, w.sessions + 400):
        other.send(message(51, u8(19, 1), 70000, 1))


def floods(w, unknown, other, made):
    """A9, A10: each message is carried out, or counted as what became of it."""
    sessions, count = w.sessions + len(made), 3000
    state = lambda: (lambda n: {**n["rejected"], "lost": n["lost"]})(show("n4"))
    before = state()
    for i in range(count):
        other.send(message(MODIFY, group(10, u32(108, 99)), 100000 + i, made[i % len(made)]))
    check(w.smf.heartbeat() is not None, "A9: no heartbeat answered beside the burst")
    wait_until(lambda: sum(risen(state(), before).values()) >= count, "A9: all messages to be counted")
    rose = risen(state(), before)
    equal("A9: messages counted", sum(rose.values()), count)
    check(set(rose) <= {REASON[73], "congestion", "session-layer-congestion", "queue-full", "transactions-full",
                        "lost"}, f"A9: counted {rose}")
    w.unharmed("A9", sessions)
    wait_pass(1)  # unknown peers have a second's worth of answers again
    unknown.answers.clear()
    before, began, count = state(), time.monotonic(), 5000
    for i in range(count):
        unknown.send(message(HEARTBEAT, recovery(1.7e9), i))
    fate = lambda: sum(risen(state(), before).values()) + len(unknown.answers)
    wait_until(lambda: fate() >= count, "A10: all heartbeats to be answered or counted")
    took = time.monotonic() - began
    equal("A10: heartbeats answered or counted", fate(), count)
    rose = risen(state(), before)
    check(set(rose) <= {"rate-unknown-peers", "lost"} and "rate-unknown-peers" in rose, f"A10: counted {rose}")
    check(1000 <= len(unknown.answers) <= 1000 * (1 + took) + 100,
          f"A10: {len(unknown.answers)} answered in {took:.2f} s at 1000 a second")
    w.unharmed("A10", sessions)


def from_the_ue(w, sessions):
    """A11: packets of a UE to our own addresses: N4, N3 and N6."""
    before = drops()
    rose = lambda: risen(drops(), before)
    for destination in (n4.UPF_N4, n4.N3, "10.60.0.1"):
        w.uplink(destination=destination)
    wait_until(lambda: sum(rose().values()) >= 3, "A11: three packets to be dropped", 2)
    equal("A11: packets of a UE to the gateway's own addresses", rose(), {"subscriber-to-gateway": 3})
    w.unharmed("A11", sessions)


def guessing(w, sessions):
    """A13: SEIDs and TEIDs in a row hit nothing and are counted. The alarm goes by their rate: n4 TestGuessing."""
    before = drops()
    rose = lambda: risen(drops(), before)
    with w.row("A13", REASON[65], 2000, sessions):
        for i in range(2000):
            w.smf.send(message(MODIFY, b"", 200000 + i, i + 1))
            w.uplink(teid=0x500000 + i)
            if i % 100 == 99:  # a busy machine's ring of received frames holds a few hundred
                wait_until(lambda: sum(rose().values()) > i, "A13: packets to unknown TEIDs to be dropped")
    equal("A13: packets dropped", rose(), {"gtpu-teid-unknown": 2000})


def scrape(source):
    """The metrics as an address of the host gets them, None when it does not."""
    try:
        with socket.create_connection((n4.UPF_N4, 9464), 5, (source, 0)) as s:
            s.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            return b"".join(iter(lambda: s.recv(65536), b"")).decode()
    except OSError:
        return None


def connections(w, sessions):
    """Connections to the metrics' port that send nothing, half of a request, or no second one. Their number stays
    bounded, and new clients are served beside them."""
    descriptors = lambda: len(os.listdir(f"/proc/{w.pids[0]}/fd"))
    before, held = descriptors(), []
    for said in (b"", b"GET /metrics HTTP/1.1\r\nHost: x\r\n", b"GET /none HTTP/1.1\r\nHost: x\r\n\r\n"):
        for _ in range(100):
            held.append(socket.create_connection((n4.UPF_N4, 9464), 5, (n4.UNKNOWN, 0)))
            with contextlib.suppress(OSError):  # closed already
                held[-1].sendall(said)
    refused = lambda: re.search(r'^isthmus_refused_connections_total{listener="metrics"} (\d+)', scrape(n4.SMF1) or "",
                                re.M)
    wait_until(lambda: (found := refused()) and int(found[1]) >= 200,
               "connections: those above the bound to be closed and counted", 10)
    check(descriptors() <= before + 16, f"connections: {descriptors() - before} more descriptors")
    w.unharmed("connections", sessions)
    for s in held:
        s.close()
    wait_until(lambda: descriptors() <= before + 2, "connections: descriptors to be given back", 10)


def dataplane_clients(w, sessions):
    """Silent clients of the data plane's own socket, or with half a message, do not keep their places."""
    held = []
    for i in range(40):
        held.append(socket.socket(socket.AF_UNIX))
        held[-1].connect(f"{DIR}/dp.sock")
        held[-1].settimeout(30)
        if i % 2:
            with contextlib.suppress(OSError):  # turned away
                held[-1].sendall(b"I")
    with contextlib.suppress(ConnectionResetError):
        check(all(s.recv(1) == b"" for s in held), "data plane's socket: something was answered")
    w.unharmed("data plane's socket", sessions)
    for s in held:
        s.close()


def attacks(w):
    unknown, other = Node(n4.UNKNOWN, "evil.isthmus.test"), Node(n4.SMF2, "smf2.isthmus.test")
    unknown_peers(w, unknown, other)
    with w.row("A4", REASON[65], 2):
        answered("A4 modify", other.request(MODIFY, group(10, u32(108, 2), u8(44, 1)), seid=w.good), 65)
        answered("A4 delete", other.request(DELETE, b"", seid=w.good), 65)
    made = endless(w, other)
    sessions = w.sessions + len(made)
    forged(w, unknown, sessions)
    repeated(w, other, made)
    floods(w, unknown, other, made)
    from_the_ue(w, sessions)
    guessing(w, sessions)
    connections(w, sessions)
    dataplane_clients(w, sessions)
    answered("A12 release", other.request(n4.ASSOCIATION_RELEASE, node_id(other.name), seconds=5), n4.ACCEPTED)
    wait_until(lambda: w.count() == w.sessions, "A12: sessions of the released association to go", 10)
    w.unharmed("A12")
    other.close()
    unknown.close()


def neighbour_mac():
    subprocess.run(["ping", "-c1", "-W1", n4.UPF_N4], capture_output=True, check=False)
    out = subprocess.run(["ip", "neigh", "show", n4.UPF_N4, "dev", "smf0"], capture_output=True, text=True,
                         check=True).stdout
    return out.split("lladdr ")[1].split()[0]


def chosen():
    """P16, P18: F-TEIDs are ours to choose, and there are none of IPv6."""
    w = World(chosen_here=True)
    down, fars = pdr_down(2, "10.45.0.77"), far_up() + far_down()
    for what, tunnel, cause in (("P16", choose_fteid(v4=False, v6=True), 75), ("P18", fteid(0x2001), 71)):
        with w.row(what, REASON[cause]):
            body = w.smf.establish_body(77, pdr_up(1, tunnel, "10.45.0.77") + down + fars)
            answered(what, w.smf.request(ESTABLISH, body, seid=0), cause, 21, (PDR, 1))
    check_sum("after all rows")
    done("hostile PFCP, F-TEIDs chosen here")


def names():
    """A3 where any peer may associate: endless names from three addresses reach the caps, and no configured peer's
    place."""
    w = World()
    attackers, count = [Node(f"10.40.0.{host}", "x") for host in (4, 5, 6)], 1500
    before = show("n4")
    rose = lambda: risen(show("n4")["rejected"], before["rejected"])
    places = 8 - 2  # those of the configured peers are theirs
    for i in range(count):
        attackers[i % 3].send(message(ASSOCIATION_SETUP, node_id(f"n{i}.evil.test") + recovery(1.7e9), 10000 + i))
        if i % 300 == 299:
            wait_until(lambda: sum(rose().values()) > i - places, "A3: names to be counted")
            wait_pass(0.4)  # below the rate of addresses that are not known: the caps are what refuses
    wait_until(lambda: sum(rose().values()) >= count - places, "A3: all names to be refused but those that had room",
               10)
    equal("A3: names refused", rose(), {"association-limit": count - places})
    associations = [a["id"] for a in show("association")]
    equal("A3: associations", len(associations), 7)
    other = Node(n4.SMF2, "smf2.isthmus.test")
    answered("A3: the second configured SMF", other.associate(), n4.ACCEPTED)
    w.unharmed("A3")
    with w.row("A13", REASON[65], 5000):
        before = show("n4")
        for i in range(5000):
            other.send(message(MODIFY, b"", 300000 + i, random.getrandbits(64)))
            if i % 500 == 499:  # a busy machine's socket holds so many
                wait_until(lambda: sum(rose().values()) > i, "A13: requests to be counted")
    check_sum("after all names")
    done("hostile PFCP, anybody may associate")


def main():
    if sys.argv[1:] == ["names"]:
        return names()
    if sys.argv[1:] == ["chosen"]:
        return chosen()
    random.seed(4)
    w = World()
    w.traffic("first")
    before = show("total")
    rss = [n4.rss_kib(pid) for pid in w.pids]
    for what, body, cause, offending, rule in establish_rows(w):
        with w.row(what, REASON[cause]):
            answered(what, w.smf.request(ESTABLISH, body, seid=0), cause, offending, rule)
        if what.startswith(("P13", "P21")):
            after_refusal(w, what)
    repeated_row(w)
    node_rows(w)
    modification_rows(w)
    urr_row(w)
    fragmented(w)
    attacks(w)
    total = check_sum("after all rows")
    equal("sessions", total["sessions"], before["sessions"])
    wait_until(lambda: show("total")["buffers_free"] >= before["buffers_free"] - 64, "buffers to be given back")
    grown = [n4.rss_kib(pid) - kib for pid, kib in zip(w.pids, rss)]
    check(all(kib < 65536 for kib in grown), f"memory grew by {grown} KiB")
    remarks = n4.tshark_remarks(f"{DIR}/n4.pcap")
    check(not remarks, f"tshark's remarks about our answers: {sorted(set(remarks))[:10]}")
    done("hostile PFCP")


if __name__ == "__main__":
    sys.exit(main())
