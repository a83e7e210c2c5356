# SPDX-License-Identifier: Apache-2.0
"""Restoration with real processes (TS 23.527, TS 29.244 clauses 5.22 and 6.2). Sessions, packets and usage while CP
functions, the control plane or gNBs go away and come back. At the end tshark checks every PFCP message that was sent.
"""

import os
import struct
import subprocess
import sys
import time

import n4
from frames import DIR, check, check_sum, done, equal, show, wait_pass, wait_until
from n4 import (ASSOCIATION_RELEASE, ASSOCIATION_SETUP, ASSOCIATION_UPDATE, DELETE, MODIFY, NODE_REPORT, SET_DELETION,
                Node, fseid, fteid, group, ie, node_id, pdr_down, pdr_up, recovery, rules_of, u8, u32)
from pfcp_hostile import status
from upf import World, murder
from upf_rules import inside, open_session, pair, with_links
from scapy.all import IP, UDP, Ether
from scapy.contrib.gtp import GTP_U_Header, GTPEchoResponse

GNB2 = "10.30.0.9"


def state(name):
    """The state of an association, None without one."""
    return next((a["state"] for a in show("n4")["associations"] if a["id"] == name), None)


def events():
    return show("n4")["events"]


def both_ways(w, teid, ue, what, down_teid=None):
    """A packet in each direction; not decoded by tshark, so that time stays short."""
    up, down = w.up(teid, ue, 72), w.down(ue, 72)
    w.dn.receive(lambda d: up in d, 1, f"uplink {what}")
    found = w.gnb.receive(lambda d: down in d, 1, f"downlink {what}")
    if found and down_teid is not None:
        equal(f"downlink TEID {what}", struct.unpack(">I", found[0][46:50])[0], down_teid)


def kind_of(smf, kind, what, seconds=8, test=lambda r: True):
    """Waits for a request of the UP function of this type, or a session report with this IE."""
    found = smf.take_report(lambda r: (r.kind == kind or kind in r.ies) and test(r), seconds)
    check(found is not None, f"{smf.name}: no {what}")
    return found


def volume_of(reports):
    """The reports' sum; a repeated report has the same sequence number (UR-SEQN)."""
    rows = {}
    for r in reports:
        for raw in r.ies.get(80, []):
            u = inside(raw)
            rows[u[81][0], u[104][0]] = struct.unpack(">3Q", u[66][0][1:25])
    return [sum(column) for column in zip(*rows.values())] or [0, 0, 0]


def outage(w, smf3):
    """The path to a CP function fails: packets of its sessions pass, others' reports are sent, and its own wait until
    the path is back. A restart of the control plane in between loses none of it."""
    periodic = group(6, u32(81, 1), u8(62, 2), ie(37, b"\x01\x00"), u32(64, 1))
    made = smf3.establish(300, pair(0x4001, "10.45.40.1", links=(u32(81, 1),)) + periodic)
    equal("session of smf3", made and made.cause, n4.ACCEPTED)
    mine = open_session(w, 301, pair(0x4002, "10.45.40.2", links=(u32(81, 1),)) + periodic, "session of smf1")
    both_ways(w, 0x4001, "10.45.40.1", "before the outage")
    sent = 1
    with smf3.changed:
        smf3.wait_locked(lambda: volume_of(smf3.reports)[0] > 0, 6)
        before = list(smf3.reports)  # these were answered, if not always in time
        smf3.silent = True
        smf3.reports.clear()
    wait_until(lambda: state(smf3.name) == "failed", "the path to fail", 10)
    w.smf.reports = [r for r in w.smf.reports if r.kind == NODE_REPORT]
    for _ in range(3):
        both_ways(w, 0x4001, "10.45.40.1", "during the outage")
        both_ways(w, 0x4002, "10.45.40.2", "of the other CP function during the outage")
        sent += 1
        wait_pass(0.7)
    kind_of(w.smf, 80, "periodic report for the other CP function", 4)
    wait_pass(1.2)  # the period ends
    murder(status()["pid"])
    both_ways(w, 0x4001, "10.45.40.1", "without N4 and control plane")
    sent += 1
    subprocess.run([f"{os.environ['TEST_ROOT_']}/test/lib/start_control.sh"], check=True)
    equal("state of the association after the restart", state(smf3.name), "failed")
    wait_pass(1.2)
    with smf3.changed:
        smf3.reports.clear()
        smf3.silent = False
    wait_until(lambda: state(smf3.name) == "up", "the path to be back", 6)
    told = lambda: volume_of(before + smf3.reports)
    wait_until(lambda: told()[0] >= 200 * sent, "the usage of the outage", 8)
    equal("usage over the outage", told(), [200 * sent, 100 * sent, 100 * sent])
    check(volume_of(before)[0] < 200 * sent, "nothing was left to be told after the outage")
    smf3.reports.clear()
    final = smf3.request(DELETE, b"", seid=made.seid)
    equal("deletion after the outage", final and final.cause, n4.ACCEPTED)
    w.delete(mine.seid, "deletion of the other CP function's session")


