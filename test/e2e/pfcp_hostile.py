# SPDX-License-Identifier: Apache-2.0
"""Rows P1-P34 and A1-A13 of the table of hostile inputs, sent to a running UPF over UDP.

After every row: both processes are the same ones, the next heartbeat is answered within a second, the good session's
packets pass in both directions, and the number of sessions is what it was. At the end buffers in use are what they were.
"""

import json
import os
import random
import struct
import subprocess
import sys
import time

import n4
from frames import Wire, check, check_sum, done, equal, rows, show, wait_until
from n4 import (ASSOCIATION_SETUP, DELETE, ESTABLISH, HEARTBEAT, MODIFY, Node, choose_fteid, far_down, far_up, fseid, fteid, group, ie,
                instance, message, node_id, outer_header, pdr_down, pdr_up, recovery, rules_of, sdf, u8, u16, u32, ue_ip)
from scapy.all import IP, UDP, Ether, Raw
from scapy.contrib.gtp import GTP_U_Header, GTPPDUSessionContainer

UE, TEID = "10.45.0.1", 0x1001


def status():
    """The control plane's own state; it is told even while the data plane is away (exit status 1)."""
    out = subprocess.run([os.environ["BIN"] + "/isthmus", "status", "-j"], capture_output=True, text=True, check=False).stdout
    return json.loads(out) if out.startswith("{") else {"pid": 0, "dp_pid": 0, "data_plane": "unknown"}


class World:
    def __init__(self):
        self.gnb, self.dn = Wire("gnb0"), Wire("dn0")
        self.mac = {port["name"]: port["mac"] for port in show("port")}
        self.smf = Node(n4.SMF1, "smf1.isthmus.test")
        answer = self.smf.associate()
        equal("association", answer and answer.cause, n4.ACCEPTED)
        answer = self.smf.establish(1, rules_of(TEID, UE))
        equal("good session", answer and answer.cause, n4.ACCEPTED)
        self.good = answer.seid
        self.number = 0
        state = status()
        self.pids = state["pid"], state["dp_pid"]
        self.sessions = self.count()

    def count(self):
        return show("total")["sessions"]

    def uplink(self, teid=TEID, source=UE, destination=n4.DN, count=1):
        for _ in range(count):
            self.number += 1
            packet = IP(src=source, dst=destination, ttl=17) / UDP(sport=40001, dport=40002) / Raw(struct.pack(">IQ", 0x15715715, self.number))
            gtpu = GTP_U_Header(teid=teid, gtp_type=255) / GTPPDUSessionContainer(type=1, QFI=9)
            self.gnb.send(Ether(src=self.gnb.mac, dst=self.mac["n3"]) / IP(src=n4.GNB, dst=n4.N3) / UDP(sport=2152, dport=2152) / gtpu / packet)
        return struct.pack(">IQ", 0x15715715, self.number)

    def downlink(self):
        self.number += 1
        mark = struct.pack(">IQ", 0x15715715, self.number)
        self.dn.send(Ether(src=self.dn.mac, dst=self.mac["n6"]) / IP(src=n4.DN, dst=UE, ttl=17) / UDP(sport=40002, dport=40001) / Raw(mark))
        return mark

    def traffic(self, what):
        up, down = self.uplink(), self.downlink()
        self.dn.receive(lambda d: up in d, 1, f"{what}: uplink of the good session")
        self.gnb.receive(lambda d: down in d, 1, f"{what}: downlink of the good session")

    def unharmed(self, what, sessions=None):
        state = status()
        equal(f"{what}: processes", (state["pid"], state["dp_pid"]), self.pids)
        check(self.smf.heartbeat(1) is not None, f"{what}: no heartbeat answered within a second")
        self.traffic(what)
        equal(f"{what}: sessions", self.count(), self.sessions if sessions is None else sessions)


