# SPDX-License-Identifier: Apache-2.0
"""Plans of subscribers by RADIUS, judged by packets: times, quota, portal, networks behind a home, pool, VRF, DNS."""

import socket

import ipoe
import pppoe
from frames import SECONDS, Wire, check, check_sum, done, equal, rows, wait_until
from radius import of_kind, radclient, subscriber
from scapy.all import ICMP, IP, TCP, UDP, ICMPv6EchoRequest, IPv6, Raw

CORE, CORE6, PORTAL, WEB = "10.60.0.2", "fd00:60::2", "http://portal.test/", "192.0.2.80"


def home(wire, number, user):
    """A home of an accepted user."""
    client = pppoe.Client(wire, f"02:00:00:00:01:{number:02x}", tags=(101, number), user=user)
    check(client.sign_in(v6=False), f"{user} is not let in")
    return client


def pings(client, destination=CORE, source=None):
    client.send(pppoe.IP4, bytes(IP(src=source or client.ipv4, dst=destination) / ICMP(id=7, seq=1) / Raw(b"x" * 72)))


def pinged(client, destination=CORE, source=None):
    """A ping is answered, at the address it came from."""
    pings(client, destination, source)
    got = client.echo_reply(pppoe.IP4)
    check(got is not None and IP(got).dst == (source or client.ipv4), f"no answer to {client.user}'s ping: {got}")


def stopped(user):
    found = [r for r in of_kind("Stop") if r["User-Name"] == f'"{user}"']
    return found[0] if found else None


def ends(client, cause):
    """The gateway ends the session: the home gets its end, accounting the cause. Its last record."""
    wait_until(lambda: stopped(client.user), f"the last record of {client.user}")
    heard = client.next(pppoe.LCP)
    check(heard is not None and heard[1] == pppoe.TERMINATE, f"{client.user} hears no Terminate-Request: {heard}")
    stop = stopped(client.user) or {}
    equal(f"why {client.user} ends", stop.get("Acct-Terminate-Cause"), cause)
    return stop


def quota(client):
    """1,000 bytes both ways are granted: ten packets of 100 bytes pass, and no more."""
    for _ in range(5):
        pinged(client)
    pings(client)
    stop = ends(client, "Session-Timeout")
    octets = int(stop.get("Acct-Input-Octets", 0)), int(stop.get("Acct-Output-Octets", 0))
    equal("octets of the quota", octets, (500, 500))


def prepaid(client):
    """The profile's quota is used up by packets of a network behind the home: the portal, until there is another."""
    for _ in range(5):
        pinged(client, source="10.9.1.7")
    pings(client)
    wait_until(lambda: changed(client.user), "a record of the used up quota")
    portal(client, "subscriber:quota=5000")


def changed(user):
    return [r for r in of_kind("Interim-Update") if r["User-Name"] == f'"{user}"']