def path_down(w):
    """A gNB that does not answer Echo Requests: Node Report."""
    report = kind_of(w.smf, NODE_REPORT, "Node Report of the failed path", 20, lambda r: 102 in r.ies
                     and n4.ip4(GNB2) in r.ies[102][0])
    if report is not None:
        equal("Node Report Type", report.ies[101], [b"\x01"])


def path_up(w):
    """It answers again: Node Report."""
    is_echo = lambda d: d[42:44] in (b"\x32\x01",) and d[30:34] == n4.ip4(GNB2)
    w.gnb.forget()
    end = time.monotonic() + 62
    while time.monotonic() < end:
        data = w.gnb._read(0.5)
        if data is not None and is_echo(data):
            sequence = struct.unpack(">H", data[50:52])[0]
            answer = GTP_U_Header(gtp_type=2, teid=0, S=1, seq=sequence) / GTPEchoResponse()
            w.gnb.send(Ether(src=w.gnb.mac, dst=w.mac["n3"]) / IP(src=GNB2, dst=n4.N3)
                             / UDP(sport=2152, dport=2152) / answer)
            break
    report = kind_of(w.smf, NODE_REPORT, "Node Report of the path that is back", 5, lambda r: 187 in r.ies
                     and n4.ip4(GNB2) in r.ies[187][0])
    if report is not None:
        equal("Node Report Type of the recovery", report.ies[101], [b"\x02"])


def takeover(w, smf2):
    """A member of the SMF set is gone: another one gets its reports, and the session by modifying it."""
    made = open_session(w, 310, pair(0x4011, "10.45.41.1", action=12), "session of the set")
    w.smf.silent = True
    wait_until(lambda: state(w.smf.name) == "failed", "smf1's path to fail", 10)
    smf2.reports.clear()
    w.down("10.45.41.1")
    kind_of(smf2, 83, "downlink data report for the set")
    answer = smf2.request(MODIFY, fseid(777, smf2.address) + group(10, u32(108, 2), u8(44, 2)), seid=made.seid)
    equal("modification by another member", answer and (answer.cause, struct.unpack(">Q", answer.data[4:12])[0]),
          (n4.ACCEPTED, 777))
    Node.peer[777] = made.seid
    both_ways(w, 0x4011, "10.45.41.1", "after the takeover")
    with w.smf.changed:
        w.smf.silent = False
    wait_until(lambda: state(w.smf.name) == "up", "smf1's path to be back", 6)
    answer = smf2.request(DELETE, b"", seid=made.seid)
    equal("deletion by the new owner", answer and answer.cause, n4.ACCEPTED)


def retention(w, sessions):
    """A restarted CP function that asks for it keeps its sessions (clause 5.22); without asking it loses them."""
    w.smf.started += 60
    information = group(183, ie(185, b"\x02" + n4.ip4(w.smf.address)))
    answer = w.smf.associate(node_id(w.smf.name) + recovery(w.smf.started) + information)
    equal("association with retention", answer and (answer.cause, answer.ies.get(184)), (n4.ACCEPTED, [b"\x01"]))
    wait_pass(0.5)
    equal("sessions retained", show("total")["sessions"], sessions)
    both_ways(w, 0x4000, "10.45.40.9", "of the retained session")


def set_deletion(w, sessions):
    """Session-set deletion: the sessions of an FQ-CSID go, others stay."""
    fqcsid = lambda n: ie(65, b"\x01" + n4.ip4(w.smf.address) + struct.pack(">H", n))
    for n in range(4):
        body = fqcsid(7 if n < 3 else 8) + rules_of(0x4020 + n, f"10.45.42.{n + 1}")
        open_session(w, 320 + n, body, "session of a set")
    equal("sessions before the set deletion", show("total")["sessions"], sessions + 4)
    answer = w.smf.request(SET_DELETION, node_id(w.smf.name) + fqcsid(7))
    equal("session-set deletion", answer and (answer.kind, answer.cause), (SET_DELETION + 1, n4.ACCEPTED))
    wait_until(lambda: show("total")["sessions"] == sessions + 1, "three sessions to go")
    both_ways(w, 0x4023, "10.45.42.4", "of the session that is not in the set")
    answer = w.smf.request(SET_DELETION, node_id(w.smf.name) + fqcsid(8))
    equal("session-set deletion of the last", answer and answer.cause, n4.ACCEPTED)
    wait_until(lambda: show("total")["sessions"] == sessions, "the last of the sets to go")


