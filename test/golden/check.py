# SPDX-License-Identifier: Apache-2.0
"""Judges what a replay made. usage: check.py CASE FOLDER EXPECTED

FOLDER has access.pcap, core.pcap and counters.json. They must be those of EXPECTED (expected-…), and tshark must find
nothing wrong in them. Packets are compared byte for byte; times within a millisecond, for they come from a clock whose
tick differs from machine to machine.
"""

import json
import sys

from cases import downlink_cases, uplink_cases
from compare import check_downlink, check_uplink, match
from frames import check, decode, done, equal, read_records
from gen import ACCESS, CORE, UPF, make


def same_capture(name, got, want):
    for n, ((t1, a), (t2, b)) in enumerate(zip(got, want)):
        if a != b:
            first = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
            check(False,
                  f"{name}: packet {n + 1} differs from byte {first} on:\n  got      {a.hex()}\n  expected {b.hex()}")
            break
        if abs(t1 - t2) > 0.001:
            check(False, f"{name}: packet {n + 1} left at {t1}, expected {t2}")
            break
    equal(f"{name}: packets", len(got), len(want))


def main(name, folder, expected):
    case = make(name)
    counters = json.load(open(f"{folder}/counters.json"))
    frames = {}
    for side in ("access", "core"):
        records = read_records(f"{folder}/{side}.pcap")
        same_capture(f"{name} {side}", records, read_records(f"{expected}/expected-{side}.pcap"))
        frames[side] = decode([data for _, data in records], f"{folder}/{side}-decoded.pcap")
        for n, frame in enumerate(frames[side]):
            equal(f"{name} {side}: tshark's complaints about packet {n + 1}", frame.expert(), [])
    equal(f"{name}: counters", counters, json.load(open(f"{expected}/expected-counters.json")))
    check_counters(name, case, counters)
    if name in ("traffic", "two-workers"):
        match("uplink", list(uplink_cases(ACCESS)), [f for f in frames["core"] if f.get("gtp")],
              lambda *c: check_uplink(*c, CORE, UPF))
        match("downlink", list(downlink_cases(CORE, UPF)), frames["access"], lambda *c: check_downlink(*c, ACCESS))
    done(name)


def check_counters(name, case, c):
    equal(f"{name}: packets in", (c["in"], c["skipped"]), (len(case.access) + len(case.core), 0))
    equal(f"{name}: the sum", c["in"] + c["originated"],
          c["out"] + c["punted"] + c["held"] + c["dropped"] + c["merged"])
    for reason, count in case.reasons.items():
        equal(f"{name}: {reason}", c["reasons"].get(reason, 0), count)
    if name == "bad-input":
        equal(f"{name}: all reasons", c["reasons"], case.reasons)


main(*sys.argv[1:])
