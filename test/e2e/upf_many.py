# SPDX-License-Identifier: Apache-2.0
"""Row A12: the association of 100,000 sessions is released. Meanwhile every packet of another association's session
passes, its heartbeats and its requests are answered."""

import os
import subprocess
import sys
import time

import n4
from frames import DIR, check, check_sum, done, equal, show, wait_until
from n4 import ASSOCIATION_RELEASE, DELETE, Node, node_id, rules_of
from upf import World

SESSIONS = int(os.environ.get("SESSIONS", "100000"))


def fill():
    """`isthmus control-load` makes them and dies, so that they stay."""
    load = subprocess.Popen(
        [os.environ["BIN"] + "/isthmus", "control-load", "--peer", n4.UPF_N4, "--local", n4.SMF2, "--node-id",
         "smf2.isthmus.test", "--core", "internet",
         "--access-peer", n4.GNB, "--first-ue", "10.64.0.1", "--rate", "4000", "--sessions", str(SESSIONS), "--seconds",
         "600", "--modify-ratio", "0"],
        stdout=subprocess.DEVNULL, stderr=open(f"{DIR}/load.log", "wb"))
    try:
        wait_until(lambda: show("total")["sessions"] > SESSIONS or load.poll() is not None, f"{SESSIONS} sessions", 120)
    finally:
        load.kill()
        load.wait()


def main():
    w = World()
    mine = w.smf.establish(1, rules_of(0x5001, "10.45.50.1", down_teid=0xd001))
    equal("session of the association that stays", mine and mine.cause, n4.ACCEPTED)
    at = time.monotonic()
    fill()
    held = show("total")["sessions"]
    print(f"{held} sessions after {time.monotonic() - at:.1f} s", flush=True)
    w.gnb.forget()
    smf2 = Node(n4.SMF2, "smf2.isthmus.test")
    at = time.monotonic()
    answer = smf2.request(ASSOCIATION_RELEASE, node_id(smf2.name), seconds=5)
    equal("release", answer and answer.cause, n4.ACCEPTED)
    slowest, turns, sent = 0.0, 0, []
    while (left := show("total")["sessions"]) > 1 and time.monotonic() < at + 90:
        sent.append((w.up(0x5001, "10.45.50.1"), w.down("10.45.50.1")))
        begun = time.monotonic()
        check(w.smf.heartbeat() is not None, f"no heartbeat answered, {left} sessions left")
        made = w.smf.establish(2 + turns, rules_of(0, "10.45.50.2", down_teid=0xd002))
        if check(made is not None and made.cause == n4.ACCEPTED, f"establishment meanwhile: {made and made.cause}"):
            gone = w.smf.request(DELETE, b"", seid=made.seid)
            check(gone is not None and gone.cause == n4.ACCEPTED, f"deletion meanwhile: {gone and gone.cause}")
        slowest = max(slowest, time.monotonic() - begun)
        turns += 1
    took = time.monotonic() - at
    # On an idle machine there are hundreds; if another CP function had to wait for the release, one.
    check(turns >= 3, f"only {turns} times another CP function was heard during the release")
    equal("sessions left", show("total")["sessions"], 1)
    for n, (up, down) in enumerate(sent):
        w.dn.receive(lambda d, m=up: m in d, 1, f"uplink {n} during the release")
        w.gnb.receive(lambda d, m=down: m in d, 1, f"downlink {n} during the release")
    print(f"released in {took:.1f} s; {turns} turns beside it, the slowest {slowest * 1000:.0f} ms", flush=True)
    w.delete(mine.seid, "deletion")
    check_sum("end")
    remarks = n4.tshark_remarks(f"{DIR}/n4.pcap")
    check(not remarks, f"tshark's remarks about PFCP: {sorted(set(remarks))[:10]}")
    done("many")


if __name__ == "__main__":
    sys.exit(main())