def refused(w, what, answer, causes, offending=None, rule=None):
    """The answer has one of the causes, and names the IE or rule."""
    causes = causes if isinstance(causes, (tuple, range, list)) else (causes,)
    if not check(answer is not None, f"{what}: no answer"):
        return
    check(answer.cause in causes, f"{what}: cause {answer.cause}, expected {list(causes)[:4]}")
    if offending is not None:
        equal(f"{what}: offending IE", answer.offending, offending)
    if rule is not None:
        equal(f"{what}: failed rule", answer.failed_rule, rule)


ANY = range(64, 80)


def establish_rows(w):
    """Bad establishments: (row, body, causes, offending IE, failed rule)."""
    node, cp = node_id(w.smf.name), fseid(77, w.smf.address)
    good = rules_of(0x2001, "10.45.0.77")
    up, down, fars = pdr_up(1, fteid(0x2001), "10.45.0.77"), pdr_down(2, "10.45.0.77"), far_up() + far_down()
    bare_pdi = lambda *parts: group(1, u16(56, 1), u32(29, 100), group(2, *parts), u8(95, 0), u32(108, 1))
    qer = lambda id_, extra=b"": group(7, u32(109, id_), u8(25, 0), extra)
    urr = lambda id_, extra=b"": group(6, u32(81, id_), u8(62, 2), ie(37, b"\x02\x00"), extra)
    bad_far = lambda *parts: group(3, u32(108, 2), u8(44, 2), group(4, u8(42, 0), *parts))
    sdf_pdr = lambda text: pdr_up(1, fteid(0x2001), "10.45.0.77", extra=sdf(text)) + down + fars
    yield "P10 no node id", cp + good, 66, 60, None
    yield "P10 no CP F-SEID", node + good, 66, 57, None
    yield "P11 no PDR", node + cp + fars, 66, 1, None
    yield "P11 nothing", node + cp, 66, None, None
    yield "P12 PDN type 0", node + cp + u8(113, 0) + good, ANY, None, None
    yield "P13 PDR without FAR", node + cp + group(1, u16(56, 1), u32(29, 1), group(2, u8(20, 0), fteid(0x2001)), u8(95, 0)) + fars, ANY, None, None
    yield "P14 PDI without source", node + cp + bare_pdi(fteid(0x2001)) + fars, 66, 20, None
    yield "P15 F-TEID too long", node + cp + bare_pdi(u8(20, 0), ie(21, b"\x01" + bytes(60))) + fars, (68, 69), None, None
    yield "P15 F-TEID empty", node + cp + bare_pdi(u8(20, 0), ie(21)) + fars, (68, 69), 21, None
    yield "P17 TEID 0", node + cp + pdr_up(1, fteid(0), "10.45.0.77") + down + fars, ANY, None, None
    yield "P17 F-TEID of another address", node + cp + pdr_up(1, fteid(0x2001, "10.9.9.9"), "10.45.0.77") + down + fars, ANY, None, None
    yield "P19 outer header empty", node + cp + up + down + far_up() + bad_far(ie(84)), (68, 69), 84, None
    yield "P19 outer header without address", node + cp + up + down + far_up() + bad_far(ie(84, b"\x01\x00\x00\x00\x00\x01")), (67, 68, 69), 84, None
    yield "P19 outer header cut", node + cp + up + down + far_up() + bad_far(ie(84, b"\x01\x00\x00\x00\x00\x01\x0a\x1e")), (68, 69), 84, None
    yield "P20 the same again", node + cp + up + down + far_up() + bad_far(ie(84, b"\x01\x00\x00\x00\x00\x01\x0a\x1e")), (68, 69), 84, None
    yield "P21 destination 0x99", node + cp + up + down + far_up() + group(3, u32(108, 2), u8(44, 2), group(4, u8(42, 0x99))), ANY, None, None
    for name, text in (("permit", "permit"), ("unknown action", "unknown action aaaaaaaa"), ("prefix /33", "permit out ip from 1.2.3.4/33 to assigned"),
                       ("port 65536", "permit out 17 from any 65536 to assigned"), ("range reversed", "permit out 17 from any 90-80 to assigned"),
                       ("not UTF-8", b"permit out ip from \xff\xfe to assigned"), ("long", "permit out ip from any to assigned" + " " * 60000)):
        yield f"P22 {name}", node + cp + sdf_pdr(text), ANY, None, None
    yield "P22 flow length 0xffff", node + cp + pdr_up(1, fteid(0x2001), "10.45.0.77", extra=ie(23, b"\x01\x00\xff\xffpermit")) + down + fars, ANY, None, None
    yield "P23 MBR of 3 bytes", node + cp + good + qer(1, ie(26, b"\x00\x01\x02")), (68, 69), 26, None
    yield "P23 dropped traffic threshold cut", node + cp + good + urr(1, ie(72, b"\x03\x00\x00")), (68, 69), 72, None
    yield "P25 five QERs of four", node + cp + good + b"".join(qer(i) for i in range(1, 6)), ANY, None, None
    yield "P25 33 PDRs", node + cp + good + b"".join(pdr_up(i, fteid(0x3000 + i), "10.45.0.77") for i in range(3, 34)), ANY, None, None
    yield "P26 a thousand URRs", node + cp + good + b"".join(urr(i) for i in range(1, 1001)), ANY, None, None
    yield "P27 PDR twice", node + cp + up + up + down + fars, ANY, None, None
    yield "P27 FAR twice", node + cp + up + down + fars + far_up(), ANY, None, None
    yield "P27 unknown FAR", node + cp + pdr_up(1, fteid(0x2001), "10.45.0.77", far=99) + down + fars, ANY, None, None
    yield "P27 unknown QER", node + cp + group(1, u16(56, 1), u32(29, 1), group(2, u8(20, 0), fteid(0x2001)), u8(95, 0), u32(108, 1), u32(109, 9)) + down + fars, ANY, None, None
    yield "P33 apply action 0", node + cp + up + down + far_up(action=0) + far_down(), ANY, None, None
    yield "P33 drop and forward", node + cp + up + down + far_up(action=3) + far_down(), ANY, None, None
    yield "A5 UE address of a live session", node + cp + pdr_up(1, fteid(0x2001), UE) + pdr_down(2, UE) + fars, ANY, None, None
    yield "F-TEID of a live session", node + cp + pdr_up(1, fteid(TEID), "10.45.0.77") + down + fars, ANY, None, None
    yield "header enrichment", node + cp + up + down + far_up() + bad_far(outer_header(1, n4.GNB), ie(98, b"\x00\x01a\x01b")), ANY, None, None


