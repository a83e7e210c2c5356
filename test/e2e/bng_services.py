# SPDX-License-Identifier: Apache-2.0
"""Services of a subscriber by RADIUS: access lists from the start, changed while it is on line."""

import socket

import pppoe
from frames import Wire, check, done, equal, rows, wait_until
from radius import of_kind, radclient, subscriber
from scapy.all import ICMP, IP, UDP, Raw

CORE = "10.60.0.2"


def drops():
    """Packets that rules of a subscriber dropped: from it, to it."""
    counts = rows("drop")
    return counts.get("uplink-far-drop", 0), counts.get("downlink-far-drop", 0)


class Server:
    """UDP at two ports: it answers what it gets."""

    def __init__(self):
        self.sockets = {}
        for port in 5000, 5001:
            self.sockets[port] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.sockets[port].bind((CORE, port))
            self.sockets[port].settimeout(60)

    def answers(self, port, text):
        data, peer = self.sockets[port].recvfrom(100)
        equal(f"datagram at port {port}", data, text)
        self.sockets[port].sendto(b"answer to " + data, peer)


def udp(home, port, text):
    home.send(pppoe.IP4, bytes(IP(src=home.ipv4, dst=CORE) / UDP(sport=4000, dport=port) / Raw(text)))


def comes(home, text):
    got = home.next(pppoe.IP4)
    check(got is not None and got[3].endswith(text), f"{text} does not come: {got}")


def change(attributes):
    return radclient("coa", f'User-Name = "anna", {attributes}')


def main():
    server, wire = Server(), Wire("home0")
    bob = pppoe.Client(wire, "02:00:00:00:00:02", tags=(100, 2), user="bob")
    check(not bob.sign_in(v6=False), "bob is let in with a list that is not there")
    anna = pppoe.Client(wire, "02:00:00:00:00:01")
    check(anna.sign_in(v6=False), "anna is not let in")
    attempts = subscriber("bob")["attempts"]
    check(any('no access list "nowhere"' in a["why"] for a in attempts), f"{attempts}")

    # From the start: UDP to one port alone.
    udp(anna, 5000, b"one")
    anna.send(pppoe.IP4, bytes(IP(src=anna.ipv4, dst=CORE) / ICMP(id=7, seq=1)))
    udp(anna, 5001, b"two")
    server.answers(5001, b"two")
    comes(anna, b"answer to two")
    equal("drops", drops(), (2, 0))

    # Nothing from the server's ports comes any more; all goes to them.
    out = change('Filter-Id = "no-udp.out", Cisco-AVPair = "subscriber:acl-up="')
    check("CoA-ACK" in out, f"no CoA-ACK: {out}")
    udp(anna, 5000, b"three")
    server.answers(5000, b"three")
    wait_until(lambda: drops() == (2, 1), "the answer to be dropped")
    anna.send(pppoe.IP4, bytes(IP(src=anna.ipv4, dst=CORE) / ICMP(id=7, seq=2)))
    check(anna.echo_reply(pppoe.IP4) is not None, "no answer to a ping")

    # Unknown names change nothing.
    for attributes in ('Filter-Id = "nowhere.in"', 'Framed-Pool = "prefixes"'):
        out = change(attributes)
        check("CoA-NAK" in out and "Invalid-Attribute-Value" in out, f"{attributes}: {out}")
    udp(anna, 5001, b"four")
    server.answers(5001, b"four")
    wait_until(lambda: drops() == (2, 2), "the answer to be dropped")

    out = change('Cisco-AVPair = "subscriber:acl-down="')
    check("CoA-ACK" in out, f"no CoA-ACK: {out}")
    udp(anna, 5001, b"five")
    server.answers(5001, b"five")
    comes(anna, b"answer to five")

    row = subscriber("anna")
    radclient("disconnect", 'User-Name = "anna"')
    wait_until(lambda: of_kind("Stop"), "the last record")
    stop = of_kind("Stop")[0]
    equal("packets", (stop["Acct-Session-Id"], stop["Acct-Input-Packets"], stop["Acct-Output-Packets"]),
          (f'"{row["session"]}"', "5", "3"))  # what was dropped is not billed
    done("services")


main()