def releases(w, smf2, sessions):
    """Update by both sides, a graceful release that we ask for, the release by the CP function."""
    made = smf2.establish(330, rules_of(0x4030, "10.45.43.1", down_teid=0xc030))
    equal("session of smf2", made and made.cause, n4.ACCEPTED)
    answer = smf2.request(ASSOCIATION_UPDATE, node_id(smf2.name) + u8(89, 0x08))
    equal("association update", answer and (answer.kind, answer.cause, 43 in answer.ies),
          (ASSOCIATION_UPDATE + 1, n4.ACCEPTED, True))
    smf2.reports.clear()
    subprocess.run([os.environ["BIN"] + "/isthmus", "association", "release", smf2.name, "--graceful", "60"],
                   check=True)
    asked = kind_of(smf2, ASSOCIATION_UPDATE, "request for a release")
    check(asked is not None and asked.ies.get(111) == [b"\x01"] and 112 in asked.ies,
          f"release request: {asked and asked.ies}")
    equal("state while the CP function moves its sessions", state(smf2.name), "releasing")
    both_ways(w, 0x4030, "10.45.43.1", "during the graceful release", 0xc030)
    answer = smf2.request(ASSOCIATION_RELEASE, node_id(smf2.name))
    equal("association release", answer and answer.cause, n4.ACCEPTED)
    wait_until(lambda: show("total")["sessions"] == sessions, "the session of the released association to go")
    equal("association after its release", state(smf2.name), None)


def dialled(smf4):
    """An association that we set up; it is set up again after a release."""
    wait_until(lambda: state(smf4.name) == "up", "the association to smf4", 10)
    asked = kind_of(smf4, ASSOCIATION_SETUP, "association set-up by the UP function")
    check(asked is not None and 43 in asked.ies and 96 in asked.ies,
          "features and recovery time stamp in our set-up request")
    answer = smf4.request(ASSOCIATION_RELEASE, node_id(smf4.name))
    equal("release of the dialled association", answer and answer.cause, n4.ACCEPTED)
    kind_of(smf4, ASSOCIATION_SETUP, "second association set-up by the UP function", 10)


def headless(w, smf3, sessions):
    """A CP function that stays away: its sessions live for the headless time, then they go; others' stay."""
    made = smf3.establish(340, rules_of(0x4040, "10.45.44.1", down_teid=0xc040))
    equal("session of smf3", made and made.cause, n4.ACCEPTED)
    smf3.silent = True
    wait_until(lambda: state(smf3.name) == "failed", "the path to fail", 10)
    began = time.monotonic()
    while show("total")["sessions"] == sessions + 1 and time.monotonic() < began + 20:
        if time.monotonic() < began + 8:
            both_ways(w, 0x4040, "10.45.44.1", "of a session without CP function", 0xc040)
        wait_pass(1)
    lived = time.monotonic() - began
    check(8 <= lived <= 16, f"headless sessions lived {lived:.1f} s, configured are 12")
    equal("association after the headless time", state(smf3.name), None)
    check(events().get("headless-expired", 0) == 1, f"events: {events()}")
    both_ways(w, 0x4000, "10.45.40.9", "of another CP function after the headless time")


def main():
    w = World()
    # Its gNB answers no Echo Requests for a minute.
    far = group(3, u32(108, 2), u8(44, 2), group(4, u8(42, 0), n4.instance("access"), n4.outer_header(0xc000, GNB2)))
    pdrs = with_links(pdr_up(1, fteid(0x4000), "10.45.40.9") + pdr_down(2, "10.45.40.9"))
    open_session(w, 299, pdrs + n4.far_up() + far, "session on the second gNB")
    smf2, smf3, smf4 = (Node(f"10.40.0.{n}", f"smf{m}.isthmus.test") for n, m in ((3, 2), (5, 3), (6, 4)))
    for smf in (smf2, smf3):
        equal(f"association of {smf.name}", getattr(smf.associate(), "cause", None), n4.ACCEPTED)
    w.at_dn(w.up(0x4000, "10.45.40.9", 72), "uplink of the first session")
    for what, row in (("dialled", lambda: dialled(smf4)), ("outage", lambda: outage(w, smf3)),
                      ("path_down", lambda: path_down(w)),
                      ("takeover", lambda: takeover(w, smf2)), ("retention", lambda: retention(w, 1)),
                      ("set_deletion", lambda: set_deletion(w, 1)), ("releases", lambda: releases(w, smf2, 1)),
                      ("headless", lambda: headless(w, smf3, 1)), ("path_up", lambda: path_up(w))):
        at = time.monotonic()
        row()
        print(f"{what}: {time.monotonic() - at:.1f} s", flush=True)
    check_sum("end")
    remarks = n4.tshark_remarks(f"{DIR}/n4.pcap")
    check(not remarks, f"tshark's remarks about PFCP: {sorted(set(remarks))[:10]}")
    done("restoration")


if __name__ == "__main__":
    sys.exit(main())
