# SPDX-License-Identifier: Apache-2.0
"""The channel of api/isthmus_api.h as a second control plane sees it: frames of subscribers, and answers to them."""

import socket
import struct
from collections import namedtuple

MAGIC, VERSION = 0x48545349, 1
HELLO, CHANNEL, SEND = 1, 14, 15
LAST, ERROR = 1, 2
PART_HELLO, PART_STATUS, PART_FRAME, PART_OCTETS, PART_PORT = 64, 66, 91, 92, 93
HEADER = struct.Struct("=IHHII")
HEAD = struct.Struct("=HHI")
FRAME = struct.Struct("=32sQIHHHH6sB5x")
PORT = struct.Struct("=32s6s2x16x")
REASONS = {1: "pppoe-discovery", 2: "ppp-control", 3: "dhcp", 4: "dhcp6", 5: "router-solicitation", 6: "first-packet",
           7: "neighbour-answer"}

Up = namedtuple("Up", "port seid ethertype tpid s_tag c_tag mac reason octets")


def parts(body):
    at = 0
    while at < len(body):
        part, size, count = HEAD.unpack_from(body, at)
        at += HEAD.size
        yield part, size, body[at : at + size * count]
        at += (size * count + 7) & ~7


def name(raw):
    return raw.split(b"\0")[0].decode()


class Channel:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.socket.settimeout(20)
        self.frames, self.ports = [], {}
        hello = struct.pack("=IIQQQII32s64sII", VERSION, VERSION, 0, 0, 0, 0, 0, b"test", b"", 0, 0)
        self._write(HELLO, HEAD.pack(PART_HELLO, len(hello), 1) + hello)
        while not self._read()[1] & LAST:
            pass
        self._write(CHANNEL, b"")
        self._take(self._read()[2])

    def _write(self, kind, body):
        self.socket.sendall(HEADER.pack(MAGIC, kind, LAST, len(body), 0) + body)

    def _exactly(self, count):
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise EOFError("the data plane closed the channel")
            data += more
        return data

    def _read(self):
        magic, kind, flags, length, _ = HEADER.unpack(self._exactly(HEADER.size))
        assert magic == MAGIC
        body = self._exactly(length)
        if flags & ERROR:
            text = next(parts(body))[2]
            raise OSError(name(text[40:296]))
        return kind, flags, body

    def _take(self, body):
        head = None
        for part, size, rows in parts(body):
            if part == PART_PORT:
                self.ports = {name(n): mac.hex(":") for n, mac in PORT.iter_unpack(rows)}
            elif part == PART_FRAME:
                head = FRAME.unpack(rows)
                self._keep(head, b"")
            elif part == PART_OCTETS:
                self.frames.pop()
                self._keep(head, rows)

    def _keep(self, head, octets):
        port, seid, length, ethertype, tpid, s_tag, c_tag, mac, reason = head
        self.frames.append(
            Up(name(port), seid, ethertype, tpid, s_tag, c_tag, mac.hex(":"), REASONS[reason], octets[:length])
        )

    def next(self):
        """The next frame that came up."""
        while not self.frames:
            self._take(self._read()[2])
        return self.frames.pop(0)

    def send(self, port, mac, ethertype, octets, tpid=0, s_tag=0, c_tag=0):
        mac = bytes.fromhex(mac.replace(":", ""))
        head = FRAME.pack(port.encode(), 0, len(octets), ethertype, tpid, s_tag, c_tag, mac, 0)
        padded = octets + bytes(-len(octets) % 8)
        frame = HEAD.pack(PART_FRAME, FRAME.size, 1) + head
        self._write(SEND, frame + HEAD.pack(PART_OCTETS, 8, len(padded) // 8) + padded)
