# SPDX-License-Identifier: Apache-2.0
"""The other side of link aggregation: answers LACPDUs (IEEE 802.1AX clause 6.4.2.3) on the interfaces named, as one
system with one key that agrees to everything. It prints what the actor there does. After SIGUSR1 it takes the first
link out.

usage: lacp.py INTERFACE..."""

import select
import signal
import socket
import struct
import sys

SLOW_PROTOCOLS = bytes.fromhex("0180c2000002")
ACTIVITY, TIMEOUT, AGGREGATION, SYNCHRONIZATION, COLLECTING, DISTRIBUTING = (1 << i for i in range(6))
SYSTEM = bytes.fromhex("02000000ac01")
KEY = 7


def answer(request, port, mac, out):
    """Our LACPDU: ourselves as actor, and as partner exactly the sender's own state."""
    state = ACTIVITY | TIMEOUT | AGGREGATION | (0 if out else SYNCHRONIZATION | COLLECTING | DISTRIBUTING)
    actor = struct.pack(">BBH6sHHHB3x", 1, 20, 0x8000, SYSTEM, KEY, 0x8000, port, state)
    partner = bytes([2, 20]) + request[18:33] + bytes(3)  # the sender's actor information without its type and length
    collector = struct.pack(">BBH12x", 3, 16, 0)
    return SLOW_PROTOCOLS + mac + b"\x88\x09\x01\x01" + actor + partner + collector + bytes(52)


def listen(name):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                      socket.htons(3))  # ETH_P_ALL: before the bridge, which keeps 01:80:c2:…
    s.bind((name, 0))
    return s


def main():
    out = set()
    sockets = {listen(name): port for port, name in enumerate(sys.argv[1:], 1)}
    signal.signal(signal.SIGUSR1, lambda *_: out.add(1))
    while True:
        for s in select.select(sockets, [], [])[0]:
            try:
                frame, address = s.recvfrom(2048)
                if (address[2] == socket.PACKET_OUTGOING or frame[:6] != SLOW_PROTOCOLS
                        or frame[12:16] != b"\x88\x09\x01\x01"):
                    continue
                state = frame[32]
                said = [word for bit, word in ((COLLECTING, "collecting"), (DISTRIBUTING, "distributing"))
                        if state & bit]
                print(f"{address[0]}: {', '.join(said)}" if state & DISTRIBUTING else f"{address[0]}: not distributing")
                s.send(answer(frame, sockets[s], s.getsockname()[4], sockets[s] in out))
            except OSError:
                pass  # the link is down


if __name__ == "__main__":
    main()
