# SPDX-License-Identifier: Apache-2.0
"""A PPPoE client for the tests (RFC 2516, 1661, 1994, 1332, 5072), by hand: it shares no code with the gateway."""

import hashlib
import ipaddress
import struct

from frames import check
from line import BROADCAST, Line

LCP, IPCP, IPV6CP, PAP, CHAP, IP4, IP6 = 0xC021, 0x8021, 0x8057, 0xC023, 0xC223, 0x0021, 0x0057
REQUEST, ACK, NAK, REJECT, TERMINATE, TERMINATED, ECHO, ECHOED = 1, 2, 3, 4, 5, 6, 9, 10


def options(body):
    """The options of a Configure packet, by type."""
    found = {}
    while len(body) >= 2:
        found[body[0]] = body[2:body[1]]
        body = body[body[1]:]
    return found


def option(kind, value):
    return bytes([kind, 2 + len(value)]) + value


def control(code, number, body=b""):
    return struct.pack(">BBH", code, number, 4 + len(body)) + body


class Client(Line):
    """One subscriber."""

    def __init__(self, wire, mac, tags=(100, 1), user="anna", password="example-only"):
        super().__init__(wire, mac, tags)
        self.user, self.password = user, password
        self.session, self.ipv4, self.magic = 0, None, 0x11223344
        self.refused = None

    def discovery(self, code, tags, session=0):
        body = b"".join(struct.pack(">HH", kind, len(value)) + value for kind, value in tags)
        self.wire.send(self.frame(0x8863, struct.pack(">BBHH", 0x11, code, session, len(body)) + body))

    def discovered(self, code, what):
        def is_it(data):
            body = self.mine(data, 0x8863)
            return body is not None and body[1] == code
        got = self.wire.receive(is_it, 1, what)
        if not got:
            raise SystemExit(f"no {what}")
        body = self.mine(got[0], 0x8863)
        self.gateway, session = got[0][6:12], struct.unpack(">H", body[2:4])[0]
        tags, rest = {}, body[6:6 + struct.unpack(">H", body[4:6])[0]]
        while len(rest) >= 4:
            kind, length = struct.unpack(">HH", rest[:4])
            tags[kind], rest = rest[4:4 + length], rest[4 + length:]
        return tags, session

    def dial(self):
        self.gateway = BROADCAST
        self.discovery(0x09, [(0x0101, b""), (0x0103, b"unique")])
        tags, _ = self.discovered(0x07, "PADO")
        check(tags.get(0x0103) == b"unique", "the PADO has no Host-Uniq")
        self.discovery(0x19, [(0x0101, b""), (0x0104, tags[0x0104])])
        tags, self.session = self.discovered(0x65, "PADS")
        check(self.session != 0, f"no session id: {tags}")

    def send(self, protocol, packet):
        self.wire.send(self.frame(0x8864,
                                  struct.pack(">BBHHH", 0x11, 0, self.session, 2 + len(packet), protocol) + packet))

    def next(self, *protocols, seconds=8):
        """The next PPP packet of these protocols: protocol, code, id, body. None without one. The gateway's
        Echo-Requests, which may come at any time, are answered (RFC 1661, clause 5.8)."""
        def is_it(data):
            body = self.mine(data, 0x8864)
            return body is not None and struct.unpack(">H", body[2:4])[0] == self.session and \
                struct.unpack(">H", body[6:8])[0] in protocols
        while got := self.wire.receive(is_it, 1, f"PPP {[hex(p) for p in protocols]}", seconds):
            self.wire.waiting = got[1:] + self.wire.waiting
            body = self.mine(got[0], 0x8864)
            packet = body[8:6 + struct.unpack(">H", body[4:6])[0]]
            protocol = struct.unpack(">H", body[6:8])[0]
            if protocol in (IP4, IP6):
                return protocol, 0, 0, packet
            code, number, rest = packet[0], packet[1], packet[4:struct.unpack(">H", packet[2:4])[0]]
            if (protocol, code) != (LCP, ECHO):
                return protocol, code, number, rest
            self.send(LCP, control(ECHOED, number, struct.pack(">I", self.magic) + rest[4:]))
        return None

    def hears(self, protocol, code, seconds=0.1):
        """Whether such a PPP packet is there, or comes within the time. It stays for next()."""
        def is_it(data):
            body = self.mine(data, 0x8864)
            return body is not None and body[6:9] == struct.pack(">HB", protocol, code)
        return self.wire.has(is_it, seconds)

    def echo_reply(self, protocol):
        """The next ICMP or ICMPv6 Echo-Reply over IP4 or IP6, None without one: advertisements come in between."""
        at, kind = (20, 0) if protocol == IP4 else (40, 129)
        while (got := self.next(protocol)) is not None:
            if got[3][at:at + 1] == bytes([kind]):
                return got[3]
        return None

    def sign_in(self, v6=True, v4=True):
        """Dials and negotiates until all is open. False: it was refused."""
        self.dial()
        self.send(LCP,
                  control(REQUEST, 1, option(1, struct.pack(">H", 1492)) + option(5, struct.pack(">I", self.magic))))
        method, up = None, {LCP: [False] * 2, IPCP: [not v4] * 2, IPV6CP: [not v6] * 2}
        asked = {"ipv4": b"\0\0\0\0"}
        while not all(all(sides) for sides in up.values()):
            got = self.next(LCP, IPCP, IPV6CP, PAP, CHAP)
            if got is None:
                return False
            protocol, code, number, body = got
            if protocol == LCP and code == REQUEST:
                method = options(body).get(3)
                self.send(LCP, control(ACK, number, body))
                up[LCP][0] = True
                if method == b"\xc0\x23":
                    name, word = self.user.encode(), self.password.encode()
                    self.send(PAP, control(REQUEST, 1, bytes([len(name)]) + name + bytes([len(word)]) + word))
            elif protocol == CHAP and code == 1:
                challenge = body[1:1 + body[0]]
                answer = hashlib.md5(bytes([number]) + self.password.encode() + challenge).digest()
                self.send(CHAP, control(2, number, bytes([16]) + answer + self.user.encode()))
            elif (protocol == CHAP and code == 4) or (protocol == PAP and code == NAK):
                self.refused = body
                return False
            elif (protocol == CHAP and code == 3) or (protocol == PAP and code == ACK):
                if v4:
                    self.send(IPCP, control(REQUEST, 1, option(3, asked["ipv4"])))
                if v6:
                    self.send(IPV6CP, control(REQUEST, 1, option(1, b"\0\0\0\0\0\0\0\x77")))
            elif code == REQUEST and protocol in up:
                self.send(protocol, control(ACK, number, body))
                up[protocol][0] = True
            elif code == NAK and protocol == IPCP:
                asked["ipv4"] = options(body)[3]
                self.send(IPCP, control(REQUEST, number + 1, option(3, asked["ipv4"])))
            elif code == ACK and protocol in up:
                up[protocol][1] = True
            elif code == TERMINATE:
                self.send(LCP, control(TERMINATED, number))
                return False
        self.ipv4 = str(ipaddress.IPv4Address(asked["ipv4"])) if v4 else None
        return True

    def hang_up(self):
        self.discovery(0xA7, [], self.session)
