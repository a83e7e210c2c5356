# SPDX-License-Identifier: Apache-2.0
"""Packets of every kind in both directions; each received frame is compared field by field.

Usage: agf_veth.py [SUBSCRIBER UPF], the interfaces on which the gateway's access and core ports are reached. MAY_DROP
names reasons that are no fault here."""

import os
import sys

from cases import downlink_cases, uplink_cases
from compare import check_downlink, check_uplink, match
from frames import Wire, check_sum, done, drops, equal, show, wait_until
from subscribers import SUBSCRIBERS, silent_gtpu


def run(direction, cases, enter, leave, mark, compare):
    """All cases at once."""
    cases = list(cases)
    enter.send(*(frame for *_, frame in cases))
    match(direction, cases, leave.frames(mark, len(cases), direction), compare)


def main():
    silent = silent_gtpu()
    home_wire, upf_wire = map(Wire, sys.argv[1:] or ("home0", "upf0"))
    mac = {port["name"]: port["mac"] for port in show("port")}
    is_gtpu = lambda data: (data[12:14] == b"\x08\x00" and data[23] == 17 or data[12:14] == b"\x86\xdd"
                            and data[20] == 17)
    run("uplink", uplink_cases(mac["access"]), home_wire, upf_wire, is_gtpu,
        lambda *case: check_uplink(*case, mac["core"], upf_wire.mac))
    ours = lambda data: data[6:12] == bytes.fromhex(mac["access"].replace(":", ""))
    run("downlink", downlink_cases(mac["core"], upf_wire.mac), upf_wire, home_wire, ours,
        lambda *case: check_downlink(*case, mac["access"]))
    wait_until(lambda: show("total")["held"] == 0, "nothing to be held")
    check_sum("both directions")
    may = os.environ.get("MAY_DROP", "").split()
    equal("drops", {k: v for k, v in drops().items() if k not in may}, {})
    sessions = {s["name"]: (s["uplink_packets"], s["downlink_packets"]) for s in show("session")}
    equal("session counters", sessions, {h.name: (4, 2 if h.qfi_down else 4) for h in SUBSCRIBERS})
    del silent
    done("agf_veth")


sys.exit(main())