def portal(client, way_out, url=PORTAL, garden=()):
    """HTTP is answered with the portal's URL, names are looked up, the garden is reached, the rest is dropped; a CoA
    ends it."""
    known = len(changed(client.user))

    def say(flags, text=b"", **more):
        tcp = TCP(sport=33000, dport=80, flags=flags, **more)
        client.send(pppoe.IP4, bytes(IP(src=client.ipv4, dst=WEB) / tcp / text))

    def heard(test):
        while (got := client.next(pppoe.IP4)) is not None:
            packet = IP(got[3])
            if TCP in packet and packet.src == WEB and test(packet[TCP]):
                return packet[TCP]
        return TCP(flags=0)
    say("S", seq=1000)
    syn = heard(lambda t: t.flags == "SA")
    equal("acknowledged", syn.ack, 1001)
    say("PA", b"GET / HTTP/1.1\r\nHost: news.test\r\n\r\n", seq=1001, ack=syn.seq + 1)
    answer = bytes(heard(lambda t: bytes(t.payload)).payload)
    check(answer.startswith(b"HTTP/1.1 302") and b"Location: " + url.encode() + b"\r\n" in answer, f"HTTP: {answer}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as names:
        names.bind((CORE, 53))
        names.settimeout(SECONDS)
        client.send(pppoe.IP4, bytes(IP(src=client.ipv4, dst=CORE) / UDP(sport=4000, dport=53) / Raw(b"name")))
        equal("DNS of a captive home", names.recv(100), b"name")
    for address in [*garden, "100.64.0.1"]:  # the gateway itself
        pinged(client, address)
    before = rows("drop").get("redirect-not-http", 0)
    pings(client)
    wait_until(lambda: rows("drop").get("redirect-not-http", 0) == before + 1, "a captive home's ping to be dropped")
    out = radclient("coa", f'User-Name = "{client.user}", Cisco-AVPair = "{way_out}"')
    check("CoA-ACK" in out, f"no CoA-ACK: {out}")
    pinged(client)
    wait_until(lambda: len(changed(client.user)) == known + 1, "a record of the change")


def framed(client):
    """Packets of a network behind the home pass both ways, those of another do not."""
    pinged(client, source="10.9.0.7")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(b"down", ("10.9.0.8", 4000))
    got = client.next(pppoe.IP4)
    check(got is not None and IP(got[3]).dst == "10.9.0.8", f"nothing comes to the framed route: {got}")
    before = rows("drop").get("source-spoofed", 0)
    pings(client, source="10.10.0.7")
    wait_until(lambda: rows("drop").get("source-spoofed", 0) == before + 1, "a strange source to be dropped")


def framed6(wire):
    """The same over IPv6."""
    client = pppoe.Client(wire, "02:00:00:00:01:0a", tags=(101, 10), user="framed6")
    check(client.sign_in(), "framed6 is not let in")

    def sends(source):
        client.send(pppoe.IP6, bytes(IPv6(src=source, dst=CORE6) / ICMPv6EchoRequest(seq=1)))
    sends("2001:db8:9:7::7")
    got = client.echo_reply(pppoe.IP6)
    check(got is not None and IPv6(got).dst == "2001:db8:9:7::7", f"no answer behind framed6: {got}")
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
        s.sendto(b"down", ("2001:db8:9::8", 4000))
    heard = []
    while "2001:db8:9::8" not in heard and (got := client.next(pppoe.IP6)) is not None:
        heard.append(IPv6(got[3]).dst)
    check("2001:db8:9::8" in heard, f"nothing comes to the framed route of IPv6, but {heard}")
    before = rows("drop").get("source-spoofed", 0)
    sends("2001:db8:a::7")
    wait_until(lambda: rows("drop").get("source-spoofed", 0) == before + 1, "a strange source of IPv6 to be dropped")


def twin(wire, first):
    """A network that is behind another home refuses the sign-in, in words; the other home keeps it."""
    second = pppoe.Client(wire, "02:00:00:00:01:08", tags=(101, 8), user="twin")
    check(not second.sign_in(v6=False), "the twin is let in")
    why = [a["why"] for a in subscriber("twin")["attempts"]]
    owner = f"framed route 10.9.0.0/24 is {first.user}'s"
    check(any(owner in w for w in why), f"why the twin is refused: {why}")
    pinged(first, source="10.9.0.7")


def by_dhcp(wire):
    """A pool and name servers by RADIUS, in the answer of DHCP."""
    client = ipoe.Client(wire, "02:00:00:00:02:01", (200, 1))
    client.sign_in4()
    equal("name servers", client.dns, ("192.0.2.1", "192.0.2.2"))
    check(client.ipv4.startswith("100.65.9."), f"Framed-Pool: {client.ipv4}")
    client.pinged(CORE)


def idle(silent, active):
    """A silent home ends by the data plane's event, a sending one does not."""
    def over():
        pinged(active)
        return stopped(silent.user)
    wait_until(over, "the silent home to end", 20)
    ends(silent, "Idle-Timeout")
    equal("who sends", subscriber(active.user)["state"], "up")


def main():
    wire = Wire("home0")
    silent, active, timed = home(wire, 1, "silent"), home(wire, 2, "active"), home(wire, 3, "timed")
    pinged(timed)  # at once: it has five seconds
    idle(silent, active)
    ends(timed, "Session-Timeout")
    quota(home(wire, 4, "quota"))
    portal(home(wire, 5, "portal"), "subscriber:redirect=", "http://192.0.2.81/", ("192.0.2.81", "198.18.0.80"))
    prepaid(home(wire, 9, "prepaid"))
    behind = home(wire, 6, "framed")
    framed(behind)
    framed6(wire)
    twin(wire, behind)
    pinged(home(wire, 7, "red"), "198.51.100.1")
    by_dhcp(wire)
    check_sum("plans")
    done("plans")


main()
