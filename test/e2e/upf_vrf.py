# SPDX-License-Identifier: Apache-2.0
"""UEs with one address in two network instances, whose VRFs have the same addresses: each reaches its own network."""

import os
import subprocess

import n4
from frames import Wire, check, check_sum, done, equal, rows, show, wait_until
from n4 import DELETE, Node, far_down, fteid, group, instance, pdr_up, u8, u16, u32, ue_ip
from scapy.all import ICMP, UDP, Ether, IP, Raw
from subscribers import silent_gtpu
from scapy.contrib.gtp import GTP_U_Header, GTPPDUSessionContainer

UE, NETWORK, BEHIND = "10.45.0.5", "10.60.0.2", "198.51.100.1"


class Subscriber:
    def __init__(self, w, n, network):
        self.w, self.teid, self.network = w, 0x1000 + n, network
        down = group(1, u16(56, 2), u32(29, 100), group(2, u8(20, 1), instance(network), ue_ip(UE, destination=True)),
                     u32(108, 2))
        up = group(3, u32(108, 1), u8(44, 2), group(4, u8(42, 1), instance(network)))
        answer = w.smf.establish(100 + n, pdr_up(1, fteid(self.teid), extra=ue_ip(UE)) + down + up +
                                 far_down(teid=0x9000 + n))
        equal(f"establishment in {network}", answer and answer.cause, n4.ACCEPTED)
        self.seid = answer.seid

    def send(self, inner, to):
        gtpu = GTP_U_Header(teid=self.teid, gtp_type=255) / GTPPDUSessionContainer(type=1, QFI=9)
        self.w.gnb.send(Ether(src=self.w.gnb.mac, dst=self.w.mac) / IP(src=n4.GNB, dst=n4.N3) /
                        UDP(sport=2152, dport=2152) / gtpu / IP(src=UE, dst=to, ttl=17) / inner)

    def hears(self, mark, what):
        teid = (0x9000 + self.teid - 0x1000).to_bytes(4, "big")
        return self.w.gnb.frame(lambda d: d[36:38] == b"\x08\x68" and d[46:50] == teid and mark in d, what)

    def asks(self, to, n):
        mark = f" {self.network} {to} {n}".encode()
        self.send(UDP(sport=5001, dport=40010) / Raw(mark), to)
        self.hears(self.network.encode() + mark, f"{self.network}: {to} answers, packet {n}")

    def pings(self, to):
        self.send(ICMP(id=7, seq=1) / Raw(b"guarded"), to)


def explain(*arguments):
    command = [os.environ["BIN"] + "/isthmus", "explain", *arguments]
    out = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return out.returncode, out.stdout + out.stderr


def asked_about(both):
    """Packets to ask about: of the session, VRF and VLAN that are meant, and refused where several may be."""
    names = {s.network: f"n4.{s.seid:016x}" for s in both}
    up, down = ["--to", f"{BEHIND}:53"], ["--to", f"{BEHIND}:53", "--downlink"]
    for said, words in ((["--ue", UE, *up], list(names.values())), (["--ue", UE, *down], ["blue-dn, red-dn"])):
        status, text = explain(*said)
        check(status == 1 and all(word in text for word in words), f"explain {said}: {status} {text}")
    for network, name in names.items():
        asked = ((["--session", name, *up], [f"session {name}", f"; VRF {network}", f"on {network}-dn"]),
                 (["--session", name, *down, "--interface", f"{network}-dn"],
                  [f"interface {network}-dn", f"session {name}", "= sent on n3"]))
        for said, words in asked:
            status, text = explain(*said)
            check(status == 0 and all(word in text for word in words), f"explain {said}: {status} {text}")
    status, text = explain("--ue", UE, "--to", "10.62.0.9", "--downlink", "--interface", "red-site")
    check(status == 0 and "interface red-site, VLAN 30" in text and names["red"] in text, f"by a VLAN: {text}")


class World:
    def __init__(self):
        self.gnb = Wire("gnb0")
        self.mac = {port["name"]: port["mac"] for port in show("port")}["n3"]
        self.smf = Node(n4.SMF1, "smf1.isthmus.test")
        equal("association", getattr(self.smf.associate(), "cause", None), n4.ACCEPTED)
        self.sinks = silent_gtpu()


def main():
    w = World()
    both = [Subscriber(w, n + 1, network) for n, network in enumerate(("red", "blue"))]
    for n in range(4):  # the first ones by the full nodes, in turns
        for s in both:
            for to in (NETWORK, BEHIND):
                s.asks(to, n)
    for s in both:  # addresses of ours are guarded in the VRF that the session leaves by, and in no other
        s.pings("10.60.0.1")
        s.pings("10.30.0.1")
    wait_until(lambda: rows("drop").get("subscriber-to-gateway", 0) == 2, "what is for us to be dropped")
    asked_about(both)
    equal("UE addresses", {r["name"]: r["ue_addresses"] for r in show("instance")}, {"access": 0, "red": 1, "blue": 1})
    for s in both:
        answer = w.smf.request(DELETE, b"", seid=s.seid)
        equal("deletion", getattr(answer, "cause", None), n4.ACCEPTED)
    check_sum("VRFs")
    done("VRFs")


if __name__ == "__main__":
    main()
