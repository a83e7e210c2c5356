# SPDX-License-Identifier: Apache-2.0
"""A home's access line: its frames behind an S-tag and a C-tag, or one tag, or none."""

import struct

BROADCAST = b"\xff" * 6


class Line:
    def __init__(self, wire, mac, tags):
        self.wire, self.mac, self.tags, self.gateway = wire, bytes.fromhex(mac.replace(":", "")), tags, BROADCAST

    def tag_bytes(self):
        if len(self.tags) == 2:
            return struct.pack(">HHHH", 0x88A8, self.tags[0], 0x8100, self.tags[1])
        return struct.pack(">HH", 0x8100, self.tags[0]) if self.tags else b""

    def frame(self, kind, payload, to=None):
        return (to or self.gateway) + self.mac + self.tag_bytes() + struct.pack(">H", kind) + payload

    def mine(self, data, kind):
        """The payload of a frame for this home of an EtherType, None for others."""
        at = 12 + len(self.tag_bytes())
        for i, tag in enumerate(self.tags):
            if len(data) < at + 2 or struct.unpack(">H", data[14 + 4 * i:16 + 4 * i])[0] & 0xFFF != tag:
                return None
        if data[:6] != self.mac or data[at:at + 2] != struct.pack(">H", kind):
            return None
        return data[at + 2:]
