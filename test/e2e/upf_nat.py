# SPDX-License-Identifier: Apache-2.0
"""Subscribers behind NAT44: their packets reach sockets of the kernel, which checks the checksums, and answers."""

import re
import socket
import struct
import subprocess

import n4
from frames import DIR, check, check_sum, done, equal, rows, show, wait_until
from n4 import far_down, far_up, fteid, pdr_down, pdr_up
from upf import World
from scapy.all import ICMP, IP, TCP, UDP, Raw

OUTSIDE = ("203.0.113.4", "203.0.113.5")
BLOCK, BLOCKS = 32, 2


def listener(kind, port, host=n4.DN):
    s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, kind)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((host, port))
    s.settimeout(60)
    return s


class Subscriber:
    def __init__(self, w, n):
        self.w, self.teid, self.address = w, 0x1000 + n, f"10.45.1.{n}"
        answer = w.smf.establish(100 + n, pdr_up(1, fteid(self.teid), self.address) + pdr_down(2, self.address) +
                                 far_up() + far_down(teid=0x9000 + n))
        equal(f"establishment of {self.address}", answer and answer.cause, n4.ACCEPTED)
        self.seid = answer.seid

    def send(self, inner, to=n4.DN):
        self.w.gpdu(self.teid, IP(src=self.address, dst=to, ttl=17) / inner)

    def udp(self, port, mark, to=(n4.DN, 40010)):
        self.send(UDP(sport=port, dport=to[1]) / Raw(mark), to[0])

    def hears(self, test, what):
        """The packet inside the G-PDU that comes for this subscriber, as scapy reads it, its checksums right."""
        def inside(data):
            if len(data) < 78 or data[12:14] != b"\x08\x00" or data[36:38] != b"\x08\x68":
                return b""
            return data[50:] if data[42] == 0x30 else data[58:]

        def ours(data):
            inner = inside(data)
            return len(inner) > 20 and inner[16:20] == socket.inet_aton(self.address) and test(inner)
        found = self.w.gnb.receive(ours, 1, what)
        if not found:
            return None
        raw = inside(found[0])
        packet, again = IP(raw), IP(raw)
        del again.chksum
        for layer in (UDP, TCP, ICMP):
            if layer in again:
                del again[layer].chksum
        equal(f"{what}: checksums", bytes(IP(bytes(again)))[:len(raw)], raw)
        return packet


def echo(server, s, port, what):
    """A datagram to a socket of the data network and back; the external address and port."""
    mark = s.w.mark(60)
    s.udp(port, mark)
    data, peer = server.recvfrom(2000)
    equal(f"{what}: datagram", data, mark)
    mark = s.w.mark(60)
    server.sendto(mark, peer)
    packet = s.hears(lambda d: mark in d, f"{what}: answer")
    if packet is not None:
        equal(f"{what}: port of the answer", packet[UDP].dport, port)
    return peer


def every_protocol(w, server, a, b):
    one, two = echo(server, a, 5001, "UDP"), echo(server, b, 5001, "UDP of another")
    check(one != two and one[0] in OUTSIDE and 1024 <= one[1] < 1152, f"external {one}, {two}")
    other = listener(socket.SOCK_DGRAM, 40011)  # RFC 4787 REQ-1, REQ-8
    mark = w.mark(60)
    a.udp(5001, mark, (n4.DN, 40011))
    equal("same port towards another", other.recvfrom(2000)[1], one)
    mark = w.mark(60)
    other.sendto(mark, two)
    check(b.hears(lambda d: mark in d, "from whom it never spoke to") is not None, "filtered")

    tcp = listener(socket.SOCK_STREAM, 40012)
    tcp.listen()
    a.send(TCP(sport=5002, dport=40012, flags="S", seq=1000))
    answer = a.hears(lambda d: d[9] == 6, "SYN ACK")
    if answer is not None:
        equal("SYN ACK", (answer[TCP].flags, answer[TCP].dport, answer[TCP].ack), ("SA", 5002, 1001))
        a.send(TCP(sport=5002, dport=40012, flags="PA", seq=1001, ack=answer[TCP].seq + 1) / Raw(b"hello"))
        link, peer = tcp.accept()
        equal("TCP", (link.recv(100), peer[0]), (b"hello", one[0]))

    a.send(ICMP(type=8, id=77, seq=3) / Raw(b"p" * 40))
    answer = a.hears(lambda d: d[9] == 1, "echo reply")
    if answer is not None:
        equal("echo reply", (answer[ICMP].type, answer[ICMP].id, answer[ICMP].seq), (0, 77, 3))
    a.udp(5003, w.mark(60), (n4.DN, 40999))  # no listener
    answer = a.hears(lambda d: d[9] == 1 and d[20] == 3, "port unreachable")
    if answer is not None:
        raw = bytes(answer[ICMP].payload)
        quoted = IP(raw)
        equal("what it quotes", (quoted.src, quoted.sport, quoted.dst, quoted.dport), (a.address, 5003, n4.DN, 40999))
        equal("checksum of the quoted header", sum(struct.unpack(">10H", raw[:20])) % 0xffff, 0)

    mark = w.mark(60)  # RFC 4787 REQ-9
    a.udp(5001, mark, two)
    heard = b.hears(lambda d: mark in d, "hairpin")
    if heard is not None:
        equal("source of the hairpin", (heard.src, heard[UDP].sport), one)


