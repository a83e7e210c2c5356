#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Between a control plane and a data plane of today: makes each look to the other like one of another age.

usage: contract_relay.py AGE LISTEN CONNECT, two socket paths. AGES says of which structs the control plane knows more
bytes, or fewer. Its orders arrive in those sizes; its reports come as from a data plane that knows fewer, or more.
"""

import os
import re
import socket
import struct
import sys
import threading
from pathlib import Path

HEADER = struct.Struct("=IHHII") # api_header: magic, type, flags, length, sequence
HEAD = struct.Struct("=HHI") # api_part_head: part, size, count
LAYOUT = struct.Struct("=HHIII") # api_layout: version, part, size, digest, pad
PART_LAYOUT = 65

# {struct: bytes that the control plane knows more, or fewer, in orders}, the same in reports, and a struct whose layout
# differs within its size.
AGES = {
    "more": (
        dict.fromkeys("hello session pdr far acl_rule path stats_request list".split(), 8) | {"engine": 4, "port": 4},
        {"hello": -4, "route_row": -40, "total_row": -8},
        None,
    ),
    "fewer": (
        {"session": -40, "qer": -4},
        dict.fromkeys("hello session_row total_row digest event status route_row".split(), 8),
        None,
    ),
    "other": ({}, {}, "session"),
}


def layouts():
    """{struct: (part, [(bytes, digest) after each field])} of the contract of today."""
    top = Path(__file__).resolve().parents[2]
    text = (top / "api/layout.inc").read_text("utf-8")
    step = re.compile(r"STEP\((\d+), (0x\w+)\)")
    return {name: (int(part), [(int(size), int(digest, 16)) for size, digest in step.findall(fields)])
            for name, part, fields in re.findall(r"PART\(api_(\w+), (\d+),(.*?\))\)$", text, re.S | re.M)}


class Side:
    """The change of one direction of a connection. junk: octets that only the sender knows are not zero."""

    def __init__(self, more, other, junk):
        self.more, self.sizes, self.digests, self.junk = {}, {}, {}, junk
        for name, (part, steps) in layouts().items():
            size = steps[-1][0] + more.get(name, 0)
            self.more[part], self.sizes[part] = more.get(name, 0), size
            digest = dict(steps).get(size) # a longer struct's is unknown here
            if digest is None and size < steps[-1][0]:
                sys.exit(f"api_{name} has no field that ends after {size} bytes")
            self.digests[part] = (digest or 0) ^ (name == other)

    def row(self, part, row):
        more = self.more.get(part, 0)
        if part == PART_LAYOUT:
            version, of, _, _, pad = LAYOUT.unpack(row)
            return LAYOUT.pack(version, of, self.sizes[of], self.digests[of], pad)
        if more < 0 and any(row[more:]) and not self.junk:
            print(f"FAIL: part {part} says something in what its sender does not know", flush=True)
            os._exit(1) # of all threads
        return row[:more] if more < 0 else row + (b"\xa5" if self.junk else b"\0") * more

    def body(self, body):
        out = b""
        while body:
            part, size, count = HEAD.unpack_from(body)
            rows = [self.row(part, body[HEAD.size + i * size : HEAD.size + (i + 1) * size]) for i in range(count)]
            body = body[HEAD.size + (size * count + 7) // 8 * 8 :]
            rows_bytes = b"".join(rows)
            out += HEAD.pack(part, size + self.more.get(part, 0), count) + rows_bytes + bytes(-len(rows_bytes) % 8)
        return out

    def pump(self, source, to):
        """Carries messages until either end is closed, then closes both."""
        try:
            with source.makefile("rb") as f:
                while len(head := f.read(HEADER.size)) == HEADER.size:
                    magic, kind, flags, length, sequence = HEADER.unpack(head)
                    body = self.body(f.read(length))
                    to.sendall(HEADER.pack(magic, kind, flags, len(body), sequence) + body)
        except OSError:
            pass
        for end in (source, to):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def main():
    age, listen, connect = sys.argv[1:]
    orders, reports, other = AGES[age]
    down, up = Side(orders, other, junk=False), Side(reports, other, junk=True)
    server = socket.socket(socket.AF_UNIX)
    server.bind(listen)
    server.listen()
    while True:
        client, _ = server.accept()
        peer = socket.socket(socket.AF_UNIX)
        try:
            peer.connect(connect)
        except OSError: # no data plane yet
            client.close()
            continue
        for side, ends in ((down, (client, peer)), (up, (peer, client))):
            threading.Thread(target=side.pump, args=ends, daemon=True).start()


if __name__ == "__main__":
    main()
