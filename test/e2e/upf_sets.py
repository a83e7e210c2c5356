# SPDX-License-Identifier: Apache-2.0
"""SMF sets and node ids with real processes: what a configured peer gets by claiming them, and how the members of a set go on with
the sessions of one that fails (TS 29.244 clause 5.22). At the end tshark looks at every PFCP message that the UPF sent.
"""

import sys
import time

import n4
from frames import DIR, check, check_sum, done, equal, show, wait_until
from n4 import DELETE, MODIFY, Node, group, ie, ip4, node_id, recovery, rules_of, u8, u32
from upf import World
from upf_restore import both_ways, state

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
    """A set that the configuration does not have is its first claimant's, and of those whom it names; a peer that claims it, or one of
    the configuration, gets nobody's sessions. smf3 leaves out the octet before the set's name, as versions of go-pfcp do."""
    named = ie(ALTERNATIVE, b"\x02" + ip4(member.address))
    equal("association without the spare octet", associate(smf3, set_id("set9.test", b""), named), n4.ACCEPTED)
    equal("set of its first claimant", set_of(smf3.name), "set9.test")
    equal("association with unreadable IEs", associate(thief, ie(SET_ID), ie(CP_FEATURES), ie(ALTERNATIVE, b"\x02\x0a")), n4.ACCEPTED)
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
    equal("association of the member that was named", (associate(member, set_id("set9.test")), set_of(member.name)), (n4.ACCEPTED, "set9.test"))
    for smf, session in ((member, sessions[0]), (w.smf, sessions[1])):
        answer = smf.request(DELETE, b"", seid=session.seid)
        equal("deletion by a member", answer and answer.cause, n4.ACCEPTED)


def node_ids(w, smf3, thief):
    """The node id of an association that has failed, and its sessions, are nobody else's."""
    session = smf3.establish(510, rules_of(0x5010, "10.45.51.1", down_teid=0xd010))
    equal("session of smf3", session and session.cause, n4.ACCEPTED)
    smf3.silent = True
    wait_until(lambda: state(smf3.name) == "failed", "smf3's path to fail", 10)
    name, thief.name = thief.name, smf3.name
    for what, more in (("the node id of a failed association", ()), ("with its sessions retained", (group(RETENTION),))):
        equal(what, associate(thief, *more), REJECTED)
    answer = thief.request(DELETE, b"", seid=session.seid)
    equal("deletion in another's name", answer and answer.cause, n4.CONTEXT_NOT_FOUND)
    thief.name = "10.40.0.7"
    equal("another peer's address as node id", thief.associate(node_id(address=thief.name) + recovery(thief.started)).cause, REJECTED)
    thief.name = name
    both_ways(w, 0x5010, "10.45.51.1", "of the failed association", 0xd010)
    with smf3.changed:
        smf3.silent = False
    wait_until(lambda: state(smf3.name) == "up", "smf3's path to be back", 6)
    answer = smf3.request(DELETE, b"", seid=session.seid)
    equal("deletion by the owner", answer and answer.cause, n4.ACCEPTED)


def main():
    w = World()
    smf2, smf3, thief, member = (Node(f"10.40.0.{n}", f"{name}.isthmus.test")
                                 for n, name in ((3, "smf2"), (5, "smf3"), (6, "smf5"), (7, "smf6")))
    for what, row in (("claims", lambda: claims(w, smf3, thief, member)), ("node_ids", lambda: node_ids(w, smf3, thief))):
        at = time.monotonic()
        row()
        print(f"{what}: {time.monotonic() - at:.1f} s", flush=True)
    check_sum("end")
    equal("sessions left", show("total")["sessions"], 0)
    remarks = n4.tshark_remarks(f"{DIR}/n4.pcap")
    check(not remarks, f"tshark's remarks about our messages: {sorted(set(remarks))[:10]}")
    done("SMF sets")


if __name__ == "__main__":
    sys.exit(main())