def fill(server, s, first, last):
    mark = s.w.mark(60)
    for port in range(first, last):
        s.udp(port, mark)
    for _ in range(first, last):
        equal(f"{s.address} uses its ports", server.recvfrom(2000)[0], mark)


def limits(w, server, subscribers):
    """One UE's exhausted limit costs no other UE; an exhausted pool is reported by name."""
    a, b = subscribers[:2]
    used = show("nat")[0]["mappings"]
    mine = next(x for x in show("nat-block") if x["inside"] == a.address)["mappings"]
    fill(server, a, 6000, 6000 + BLOCK * BLOCKS - mine)
    a.udp(7000, w.mark(60))
    wait_until(lambda: rows("drop").get("nat-subscriber-limit", 0) == 1, "the subscriber to be told apart")
    echo(server, a, 5001, "what it had works on")
    echo(server, b, 7000, "another one is not hurt")
    equal("mappings", show("nat")[0]["mappings"], used + BLOCK * BLOCKS - mine + 1)
    more = [Subscriber(w, n) for n in range(10, 42)]  # enough on either worker
    before_all, full = show("nat")[0], 0
    for s in more:
        before = rows("drop").get("nat-pool-exhausted", 0)
        s.udp(5001, w.mark(60), (n4.DN, 5005))
        wait_until(lambda m=before, a=s.address: rows("drop").get("nat-pool-exhausted", 0) > m or
                   any(x["inside"] == a for x in show("nat-block")), "a block or a drop")
        full += rows("drop").get("nat-pool-exhausted", 0) > before
    row = show("nat")[0]
    equal("blocks in use", row["used"], row["blocks"])
    equal("subscribers without a block", full, len(more) - (row["blocks"] - before_all["used"]))
    echo(server, b, 7000, "who has a block goes on")
    return more


def records(subscribers, log):
    """Each block was recorded when it was given and when it was taken back, by syslog and by IPFIX."""
    got = []
    log.settimeout(0.5)
    try:
        while True:
            got.append(log.recv(2000).decode())
    except TimeoutError:
        pass
    form = re.compile(r"<134>1 \d{4}-\S+Z \S+ isthmus \d+ NAT44 - block (allocate|release) "
                      r"external=(203\.0\.113\.[45]) ports=(\d+)-(\d+) inside=(10\.45\.1\.\d+) seid=0x[0-9a-f]+")
    said = [m.groups() for m in map(form.fullmatch, got) if m]
    equal("syslog messages of that form", len(said), len(got))
    given = [x[1:] for x in said if x[0] == "allocate"]
    equal("released as given", sorted(x[1:] for x in said if x[0] == "release"), sorted(given))
    check(len(given) >= 8 and all(int(x[2]) - int(x[1]) == BLOCK - 1 for x in given), f"blocks {given}")
    equal("first subscriber's blocks", len([x for x in given if x[3] == subscribers[0].address]), BLOCKS)

    def decoded():
        out = subprocess.run(["tshark", "-r", f"{DIR}/ipfix.pcap", "-T", "fields", "-e", "cflow.nat_event",
                              "-e", "cflow.post_natsource_ipv4_address", "-e", "cflow.srcaddr",
                              "-Y", "cflow.nat_event"],
                             capture_output=True, text=True, check=False).stdout
        return [line.split("\t") for line in out.splitlines()]
    wait_until(lambda: len(decoded()) == len(said), f"{len(said)} IPFIX records, there are {len(decoded())}")
    want = sorted([{"allocate": "16", "release": "17"}[x[0]], x[1], x[4]] for x in said)
    equal("IPFIX records", sorted(decoded()), want)


def main():
    w = World()
    log, ipfix = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    log.bind((n4.SMF1, 5514))
    ipfix.bind((n4.SMF1, 4739))
    log.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    server = listener(socket.SOCK_DGRAM, 40010)
    subscribers = [Subscriber(w, n) for n in (1, 2)]
    every_protocol(w, server, *subscribers)
    subscribers += limits(w, server, subscribers)
    for s in subscribers:
        w.delete(s.seid, f"deletion of {s.address}")
    wait_until(lambda: all(show("nat")[0][k] == 0 for k in ("used", "subscribers", "mappings", "unreported")),
               "nothing to be left of anybody")
    records(subscribers, log)
    check_sum("NAT44")
    done("NAT44")


if __name__ == "__main__":
    main()
