# SPDX-License-Identifier: Apache-2.0
"""Rates of two homes that signed in on a port with a scheduler, by isthmus-traffic."""

import json
import os
import subprocess

import pppoe
import tester
from frames import DIR, Wire, check, done, equal, show
from radius import radclient, subscriber

ON_WIRE = 1000  # bytes of a frame with the scheduler's frame_overhead
SIZE = ON_WIRE - 24 - 14 - 8 - 8  # of its IP packet, in PPPoE behind two tags
SECONDS = 3
# packets beyond a rate: of the queue at the end, of 100 ms of burst, in time that a tester is late
SPARE = 64 + 50 + 20


def run(name, *streams):
    """Packets of each stream that were sent and that arrived."""
    status, results, words = tester.run(name, SECONDS, [tester.Stream(
        who, home, home.ipv4, True, rate, SIZE, dscp=dscp, expect="loss: 1") for who, home, rate, dscp in streams])
    if status != 0:
        raise SystemExit(words)
    return {who: (row["sent"], row["received"]) for who, row in results.items()}


def rates(name, streams, so):
    """Runs until so holds of what arrived."""
    for _ in range(tester.TRIES):
        counts = run(name, *streams)
        print(name, counts)
        if so(counts):
            return
    check(False, f"{name}: {counts}")


def near(packets, kbit):
    most = kbit * 1000 // 8 // ON_WIRE * SECONDS
    return 0.97 * most <= packets <= most + SPARE


def main():
    wire = Wire("home0")
    anna = pppoe.Client(wire, "02:00:00:00:00:01")
    bob = pppoe.Client(wire, "02:00:00:00:00:02", tags=(100, 2), user="bob")
    check(anna.sign_in() and bob.sign_in(), "anna and bob are not let in")
    isthmus = os.environ["BIN"] + "/isthmus"
    subprocess.run([isthmus, "config", "apply", f"{DIR}/piped.yaml"], check=True)
    both = [("anna", anna, 1000, 0), ("bob", bob, 500, 0)]
    rates("home", both, lambda n: near(n["anna"][1], 2000) and near(n["bob"][1], 2000))
    pipes = {row["scheduler_pipe"]: row["scheduler_profile"] for row in show("session")}
    equal("pipes", pipes, {"lines/0/0": "home", "lines/0/1": "home"})
    for pipe in pipes:
        rows = json.loads(subprocess.check_output([isthmus, "show", "scheduler", pipe, "-j"]))
        check(sum(r["packets"] for r in rows) > 0, f"nobody has pipe {pipe}: {rows}")

    out = radclient("coa", 'User-Name = "anna", Filter-Id = "scheduler=gold"')
    check("CoA-ACK" in out, f"no CoA-ACK: {out}")
    gold = sorted(row["scheduler_profile"] for row in show("session"))
    equal("profiles behind a change", gold, ["gold", "home"])
    first = [("first", anna, 200, 46), *both]
    rates("gold", first, lambda n: n["first"][0] == n["first"][1] and near(n["first"][1] + n["anna"][1], 4000) and
          near(n["bob"][1], 2000))

    for user, number in ("carl", 3), ("eve", 4):
        late = pppoe.Client(Wire("home0"), f"02:00:00:00:00:0{number}", tags=(100, number), user=user)
        check(not late.sign_in(v6=False), f"{user} is let in")
        attempts = subscriber(user)["attempts"]
        check(any("all pipes of port lines are taken" in a["why"] for a in attempts), f"{user}: {attempts}")
    check(any('let in without scheduler: port "lines" has no scheduler with a profile "tin"' == a["why"]
              for a in attempts), f"eve: {attempts}")
    radclient("disconnect", 'User-Name = "bob"')
    # A socket of its own: the other's room may be full of the tester's frames.
    carl = pppoe.Client(Wire("home0"), "02:00:00:00:00:03", tags=(100, 3), user="carl")
    check(carl.sign_in(v6=False), "carl is not let in when bob has left")
    rates("left", [("carl", carl, 1000, 0)], lambda n: near(n["carl"][1], 4000))
    done("pipes")


main()