def node_rows(w):
    """P1-P9: node messages, at the second configured peer's address, which is not associated."""
    other = Node(n4.SMF2, "smf2.isthmus.test")
    refused(w, "P1", other.associate(recovery(1.7e9)), 66, 60)
    refused(w, "P2", other.associate(node_id(other.name)), 66, 96)
    for what, body in (("P3", b""), ("P4 length 0", ie(96)), ("P4 length 3", ie(96, b"\0\0\0")), ("P4 length 5", ie(96, bytes(5)))):
        w.smf.request(HEARTBEAT, body, seconds=0.2)
        w.smf.send(message(2, body, 9))
        w.unharmed(what)
    vendor = ie(0x8001, b"\x0d\xe9hello") + ie(0x8002, b"\x01")
    answer = w.smf.request(HEARTBEAT, vendor + recovery(w.smf.started) + ie(0x7001, b"x"))
    equal("P5: kind of the answer", answer and answer.kind, 2)
    for length in (7, 9, 0, 65535):
        w.smf.send(message(HEARTBEAT, recovery(1), 0xffffff, length=length))
    w.smf.send(message(HEARTBEAT, recovery(w.smf.started), 0xffffff))
    w.unharmed("P6")
    refused(w, "P7", other.associate(node_id(other.name) + struct.pack(">HH", 96, 40) + b"\0\0\0\0"), (66, 68))
    deep = b""
    for _ in range(50):
        deep = group(1, deep)
    w.smf.request(ESTABLISH, w.smf.establish_body(5, deep), seid=0, seconds=0.5)
    w.smf.request(ESTABLISH, w.smf.establish_body(5, struct.pack(">HH", 1, 0xffff)), seid=0, seconds=0.5)
    w.unharmed("P8")
    answer = w.smf.request(0, b"", sequence=4242, raw=message(HEARTBEAT, recovery(1), 4242, version=2))
    equal("P9: version 2 is answered by", answer and answer.kind, 11)
    w.smf.send(b"\x20\x01")
    w.smf.send(message(200, b"", 5))
    w.unharmed("P9")
    other.close()


