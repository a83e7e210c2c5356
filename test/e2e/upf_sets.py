# SPDX-License-Identifier: Apache-2.0
"""SMF sets and node ids with real processes: what a configured peer gets by claiming them. The members of a set
continue the sessions of a failed member (TS 29.244 clause 5.22). At the end tshark checks every PFCP message that the
UPF sent."""

import struct
import sys
import time

import n4
from frames import DIR, check, check_sum, done, equal, show, wait_until
from n4 import DELETE, MODIFY, Node, fseid, group, ie, ip4, node_id, recovery, rules_of, u8, u32
from upf import World
from upf_restore import both_ways, state
from upf_rules import open_session, pair

CP_FEATURES, ALTERNATIVE, SET_ID, RETENTION = 89, 178, 180, 183
REJECTED = 64


def labels(name):
    return b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))


def set_id(name, spare=b"\0"):
    return ie(SET_ID, spare + labels(name))


def associate(smf, *more):
    answer = smf.associate(node_id(smf.name) + recovery(smf.started) + b"".join(more))
    return answer and answer.cause


def set_of(name):
    return next((a["set"] for a in show("n4")["associations"] if a["id"] == name), None)


def claims(w, smf3, thief, member):
    """A set that is not configured belongs to its first claimant, and to those that it names. A peer that claims it, or
    a configured one, gets no sessions. smf3 omits the octet before the set's name, as versions of go-pfcp do."""
    named = ie(ALTERNATIVE, b"\x02" + ip4(member.address))
    equal("association without the spare octet", associate(smf3, set_id("set9.test", b""), named), n4.ACCEPTED)
    equal("set of its first claimant", set_of(smf3.name), "set9.test")
    equal("association with unreadable IEs",
          associate(thief, ie(SET_ID), ie(CP_FEATURES), ie(ALTERNATIVE, b"\x02\x0a")), n4.ACCEPTED)
    sessions = [smf3.establish(500, rules_of(0x5001, "10.45.50.1", down_teid=0xd001)),
                w.smf.establish(501, rules_of(0x5002, "10.45.50.2", down_teid=0xd002))]
    equal("sessions of two sets", [s and s.cause for s in sessions], [n4.ACCEPTED] * 2)
    for name in ("set9.test", "set1.test", "SET1.TEST"):
        equal(f"association that claims {name}", associate(thief, set_id(name), named), n4.ACCEPTED)
        equal(f"set of who claims {name}", set_of(thief.name), "")
        for session in sessions:
            for kind, body in ((MODIFY, group(10, u32(108, 2), u8(44, 1))), (DELETE, b"")):
                answer = thief.request(kind, body, seid=session.seid)
                equal(f"request {kind} of who claims {name}", answer and answer.cause, n4.CONTEXT_NOT_FOUND)
    equal("claims counted", show("n4")["events"].get("set-not-admitted"), 3)
    both_ways(w, 0x5001, "10.45.50.1", "of a session whose set was claimed", 0xd001)
    both_ways(w, 0x5002, "10.45.50.2", "of a session of the configured set", 0xd002)
    equal("association of the member that was named", (associate(member, set_id("set9.test")), set_of(member.name)),
          (n4.ACCEPTED, "set9.test"))
    for smf, session in ((member, sessions[0]), (w.smf, sessions[1])):
        answer = smf.request(DELETE, b"", seid=session.seid)
        equal("deletion by a member", answer and answer.cause, n4.ACCEPTED)


def node_ids(w, smf3, thief):
    """The node id of a failed association, and its sessions, stay with it."""
    session = smf3.establish(510, rules_of(0x5010, "10.45.51.1", down_teid=0xd010))
    equal("session of smf3", session and session.cause, n4.ACCEPTED)
    smf3.silent = True
    wait_until(lambda: state(smf3.name) == "failed", "smf3's path to fail", 10)
    name, thief.name = thief.name, smf3.name
    for what, more in (("the node id of a failed association", ()),
                       ("with its sessions retained", (group(RETENTION),))):
        equal(what, associate(thief, *more), REJECTED)
    answer = thief.request(DELETE, b"", seid=session.seid)
    equal("deletion in another's name", answer and answer.cause, n4.CONTEXT_NOT_FOUND)
    thief.name = "10.40.0.7"
    equal("another peer's address as node id",
          thief.associate(node_id(address=thief.name) + recovery(thief.started)).cause, REJECTED)
    thief.name = name
    both_ways(w, 0x5010, "10.45.51.1", "of the failed association", 0xd010)
    with smf3.changed:
        smf3.silent = False
    wait_until(lambda: state(smf3.name) == "up", "smf3's path to be back", 6)
    answer = smf3.request(DELETE, b"", seid=session.seid)
    equal("deletion by the owner", answer and answer.cause, n4.ACCEPTED)


def one_fseid(w):
    """Two sessions with one CP F-SEID are two: our SEIDs distinguish them."""
    made = [open_session(w, 530, rules_of(0x5030 + n, f"10.45.53.{n + 1}", down_teid=0xd030 + n), "session")
            for n in range(2)]
    check(made[0].seid != made[1].seid, "two sessions have one SEID")
    w.delete(made[0].seid, "deletion of the first")
    both_ways(w, 0x5031, "10.45.53.2", "of the second", 0xd031)
    w.delete(made[1].seid, "deletion of the second")


