# SPDX-License-Identifier: Apache-2.0
"""Rates of two homes that signed in on a port with a scheduler, by isthmus-traffic."""

import json
import os
import subprocess

import pppoe
from frames import DIR, Wire, check, done
from radius import radclient, subscriber

GATEWAY, GATEWAY_CORE, CORE = "02:00:00:aa:00:01", "02:00:00:cc:00:01", "02:00:00:cc:00:02"
ON_WIRE = 1000  # bytes of a frame with the scheduler's frame_overhead
SIZE = ON_WIRE - 24 - 14 - 8 - 8  # of its IP packet, in PPPoE behind two tags
SECONDS = 3
SPARE = 64 + 50 + 20  # packets beyond a rate: of the queue at the end, of 100 ms of burst, in time that a tester is late
TRIES = 8  # of a measurement: a gateway that is held up for longer than the burst passes less


def stream(name, home, number, rate, dscp):
    ip = f'source: 203.0.113.80, destination: {home.ipv4}, dscp: {dscp}'
    mac = home.mac.hex(":")
    return [f"- name: {name}", "  port: core", "  sink: access", f"  rate: {rate}pps", f"  size: {SIZE + 14 + 4}",
            "  send:", "    - ethernet: {destination: %s, source: %s}" % (GATEWAY_CORE, CORE),
            "    - ipv4: {ttl: 64, %s}" % ip, "    - udp: {checksum: 1}",
            "  receive:", "    - ethernet: {destination: %s, source: %s}" % (mac, GATEWAY),
            "    - vlan: {tpid: any, id: 100}", "    - vlan: {id: %d}" % number,
            "    - pppoe: {session: %d}" % home.session, "    - ipv4: {ttl: 63, %s}" % ip, "    - udp: {checksum: 1}",
            "  expect: {loss: 1}"]


def run(name, *streams):
    """Packets of each stream that were sent and that arrived."""
    lines = [f"name: {name}", "huge_pages: false", "memory_mb: 256", "ports:",
             "- {name: access, driver: net_af_packet, device: home0, mac: 02:00:00:00:00:01}",
             f"- {{name: core, driver: net_af_packet, device: core0, mac: {CORE}}}", "streams:"]
    for s in streams:
        lines += stream(*s)
    lines.append(f"run: {{mode: fixed, seconds: {SECONDS}, drain: 1.5, warmup: 0, latency: {{seconds: 0}}, "
                 "disturbed: {repeats: 0}}")
    with open(f"{DIR}/{name}.yaml", "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    tester = subprocess.run([os.environ["TESTER"], "--json", f"{DIR}/{name}.json", f"{DIR}/{name}.yaml"], text=True,
                            capture_output=True, timeout=60)
    if tester.returncode != 0:
        raise SystemExit(f"{name}: {tester.stdout}{tester.stderr}")
    with open(f"{DIR}/{name}.json", encoding="utf-8") as f:
        trial = json.load(f)["trials"][-1]
    for row in trial["streams"]:
        check(not any(row["wrong"].values()), f"{name}: {row}")
    return {row["name"]: (row["sent"], row["received"]) for row in trial["streams"]}


def rates(name, streams, so):
    """Runs until so holds of what arrived."""
    for _ in range(TRIES):
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
    both = [("anna", anna, 1, 1000, 0), ("bob", bob, 2, 500, 0)]
    rates("home", both, lambda n: near(n["anna"][1], 2000) and near(n["bob"][1], 2000))
    for pipe in range(2):
        rows = json.loads(subprocess.check_output([isthmus, "show", "scheduler", f"access/0/{pipe}", "-j"]))
        check(sum(r["packets"] for r in rows) > 0, f"nobody has pipe {pipe}: {rows}")

    out = radclient("coa", 'User-Name = "anna", Filter-Id = "scheduler=gold"')
    check("CoA-ACK" in out, f"no CoA-ACK: {out}")
    first = [("first", anna, 1, 200, 46), *both]
    rates("gold", first, lambda n: n["first"][0] == n["first"][1] and near(n["first"][1] + n["anna"][1], 4000) and
          near(n["bob"][1], 2000))

    for user, number, why in ("carl", 3, "all pipes of port access are taken"), ("eve", 4, 'a profile "tin"'):
        late = pppoe.Client(Wire("home0"), f"02:00:00:00:00:0{number}", tags=(100, number), user=user)
        check(not late.sign_in(v6=False), f"{user} is let in")
        attempts = subscriber(user)["attempts"]
        check(any(why in a["why"] for a in attempts), f"{user}: {attempts}")
    radclient("disconnect", 'User-Name = "bob"')
    # A socket of its own: the other's room may be full of the tester's frames.
    carl = pppoe.Client(Wire("home0"), "02:00:00:00:00:03", tags=(100, 3), user="carl")
    check(carl.sign_in(v6=False), "carl is not let in when bob has left")
    rates("left", [("carl", carl, 3, 1000, 0)], lambda n: near(n["carl"][1], 4000))
    done("pipes")


main()
