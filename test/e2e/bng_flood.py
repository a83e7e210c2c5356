# SPDX-License-Identifier: Apache-2.0
"""PADI and DISCOVER of random MAC addresses, on all lines of an S-tag and on one line: homes on line miss no packet,
new homes sign in."""

import os
import random
import struct
import subprocess
import time

import pppoe
from frames import Wire, check, check_sum, done, equal, rows, show
from scapy.all import BOOTP, DHCP, ICMP, IP, UDP, Raw

BURST = 200  # frames between two of the home's: the ring of the gateway's packet socket holds them all
LEAST = 1500  # bursts of a kind
RANDOM = random.Random(2516)
PADI = struct.pack(">HBBHHHH", 0x8863, 0x11, 0x09, 0, 4, 0x0101, 0)
DISCOVER = bytes(IP(src="0.0.0.0", dst="255.255.255.255") / UDP(sport=68, dport=67, chksum=0) / BOOTP(chaddr=bytes(6)) /
                 DHCP(options=[("message-type", "discover"), "end"]))
CHADDR = 20 + 8 + 28


def flood(kind, line):
    """A frame of an unused MAC address; of a line of S-tag 100."""
    mac = b"\x06" + RANDOM.randbytes(5)
    tags = struct.pack(">HHHH", 0x88A8, 100, 0x8100, line)
    if kind == "padi":
        return pppoe.BROADCAST + mac + tags + PADI
    return pppoe.BROADCAST + mac + tags + b"\x08\x00" + DISCOVER[:CHADDR] + mac + DISCOVER[CHADDR + 6:]


def burst(wire, anna, kind, n):
    """A burst, and behind it what anna sends; false when she misses an answer."""
    wire.send(*[flood(kind, 10 if i % 2 else RANDOM.randrange(11, 2000)) for i in range(BURST)])
    asks = time.monotonic() - anna.asked >= 0.5  # more often is a flood itself: lcp-echo-rate-limit
    if asks:
        anna.asked = time.monotonic()
        anna.send(pppoe.LCP, pppoe.control(pppoe.ECHO, n & 0xFF, struct.pack(">I", anna.magic)))
    anna.send(pppoe.IP4, bytes(IP(src=anna.ipv4, dst="10.60.0.2") / ICMP(id=7, seq=n) / Raw(b"x" * 100)))
    echo, ping = anna.next(pppoe.LCP) if asks else None, anna.echo_reply(pppoe.IP4)
    wire.waiting = [data for data in wire.waiting if data[:6] == anna.mac]
    return check(not asks or echo and echo[1:3] == (pppoe.ECHOED, n & 0xFF), f"{kind}: LCP echo {n}: {echo}") and \
        check(ping is not None and IP(ping)[ICMP].seq == n, f"{kind}: ping {n} is not answered")


def storm(wire, anna, kind, home):
    """Bursts for as long as a new home needs to come in, to be answered, and to leave."""
    before = rows("drop")
    command = [os.environ["BIN"] + "/isthmus", "control-load", "--access", "--interface", "home0", "--subscribers", "1",
               "--ping", "10.60.0.2", *home]
    bursts = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as p:
        while (p.poll() is None or bursts < LEAST) and burst(wire, anna, kind, bursts):
            bursts += 1
        words = p.communicate()[0]
    equal(f"{kind}: the new home's exit status", p.returncode, 0) or print(words)
    over = {name: n - before.get(name, 0) for name, n in rows("drop").items()}
    print(f"{kind}: {bursts} bursts of {BURST}; dropped {({n: c for n, c in over.items() if c})}")
    for name in "punt-line-limit", "punt-s-tag-limit":
        check(over.get(name, 0) > BURST, f"{kind}: {name} does not show the flood: {over}")


def main():
    wire = Wire("home0")
    anna = pppoe.Client(wire, "02:00:00:00:00:01", tags=(100, 3000))
    check(anna.sign_in(v6=False), "anna is not let in")
    anna.asked = 0
    storm(wire, anna, "padi", ["--user", "bob", "--password", "example-only", "--families", "4"])
    storm(wire, anna, "discover", ["--dhcp", "--families", "4"])
    equal("sessions", [r["user"] for r in show("subscriber") if r["state"] == "up"], ["anna"])
    check_sum("flood")
    done("flood")


main()