def modification_rows(w):
    modify = lambda body, seid=None, **more: w.smf.request(MODIFY, body, seid=w.good if seid is None else seid, **more)
    before = show("session")
    for what, body in (("P28 remove PDR", group(15, u16(56, 99))), ("P28 update PDR", group(9, u16(56, 99), u32(29, 5))),
                       ("P28 remove QER", group(18, u32(109, 99))), ("P28 remove URR", group(17, u32(81, 99))),
                       ("P28 query URR", group(77, u32(81, 99))), ("P28 update QER", group(14, u32(109, 99)))):
        refused(w, what, modify(body), ANY)
        w.unharmed(what)
    refused(w, "P29", modify(group(1, u16(56, 9))), ANY)
    w.unharmed("P29")
    # One valid change (the downlink now drops) and one that is not: nothing of it may happen.
    drop = group(10, u32(108, 2), u8(44, 1))
    refused(w, "P30", modify(drop + group(9, u16(56, 99), u32(29, 5))), ANY)
    refused(w, "P30 bad IE", modify(drop + group(10, u32(108, 1), group(11, ie(84, b"\x01")))), ANY)
    w.unharmed("P30")
    same = lambda rows_: [{k: v for k, v in r.items() if not any(x in k for x in ("packets", "bytes"))} for r in rows_]
    equal("P28-P30: the session", same(show("session")), same(before))
    for seid in (0, 1 << 63, (1 << 64) - 1):
        refused(w, f"P31 modify {seid:x}", modify(drop, seid=seid), 65)
        refused(w, f"P31 delete {seid:x}", w.smf.request(DELETE, b"", seid=seid), 65)
    w.unharmed("P31")
    w.smf.send(message(57, b"", 77, w.good))
    w.smf.send(message(57, u8(19, 1), 78, 12345))
    w.unharmed("P32")


def urr_row(w):
    urr = group(6, u32(81, 65535), u8(62, 3), ie(37, b"\x06\x00"), u8(100, 8), ie(31, b"\x01" + bytes(8)), u32(32, 0))
    answer = w.smf.establish(24, rules_of(0x2401, "10.45.0.24") + urr)
    if answer is not None and answer.cause == n4.ACCEPTED:
        w.smf.reports.clear()
        w.uplink(0x2401, "10.45.0.24", count=20)
        time.sleep(2)
        check(len(w.smf.reports) <= 25, f"P24: {len(w.smf.reports)} reports for 20 packets")
        refused(w, "P24 delete", w.smf.request(DELETE, b"", seid=answer.seid), (1,))
    w.unharmed("P24")


def fragmented(w):
    """P34: datagrams that IP must take apart, up to 64 kB."""
    padding = ie(0x7001, bytes(60000))
    answer = w.smf.request(HEARTBEAT, recovery(w.smf.started) + padding)
    equal("P34: 64 kB heartbeat", answer and answer.kind, 2)
    w.unharmed("P34")


