# SPDX-License-Identifier: Apache-2.0
"""Accounting late rather than lost: the data plane crashes, RADIUS is away, the control plane is killed, all end."""

import json
import os
import signal
import subprocess
from collections import Counter

import pppoe
from frames import Wire, check, done, equal, wait_until
from radius import of_kind, radclient, records, start_server, stop_server, subscriber
from scapy.all import ICMP, IP, Raw

SIZE = 128


def status():
    return json.loads(subprocess.check_output([os.environ["BIN"] + "/isthmus", "status", "-j"]))


def pings(home, count):
    for n in range(count):
        home.send(pppoe.IP4, bytes(IP(src=home.ipv4, dst="10.60.0.2") / ICMP(id=7, seq=n) / Raw(b"x" * (SIZE - 28))))
        check(home.echo_reply(pppoe.IP4) is not None, f"no answer to ping {n} of {home.user}")


def last(session):
    """Why a session ended, and what it sent."""
    stop = of("Stop", session)[0]
    return stop["Acct-Terminate-Cause"], stop["Acct-Input-Octets"]


def of(kind, session):
    return [r for r in of_kind(kind) if r["Acct-Session-Id"] == f'"{session}"']


def change(user, kbit):
    """A change reports what was counted, and sends a record of it."""
    out = radclient("coa", f'User-Name = "{user}", WISPr-Bandwidth-Max-Down = {kbit}000')
    check("CoA-ACK" in out, f"no CoA-ACK: {out}")


def kill(what):
    """Ends a process as a crash does."""
    pid = status()[what]
    os.kill(pid, signal.SIGKILL)
    return pid


def is_read(home, octets):
    """Whether the store has what the data plane counted of a home."""
    store = os.environ["DIR"] + "/isthmus.sock.sessions.db"
    seid = int(subscriber(home.user)["session"], 16)
    lines = subprocess.check_output([os.environ["BIN"] + "/isthmus", "store", "dump", store], text=True).splitlines()
    return any(row["SEID"] == seid and row["Bytes"][1] == octets for line in lines
               for row in json.loads(line).get("reading") or [])


def crash(home, other):
    """The data plane dies: LCP echo is answered again, packets pass, and nothing is counted twice, or lost that was
    read."""
    wait_until(lambda: is_read(other, 3 * SIZE), "a snapshot of usage", 20)
    change(home.user, 5000)
    session = subscriber(home.user)["session"]
    wait_until(lambda: of("Interim-Update", session), "a record of the change")
    octets = (of("Interim-Update", session) or [{}])[0].get("Acct-Input-Octets")
    equal("octets before the crash", octets, str(3 * SIZE))
    former = kill("dp_pid")

    def echoed():
        home.send(pppoe.LCP, pppoe.control(pppoe.ECHO, 9, b"\x11\x22\x33\x44"))
        return home.hears(pppoe.LCP, pppoe.ECHOED)
    wait_until(echoed, "echo to be answered again", 20)
    check(status()["dp_pid"] != former, "the data plane is the one that was killed")
    equal("after the crash", subscriber(home.user)["session"], session)
    home.wire.forget()


def main():
    wire = Wire("home0")
    anna, bob = pppoe.Client(wire, "02:00:00:00:00:01"), pppoe.Client(wire, "02:00:00:00:00:02", (100, 2), "bob")
    for home in anna, bob:
        check(home.sign_in(v6=False), f"{home.user} is not let in")
        pings(home, 3)
    session = {home: subscriber(home.user)["session"] for home in (anna, bob)}
    wait_until(lambda: all(of("Start", s) for s in session.values()), "both first records")
    crash(anna, bob)
    pings(anna, 2)

    # The accounting server is away, and the control plane is killed with waiting records.
    stop_server()
    change("anna", 4000)
    bob.hang_up()
    wait_until(lambda: subscriber("bob")["state"] != "up", "bob to go")
    pid = kill("pid")
    wait_until(lambda: not os.path.exists(f"/proc/{pid}/fd/0"), "the control plane to go")
    pings(anna, 1)
    subprocess.run([os.path.dirname(os.path.abspath(pppoe.__file__)) + "/start_control.sh"], check=True)
    start_server()
    wait_until(lambda: of("Stop", session[bob]) and len(of("Interim-Update", session[anna])) > 1,
               "records that waited", 20)
    # The data plane that counted bob's packets crashed before its report: they were read.
    equal("bob's last record", last(session[bob]), ("User-Request", str(3 * SIZE)))

    # A planned end: the home gets its end, and accounting gets Accounting-Off last.
    subprocess.run([os.environ["BIN"] + "/isthmus", "drain"], check=True)
    check(anna.hears(pppoe.LCP, pppoe.TERMINATE, 5), "anna hears no Terminate-Request")
    anna.send(pppoe.LCP, pppoe.control(pppoe.TERMINATED, 1))
    anna.discovered(0xA7, "PADT")
    wait_until(lambda: of_kind("Accounting-Off"), "Accounting-Off", 15)
    equal("anna's last record", last(session[anna]), ("Admin-Reboot", str(6 * SIZE)))
    equal("the last record", records()[-1]["Acct-Status-Type"], "Accounting-Off")
    told = Counter((r["Acct-Session-Id"], r["Acct-Status-Type"], r.get("Acct-Input-Octets"), r.get("Acct-Session-Time"))
                   for r in records() if "Acct-Status-Type" in r)
    check(max(told.values()) == 1, f"records that came twice: {told}")
    drained = status()["drain"]
    check(drained["sign_ins"] and not drained["announced"], f"the drain in status: {drained}")
    subprocess.run([os.environ["BIN"] + "/isthmus", "resume"], check=True)
    wait_until(lambda: records()[-1]["Acct-Status-Type"] == "Accounting-On", "Accounting-On", 15)
    done("late")


main()
