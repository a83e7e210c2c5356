# SPDX-License-Identifier: Apache-2.0
"""An idle data plane wakes seldom, and everything that is due is served nevertheless."""

import glob
import json
import os
import subprocess
import sys

from frames import Wire, check, check_sum, done, equal, rows, show, wait_pass, wait_until
from scapy.all import ICMP, IP, UDP, Ether, Raw
from subscribers import GATEWAY4, SUBSCRIBER, SUBSCRIBERS, INTERNET4, UPF4, from_upf, inner, silent_gtpu, to_frame

# Two workers and the control thread wake a few dozen times a second; polling, they did 10,000 times.
FEW = 1000


class World:
    def __init__(self):
        self.subscriber, self.upf = Wire("home0"), Wire("upf0")
        mac = {port["name"]: port["mac"] for port in show("port")}
        self.access, self.core = mac["access"], mac["core"]
        status = subprocess.check_output([f"{os.environ['BIN']}/isthmus", "status", "-j"])
        self.data_plane = json.loads(status)["dp_pid"]

    def wakings(self):
        """How often a thread of the data plane went to sleep, and so woke."""
        sum_ = 0
        for file in glob.glob(f"/proc/{self.data_plane}/task/*/status"):
            with open(file, encoding="ascii") as f:
                sum_ += sum(int(line.split()[1]) for line in f if line.startswith("voluntary_ctxt_switches"))
        return sum_

    def wakings_in_a_second(self):
        before = self.wakings()
        wait_pass(1)
        return self.wakings() - before

    def fall_asleep(self, what):
        check(any(self.wakings_in_a_second() < FEW for _ in range(8)), f"{what}: it does not fall asleep")


def first_packets(w):
    """Each subscriber's packet is the first after a rest. Some live on the worker that the packet did not come to."""
    handed_over = lambda: sum(row["handed_over"] for row in show("worker"))
    before = handed_over()
    for n, subscriber in enumerate(SUBSCRIBERS):
        packet = bytes(inner(4, subscriber.ipv4, INTERNET4, seed=n))
        w.fall_asleep(subscriber.name)
        w.subscriber.send(to_frame(subscriber, w.access, inner(4, subscriber.ipv4, INTERNET4, seed=n), pad=False))
        check(w.upf.receive(lambda d, p=packet: d.endswith(p[-80:]), 1, f"the first packet of {subscriber.name}"),
              subscriber.name)
    check(handed_over() > before, "no packet was handed over")


def shaped(w):
    """Packets that wait for their subscriber's rate leave one after the other while no other packet comes."""
    alice = SUBSCRIBER["alice"]
    packets = [inner(4, INTERNET4, alice.ipv4, size=900, seed=100 + n) for n in range(20)]
    w.fall_asleep("before shaped packets")
    w.upf.send(*(from_upf(alice, w.core, w.upf.mac, p) for p in packets))
    got = w.subscriber.receive(lambda d: any(d.endswith(bytes(p)[-80:]) for p in packets), len(packets),
                               "shaped packets")
    equal("shaped packets", [d[-80:] for d in got], [bytes(p)[-80:] for p in packets])


def held_fragment(w):
    """A fragment whose siblings never come is given up after a second, by a worker that nothing else wakes."""
    head = IP(src=UPF4, dst=GATEWAY4, id=9, flags="MF") / UDP(sport=2152, dport=2152) / Raw(bytes(72))
    w.fall_asleep("before a fragment")
    w.upf.send(bytes(Ether(src=w.upf.mac, dst=w.core) / head))
    wait_until(lambda: rows("drop").get("reassembly-timeout", 0) == 1, "the fragment to be given up")


def control_timer(w):
    """The control thread asks for a host that does not answer, again and again, then gives up what waits for it."""
    ping = IP(src="10.30.0.77", dst=GATEWAY4) / ICMP(id=7) / Raw(b"anybody there?")
    w.fall_asleep("before an unknown neighbour")
    w.upf.send(bytes(Ether(src=w.upf.mac, dst=w.core) / ping))
    asks = lambda d: d[12:14] == b"\x08\x06" and d[38:42] == bytes((10, 30, 0, 77))
    check(len(w.upf.receive(asks, 3, "ARP requests")) >= 3, "ARP requests")
    wait_until(lambda: show("total")["held"] == 0, "the answer to be given up")


def main():
    w = World()
    silent = silent_gtpu()
    first_packets(w)
    shaped(w)
    held_fragment(w)
    control_timer(w)
    w.fall_asleep("at the end")
    check_sum("at the end")
    del silent
    done("idle")


sys.exit(main())
