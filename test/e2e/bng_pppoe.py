# SPDX-License-Identifier: Apache-2.0
"""A subscriber dials in, is served, seen, cleared and refused."""

import json
import os
import subprocess

import pppoe
from frames import Wire, check, check_sum, done, equal, show, wait_until
from scapy.all import ICMP, IP, Raw

ANNA = "02:00:00:00:00:01"


def isthmus(*words):
    return subprocess.run([os.environ["BIN"] + "/isthmus", *words], capture_output=True, text=True)


def subscriber(what):
    return json.loads(isthmus("show", "subscriber", what, "-j").stdout)


def pings(anna, host):
    request = IP(src=anna.ipv4, dst=host) / ICMP(id=7, seq=1) / Raw(b"x" * 100)
    anna.send(pppoe.IP4, bytes(request))
    got = anna.next(pppoe.IP4)
    if check(got is not None, "no answer to a ping"):
        answer = IP(got[3])
        equal("answer", (answer.src, answer.dst, answer[ICMP].type), (host, anna.ipv4, 0))


def traced(anna, what):
    """A subscriber that signed in is traced by what a caller knows of itself, as a subscriber of the file is by its
    name.

    Of two packets one is a request: the trace may begin between a request and its answer."""
    command = [os.environ["BIN"] + "/isthmus", "trace", "--subscriber", what, "--count", "2", "--for", "60s"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as p:
        wait_until(lambda: [pings(anna, "10.60.0.2"), p.poll() is not None][1], f"the trace of {what}")
        text = p.stdout.read()
    check("session-uplink" in text and "10.60.0.2" in text, f"trace --subscriber {what}: {text}")


def main():
    wire = Wire("home0")
    anna = pppoe.Client(wire, ANNA)
    check(anna.sign_in(), "anna is not let in")
    print("anna has", anna.ipv4)
    pings(anna, "10.60.0.2")  # at once: packets pass before the answer
    anna.send(pppoe.LCP, pppoe.control(pppoe.ECHO, 9, b"\x11\x22\x33\x44"))
    echo = anna.next(pppoe.LCP)
    check(echo and echo[1] == pppoe.ECHOED, f"echo is not answered: {echo}")
    row = subscriber("anna")[0]
    equal("show subscriber", (row["user"], row["state"], row["ipv4"], row["line"], row["kind"]),
          ("anna", "up", anna.ipv4, "lines:100.1", "pppoe"))
    wait_until(lambda: subscriber(anna.ipv4)[0]["uplink_bytes"] == 128, "128 bytes of the uplink")
    equal("bytes", subscriber("anna")[0]["downlink_bytes"], 128)
    for what in (ANNA, anna.ipv4, "lines:100.1", row["session"]):
        equal(f"show subscriber {what}", [r["user"] for r in subscriber(what)], ["anna"])

    for what in ("anna", ANNA, anna.ipv4, "lines:100.1"):
        traced(anna, what)
    bad = pppoe.Client(wire, "02:00:00:00:00:02", (100, 2), "anna", "wrong")
    check(not bad.sign_in() and bad.refused is not None, "a wrong password is taken")
    history = subscriber("02:00:00:00:00:02")
    out = isthmus("trace", "--subscriber", "02:00:00:00:00:02", "--for", "1s")
    check(out.returncode == 1 and "has no session; the last attempt to sign in: " in out.stderr, f"trace: {out}")
    check(history and history[0]["attempts"] and "password" in history[0]["attempts"][0]["why"], f"history: {history}")

    out = isthmus("clear", "subscriber", "anna", "--cause", "admin-reset")
    equal("clear", (out.returncode, out.stdout), (0, "1 subscriber ends\n"))
    ended = anna.next(pppoe.LCP)
    check(ended is not None and ended[1] == pppoe.TERMINATE, f"no Terminate-Request: {ended}")
    wait_until(lambda: not show("session"), "the session to go")
    check_sum("sign-in")
    done("pppoe")


main()
