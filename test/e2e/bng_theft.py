# SPDX-License-Identifier: Apache-2.0
"""Homes by DHCP that take a neighbour's MAC or address get none of its sessions."""

import ipoe
from frames import Wire, check, check_sum, done, equal, rows, wait_until
from radius import subscriber
from scapy.all import ARP, ICMP, IP

CORE, GATEWAY = "10.60.0.2", "100.64.0.1"


def dropped(reason, send, what):
    """Each packet sent is dropped once, by this name."""
    before = rows("drop").get(reason, 0)
    send()
    wait_until(lambda: rows("drop").get(reason, 0) == before + 1, f"{what} to be dropped as {reason}")


def claims(home, address):
    """An ARP request that claims the address for the home."""
    request = ARP(op=1, hwsrc=home.mac.hex(":"), psrc=address, pdst=GATEWAY)
    home.wire.send(home.frame(0x0806, bytes(request)))


def sends(home, address):
    home.send_ip(IP(src=address, dst=CORE) / ICMP(id=9, seq=1))


def main():
    wire = Wire("home0")
    anna, bob = ipoe.Client(wire, "02:00:00:00:03:01", (300, 1)), ipoe.Client(wire, "02:00:00:00:03:02", (300, 2))
    for home in anna, bob:
        home.sign_in4()
        home.pinged(CORE)

    dropped("source-spoofed", lambda: sends(bob, anna.ipv4), "a neighbour's address")
    dropped("neighbour-spoof", lambda: claims(bob, anna.ipv4), "ARP for a neighbour's address")

    # A neighbour's MAC in one's own VLAN is another line: a session of its own, with another address.
    thief = ipoe.Client(wire, anna.mac.hex(":"), bob.tags)
    thief.message4("request", ("requested_addr", anna.ipv4))
    thief.answered4(6, "DHCPNAK")
    thief.sign_in4()
    check(thief.ipv4 not in (anna.ipv4, bob.ipv4), f"the thief has {thief.ipv4}")
    dropped("source-spoofed", lambda: sends(thief, anna.ipv4), "the address that goes with the MAC")
    thief.release4(anna.ipv4)
    for home in anna, bob, thief:
        home.pinged(CORE)
        row = subscriber(home.ipv4)
        equal(f"who has {home.ipv4}", (row["state"], row["line"], row["mac"]),
              ("up", f"lines:300.{home.tags[1]}", home.mac.hex(":")))

    # With the lease ends what it let pass.
    anna.release4()
    wait_until(lambda: subscriber("lines:300.1")["state"] != "up", "anna to go")
    dropped("subscriber-unknown", lambda: sends(anna, anna.ipv4), "who has no lease")
    dropped("neighbour-unknown-subscriber", lambda: claims(anna, anna.ipv4), "ARP of who has no lease")
    dropped("source-spoofed", lambda: sends(thief, anna.ipv4), "an address that is given back")
    for home in bob, thief:
        home.pinged(CORE)
        home.release4()
    check_sum("theft")
    done("theft")


main()
