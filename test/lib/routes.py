# SPDX-License-Identifier: Apache-2.0
"""Writes many IPv4 routes into the kernel of this network namespace, far faster than `ip -batch`: 256 netlink messages
a system call, acknowledged by the last one alone.

Usage: routes.py add|del|flap COUNT GATEWAY DEVICE [ROUNDS] (flap: del and add, ROUNDS times).
The i-th route is to 20.0.0.0/24 + i. It prints when it began (ns since 1970), and how many changes a second the kernel
took."""
import socket
import struct
import sys
import time

NEW, DELETE = 24, 25  # RTM_NEWROUTE, RTM_DELROUTE
REQUEST, ACK, REPLACE, CREATE = 1, 4, 0x100, 0x400
BATCH = 256


def message(add, number, gateway, device, flags):
    """A route as linux/rtnetlink.h has it: header, struct rtmsg, attributes destination, gateway, device."""
    body = struct.pack("=BBBBBBBBI", socket.AF_INET, 24, 0, 0, 254, 4, 0, 1, 0)  # table main, static, universe, unicast
    body += struct.pack("=HH4s", 8, 1, struct.pack(">I", (20 << 24) + (number << 8)))
    body += struct.pack("=HH4s", 8, 5, gateway) + struct.pack("=HHI", 8, 4, device)
    kind, flags = (NEW, flags | REPLACE | CREATE) if add else (DELETE, flags)
    return struct.pack("=IHHII", 16 + len(body), kind, flags | REQUEST, number, 0) + body


def batches(add, count, gateway, device):
    for begin in range(0, count, BATCH):
        end = min(begin + BATCH, count)
        yield b"".join(message(add, i, gateway, device, ACK if i == end - 1 else 0) for i in range(begin, end))


def write(link, list_of_batches):
    for batch in list_of_batches:
        link.send(batch)
        answer = link.recv(65536)
        error = struct.unpack_from("=i", answer, 16)[0]
        if error != 0:
            sys.exit(f"the kernel refuses a route: error {error}")


def main():
    verb, count, gateway, device = sys.argv[1], int(sys.argv[2]), socket.inet_aton(sys.argv[3]), sys.argv[4]
    rounds = int(sys.argv[5]) if len(sys.argv) > 5 else 1
    index = socket.if_nametoindex(device)
    verbs = {"add": [True], "del": [False], "flap": [False, True] * rounds}[verb]
    ready = {add: list(batches(add, count, gateway, index)) for add in set(verbs)}
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as link:
        began = time.time()
        for add in verbs:
            write(link, ready[add])
        took = time.time() - began
    print(f"{int(began * 1e9)} {int(count * len(verbs) / took)}")


main()