def attacks(w):
    stranger = Node(n4.STRANGER, "evil.isthmus.test")
    answer = stranger.associate(seconds=1)
    check(answer is None or answer.cause in ANY, "A1: an unknown peer associated")
    stranger.name = w.smf.name
    answer = stranger.associate(seconds=1)
    check(answer is None or answer.cause in ANY, "A2: the live SMF's node id from another address was accepted")
    w.unharmed("A1, A2")
    for i in range(200):
        stranger.send(message(ASSOCIATION_SETUP, node_id(f"n{i}.evil.test") + recovery(1.7e9), 10000 + i))
    w.unharmed("A3")
    other = Node(n4.SMF2, "smf2.isthmus.test")
    equal("A3: the second SMF still associates", getattr(other.associate(), "cause", None), n4.ACCEPTED)
    refused(w, "A4 modify", other.request(MODIFY, group(10, u32(108, 2), u8(44, 1)), seid=w.good), 65)
    refused(w, "A4 delete", other.request(DELETE, b"", seid=w.good), 65)
    w.unharmed("A4")
    made, cause = [], None
    for i in range(600):
        answer = other.establish(1000 + i, rules_of(0, f"10.45.{8 + i // 200}.{i % 200 + 1}", down_teid=0xa000 + i))
        if answer is None or answer.cause != n4.ACCEPTED:
            cause = answer and answer.cause
            break
        made.append(answer.seid)
    check(cause in (74, 75), f"A6: after {len(made)} sessions the cause is {cause}")
    equal("A6: sessions of one association", len(made), 400)
    w.unharmed("A6", w.sessions + len(made))
    stranger.send(message(HEARTBEAT, recovery(time.time() + 100), 5))
    spoofed = message(HEARTBEAT, recovery(time.time() + 100), 6)
    Wire("smf0").send(Ether(src=w.dn.mac, dst=neighbour_mac()) / IP(src=n4.SMF1, dst=n4.UPF_N4) / UDP(sport=5555, dport=8805) / Raw(spoofed))
    time.sleep(0.5)
    w.unharmed("A7", w.sessions + len(made))
    body = w.smf.establish_body(800, rules_of(0x8001, "10.45.0.80"))
    first = w.smf.request(ESTABLISH, body, seid=0, sequence=70000)
    again = [w.smf.request(ESTABLISH, body, seid=0, sequence=70000) for _ in range(2)]
    check(first is not None and all(a is not None and a.data == first.data for a in again), "A8: a repeated request is not answered alike")
    equal("A8: sessions", w.count(), w.sessions + len(made) + 1)
    refused(w, "A8 delete", w.smf.request(DELETE, b"", seid=first.seid), (1,))
    other.send(message(51, u8(19, 1), 70000, 1))
    for i in range(3000):
        other.send(message(MODIFY, group(10, u32(108, 99)), 100000 + i, made[i % len(made)]))
    w.unharmed("A8, A9", w.sessions + len(made))
    for i in range(5000):
        stranger.send(message(HEARTBEAT, recovery(1.7e9), i))
    w.unharmed("A10", w.sessions + len(made))
    before = rows("drop")
    for destination in (n4.UPF_N4, n4.N3, "10.60.0.1"):
        w.uplink(destination=destination)
    time.sleep(0.3)
    after = rows("drop")
    own = sum(after.get(k, 0) - before.get(k, 0) for k in after if "gateway" in k or "own" in k)
    check(own >= 2, f"A11: packets of a UE to the gateway's own addresses: {after}")
    w.unharmed("A11", w.sessions + len(made))
    for i in range(2000):
        w.smf.send(message(MODIFY, b"", 200000 + i, i + 1))
        w.uplink(teid=0x500000 + i)
    w.unharmed("A13", w.sessions + len(made))
    refused(w, "A12 release", other.request(n4.ASSOCIATION_RELEASE, node_id(other.name), seconds=5), (1,))
    wait_until(lambda: w.count() == w.sessions, "A12: sessions of the released association to go", 10)
    w.unharmed("A12")
    other.close()
    stranger.close()


def neighbour_mac():
    subprocess.run(["ping", "-c1", "-W1", n4.UPF_N4], capture_output=True, check=False)
    out = subprocess.run(["ip", "neigh", "show", n4.UPF_N4, "dev", "smf0"], capture_output=True, text=True, check=True).stdout
    return out.split("lladdr ")[1].split()[0]


def main():
    random.seed(4)
    w = World()
    w.traffic("first")
    before = show("total")
    rss = [n4.rss_kib(pid) for pid in w.pids]
    for what, body, causes, offending, rule in establish_rows(w):
        refused(w, what, w.smf.request(ESTABLISH, body, seid=0), causes, offending, rule)
        w.unharmed(what)
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
    done("hostile PFCP")


if __name__ == "__main__":
    sys.exit(main())