def seid_of(report):
    return struct.unpack(">Q", report.data[4:12])[0]


def used(smf, what, seid, old=None):
    """The next usage report at a member of a session that has an F-SEID of its own, or one of another member (Old CP
    F-SEID)."""
    named = old and [old[4:]]
    report = smf.take_report(lambda r: 80 in r.ies and r.ies.get(57) == named and seid_of(r) == seid, 10)
    check(report is not None,
          f"{smf.name}: no usage report {what}; {[(seid_of(r), r.ies.get(57)) for r in smf.reports]}")


def failover(w, smf2):
    """A member fails: another one gets its sessions' reports, with SEID 0 and Old CP F-SEID. It takes a session over by
    modifying it, or by its F-SEID in the answer to a report. A member that does not know the session does not end it.
    After the headless time it goes on so."""
    old = {cp_seid: fseid(cp_seid, w.smf.address) for cp_seid in (520, 521, 522)}
    periodic = group(6, u32(81, 1), u8(62, 2), ie(37, b"\x01\x00"), u32(64, 1))
    made = {}
    for n, cp_seid in enumerate(old):
        rules = pair(0x5020 + n, f"10.45.52.{n + 1}", links=(u32(81, 1),), action=12 if n == 1 else 2)
        made[cp_seid] = open_session(w, cp_seid, rules + (periodic if n != 1
                                                          else group(6, u32(81, 1), u8(62, 2), ie(37, b"\0\0\0"))),
                                                          "session of the set")
    # 520 is reported at once, 521 waits for its UE, 522 is reported after the headless time.
    equal("association of smf2", associate(smf2), n4.ACCEPTED)
    w.smf.silent = True
    wait_until(lambda: state(w.smf.name) == "failed", "smf1's path to fail", 10)
    smf2.report_cause = n4.CONTEXT_NOT_FOUND
    with smf2.changed:
        smf2.reports.clear()
    both_ways(w, 0x5020, "10.45.52.1", "of the failed member")
    used(smf2, "to a member that does not know the session", 0, old[520])
    w.down("10.45.52.2")
    downlink = smf2.take_report(lambda r: 83 in r.ies, 6)
    check(downlink is not None and seid_of(downlink) == 0 and downlink.ies.get(57) == [old[521][4:]],
          f"downlink data report: {downlink and downlink.ies}")
    equal("sessions that a member does not know", show("total")["sessions"], 3)
    both_ways(w, 0x5020, "10.45.52.1", "that a member does not know")
    with smf2.changed:
        smf2.reports.clear()
        smf2.report_cause = n4.ACCEPTED
    used(smf2, "that was not known, told again", 0, old[520])
    answer = smf2.request(DELETE, b"", seid=made[520].seid)
    equal("deletion before the headless time ends", answer and (answer.cause, seid_of(answer)), (n4.ACCEPTED, 520))
    answer = smf2.request(MODIFY, fseid(777, smf2.address) + node_id(smf2.name) + group(10, u32(108, 2), u8(44, 2)),
                          seid=made[521].seid)
    equal("modification by another member", answer and (answer.cause, struct.unpack(">Q", answer.data[4:12])[0]),
          (n4.ACCEPTED, 777))
    Node.peer[777] = made[521].seid
    wait_until(lambda: state(w.smf.name) is None, "the headless time to end", 40)
    equal("sessions after the headless time", (show("total")["sessions"], show("n4")["events"].get("sessions-adopted")),
          (2, 1))
    with smf2.changed:
        smf2.reports.clear()
        smf2.report_extra = fseid(778, smf2.address)
    Node.peer[778] = made[522].seid
    both_ways(w, 0x5022, "10.45.52.3", "after the headless time")
    used(smf2, "after the headless time", 0, old[522])
    with smf2.changed:
        smf2.report_extra = b""
    used(smf2, "of the session whose F-SEID the answer changed", 778)
    for cp_seid, now in ((521, 777), (522, 778)):
        answer = smf2.request(DELETE, b"", seid=made[cp_seid].seid)
        equal(f"deletion of {cp_seid} by the new owner", answer and (answer.cause, seid_of(answer)), (n4.ACCEPTED, now))
    equal("sessions that ended by the failover", show("n4")["rejected"].get("session-not-found", 0), w.refused)


def main():
    w = World()
    smf2, smf3, thief, member = (Node(f"10.40.0.{n}", f"{name}.isthmus.test")
                                 for n, name in ((3, "smf2"), (5, "smf3"), (6, "smf5"), (7, "smf6")))
    for what, row in (("claims", lambda: claims(w, smf3, thief, member)),
                      ("node_ids", lambda: node_ids(w, smf3, thief)),
                      ("one_fseid", lambda: one_fseid(w)), ("failover", lambda: failover(w, smf2))):
        at = time.monotonic()
        w.refused = show("n4")["rejected"].get("session-not-found", 0)
        row()
        print(f"{what}: {time.monotonic() - at:.1f} s", flush=True)
    check_sum("end")
    equal("sessions left", show("total")["sessions"], 0)
    remarks = n4.tshark_remarks(f"{DIR}/n4.pcap")
    check(not remarks, f"tshark's remarks about our messages: {sorted(set(remarks))[:10]}")
    done("SMF sets")


if __name__ == "__main__":
    sys.exit(main())
