# SPDX-License-Identifier: Apache-2.0
"""A home and a CP function before a gateway is lost, and after its backup was restored elsewhere.

usage: backup.py before FILE; backup.py after FILE"""

import json
import struct
import sys

import ipoe
import n4
from frames import Wire, check, done, equal, show
from radius import subscriber

CORE, TEID, UE = "10.60.0.2", 0x4000, "10.45.1.1"


def recovery_of(answer):
    """The gateway's Recovery Time Stamp in an answer."""
    return struct.unpack(">I", answer.ies[96][0])[0]


def rules():
    pdrs = n4.pdr_up(1, n4.fteid(TEID), UE) + n4.pdr_down(2, UE)
    return pdrs + n4.far_up() + n4.far_down()


def associated(smf, what):
    answer = smf.associate()
    equal(f"association {what}", answer and answer.cause, n4.ACCEPTED)
    return recovery_of(answer)


def established(smf, seid, what):
    answer = smf.establish(seid, rules())
    equal(f"session {what}", answer and answer.cause, n4.ACCEPTED)
    return answer.seid


def before(smf, home):
    home.sign_in4()
    home.pinged(CORE)
    stamp = associated(smf, "before")
    return {"ipv4": home.ipv4, "stamp": stamp, "seid": established(smf, 1, "before"),
            "session": subscriber(home.ipv4)["session"]}


def after(smf, home, seen):
    home.ipv4 = seen["ipv4"]
    home.gateway = bytes.fromhex({port["name"]: port["mac"] for port in show("port")}["lines"].replace(":", ""))
    home.pinged(CORE)
    row = subscriber(home.ipv4)
    equal("the home", (row["state"], row["mac"], row["session"]), ("up", home.mac.hex(":"), seen["session"]))

    # The stamp says that the session is gone, and so it is: its F-TEID and its address are free.
    equal("sessions", show("total")["sessions"], 1)
    answer = smf.request(n4.MODIFY, b"", seid=seen["seid"])
    check(answer is None or answer.cause in (n4.CONTEXT_NOT_FOUND, n4.NO_ASSOCIATION), "an old session is known")
    stamp = recovery_of(smf.heartbeat())
    check(stamp > seen["stamp"], f"Recovery Time Stamp {stamp}, before {seen['stamp']}")
    equal("Recovery Time Stamp of the association", associated(smf, "after"), stamp)
    established(smf, 2, "after")
    equal("sessions", show("total")["sessions"], 2)


def main():
    smf = n4.Node("10.40.0.2", "smf1.isthmus.test")
    home = ipoe.Client(Wire("home0"), "02:00:00:00:03:01", (300, 1))
    when, file = sys.argv[1:]
    if when == "before":
        with open(file, "w", encoding="utf-8") as f:
            json.dump(before(smf, home), f)
    else:
        with open(file, encoding="utf-8") as f:
            after(smf, home, json.load(f))
    done(f"backup, {when}")


if __name__ == "__main__":
    main()
