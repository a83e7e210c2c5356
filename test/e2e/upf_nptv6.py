# SPDX-License-Identifier: Apache-2.0
"""Subscribers behind NPTv6: their packets reach sockets of the kernel, which checks the checksums, and answers."""

import os
import re
import socket
import subprocess

import n4
from frames import DIR, check, check_sum, done, equal, rows, show, wait_until
from n4 import far_down, far_up, fteid, pdr_down, pdr_up, ue_ip
from upf import World
from upf_nat import listener
from scapy.all import TCP, UDP, ICMPv6EchoReply, ICMPv6EchoRequest, IPv6, Raw

PAIR = ("2001:db8:45::", "2001:db8:8::", 48)
LATER = ("2001:db8:45:1::", "2001:db8:8:5::", 64)


def words(address):
    raw = socket.inet_pton(socket.AF_INET6, address)
    return [int.from_bytes(raw[i:i + 2], "big") for i in range(0, 16, 2)]


def outside_of(address, pair):
    """RFC 6296 from its end: the address with the other prefix and one word such that the sum is the same."""
    inside, outside, bits = pair
    was, mask = words(address), (1 << 128) - (1 << 128 - bits)
    number = lambda w: int("".join(f"{x:04x}" for x in w), 16)
    equal(f"prefix of {address}", number(was) & mask, number(words(inside)))
    now = words(socket.inet_ntop(socket.AF_INET6, (number(was) & ~mask | number(words(outside))).to_bytes(16, "big")))
    at = 3 if bits <= 48 else next(i for i in range(4, 8) if was[i] != 0xffff)
    now[at] = (sum(was) - sum(now) + now[at]) % 0xffff
    return socket.inet_ntop(socket.AF_INET6, b"".join(w.to_bytes(2, "big") for w in now))


class Subscriber:
    def __init__(self, w, n, subnet):
        self.w, self.teid, self.address = w, 0x1000 + n, f"2001:db8:45:{subnet:x}::{n:x}"
        answer = w.smf.establish(100 + n, pdr_up(1, fteid(self.teid), extra=ue_ip(v6=self.address)) +
                                 pdr_down(2, ue6=self.address) + far_up() + far_down(teid=0x9000 + n))
        equal(f"establishment of {self.address}", answer and answer.cause, n4.ACCEPTED)
        self.seid, self.outside = answer.seid, outside_of(self.address, PAIR) if subnet != 0xffff else None

    def send(self, inner, to=n4.DN6):
        self.w.gpdu(self.teid, IPv6(src=self.address, dst=to, hlim=17) / inner)

    def udp(self, mark, to=n4.DN6, port=40010):
        self.send(UDP(sport=5001, dport=port) / Raw(mark), to)

    def hears(self, test, what):
        """The packet inside the G-PDU that comes for this subscriber; tshark finds nothing wrong with it."""
        def ours(data):
            inner = data[50:] if data[42:43] == b"0" else data[58:]  # without extension headers, or with a container
            return (data[12:14] == b"\x08\x00" and data[36:38] == b"\x08\x68" and
                    inner[24:40] == socket.inet_pton(socket.AF_INET6, self.address) and test(inner))
        frames = self.w.gnb.frames(ours, 1, what)
        for f in frames:
            equal(f"{what}: what tshark finds wrong", f.expert(), [])
            at = f.get("ipv6").position
            return IPv6(f.data[at:])
        return None


def echo(server, s, outside, what):
    """A datagram to a socket of the data network and back."""
    mark = s.w.mark(60)
    s.udp(mark)
    frame = s.w.at_dn(mark, what)
    equal(f"{what}: source", frame.value("ipv6", "ipv6.src"), outside)
    equal(f"{what}: what tshark finds wrong", frame.expert(), [])
    data, peer = server.recvfrom(2000)
    equal(f"{what}: datagram", (data, peer[:2]), (mark, (outside, 5001)))
    mark = s.w.mark(60)
    server.sendto(mark, peer)
    heard = s.hears(lambda d: mark in d, f"{what}: answer")
    if heard is not None:
        equal(f"{what}: answer", (heard.src, heard.dst, heard[UDP].dport), (n4.DN6, s.address, 5001))


def every_protocol(w, a, b):
    tcp = listener(socket.SOCK_STREAM, 40012, n4.DN6)
    tcp.listen()
    a.send(TCP(sport=5002, dport=40012, flags="S", seq=1000))
    answer = a.hears(lambda d: d[6] == 6, "SYN ACK")
    if answer is not None:
        equal("SYN ACK", (answer[TCP].flags, answer[TCP].dport, answer[TCP].ack), ("SA", 5002, 1001))
        a.send(TCP(sport=5002, dport=40012, flags="PA", seq=1001, ack=answer[TCP].seq + 1) / Raw(b"hello"))
        link, peer = tcp.accept()
        equal("TCP", (link.recv(100), peer[0]), (b"hello", a.outside))
    a.send(ICMPv6EchoRequest(id=77, seq=3, data=b"p" * 40))
    answer = a.hears(lambda d: b"p" * 40 in d, "echo reply")
    equal("echo reply", answer is not None and (ICMPv6EchoReply in answer, answer[ICMPv6EchoReply].id), (True, 77))
    mark = w.mark(60)
    a.udp(mark, port=40999)  # no listener
    answer = a.hears(lambda d: mark in d, "port unreachable")
    if answer is not None:
        quoted = IPv6(bytes(answer)[48:])
        equal("what it quotes", (quoted.src, quoted[UDP].sport, quoted.dst), (a.address, 5001, n4.DN6))
    mark = w.mark(60)
    a.udp(mark, b.outside, 5001)
    heard = b.hears(lambda d: mark in d, "hairpin")
    equal("source of the hairpin", heard is not None and heard.src, a.outside)


def dropped(w, last, a):
    last.udp(w.mark(60))
    w.down("2001:db8:8:ffff::1")
    wait_until(lambda: rows("drop").get("nptv6-unmapped", 0) == 2, "what has no counterpart to be dropped")
    w.down(a.address)
    wait_until(lambda: rows("drop").get("nptv6-inside-address", 0) == 1, "an inside address from outside to be dropped")


def applies(text, outcome):
    with open(f"{DIR}/changed.yaml", "w", encoding="utf-8") as f:
        f.write(text)
    run = subprocess.run([f"{os.environ['BUILD']}/isthmus", "config", "apply", f"{DIR}/changed.yaml"],
                         capture_output=True, text=True, check=False)
    return equal(f"outcome of the change: {run.stderr}", run.returncode == 0, outcome) and run.stderr


def changes(w, server, a, c):
    """Other prefixes hold at once and as a whole; a file that is refused changes nothing."""
    with open(f"{DIR}/isthmus.yaml", encoding="utf-8") as f:
        old = f.read()
    pair = lambda inside, outside: re.sub(r"nptv6: \[.*?\]",
                                          f'nptv6: [{{inside: "{inside}", outside: "{outside}"}}]', old)
    said = applies(pair("2001:db8:45::/48", "2001:db8:8:100::/56"), False)
    check("isthmus" not in str(said) or "differ in length: write both as /56" in str(said), f"reason: {said}")
    echo(server, a, a.outside, "after a refused change")
    applies(pair("2001:db8:45:1::/64", "2001:db8:8:5::/64"), True)
    echo(server, a, outside_of(a.address, LATER), "after a change")
    mark = w.mark(60)
    c.udp(mark)
    equal("who is not translated any more", w.at_dn(mark, "as it is").value("ipv6", "ipv6.src"), c.address)
    equal("counts of the new pair", [(r["inside"], r["packets_out"], r["packets_in"]) for r in show("nptv6")],
          [("2001:db8:45:1::/64", 1, 1)])


def main():
    w = World()
    server = listener(socket.SOCK_DGRAM, 40010, n4.DN6)
    a, b, c, last = (Subscriber(w, n + 1, subnet) for n, subnet in enumerate((1, 0xffc2, 0xfffe, 0xffff)))
    equal("outside address that has subnet 0 for 0xffff", b.outside, "2001:db8:8::2")
    for s in (a, b, c):
        echo(server, s, s.outside, s.address)
    every_protocol(w, a, b)
    dropped(w, last, a)
    row = show("nptv6")[0]
    equal("row", {k: row[k] for k in ("name", "inside", "outside")},
          {"name": "internet", "inside": "2001:db8:45::/48", "outside": "2001:db8:8::/48"})
    check(row["packets_out"] >= 3 + 5 and row["packets_in"] >= 3 + 4, f"counts {row}")
    changes(w, server, a, c)
    for s in (a, b, c, last):
        w.delete(s.seid, f"deletion of {s.address}")
    check_sum("NPTv6")
    done("NPTv6")


if __name__ == "__main__":
    main()
