# SPDX-License-Identifier: Apache-2.0
"""An SMF made of scapy: good PFCP messages are built and decoded by its contrib layer, bad ones byte by byte.

Nothing here shares code with the control plane. A Node is one CP function on an address of its own.
"""

import itertools
import os
import socket
import struct
import subprocess
import threading
import time

from scapy.contrib import pfcp as p
from scapy.contrib.pfcp import PFCP

UPF_N4, SMF1, SMF2, UNKNOWN = "10.40.0.1", "10.40.0.2", "10.40.0.3", "10.40.0.4"
N3, N3_6, GNB, GNB6 = "10.30.0.1", "fd00:30::1", "10.30.0.2", "fd00:30::2"
DN, DN6 = "10.60.0.2", "fd00:60::2"
EPOCH = 2208988800  # seconds from 1900 to 1970
ACCEPTED, CONTEXT_NOT_FOUND, MANDATORY_MISSING, CONDITIONAL_MISSING, INVALID_LENGTH = 1, 65, 66, 67, 68
MANDATORY_INCORRECT, INVALID_FORWARDING, INVALID_FTEID, NO_ASSOCIATION, RULE_FAILURE = 69, 70, 71, 72, 73
NO_RESOURCES, NOT_SUPPORTED = 75, 76

(HEARTBEAT, PFD, ASSOCIATION_SETUP, ASSOCIATION_UPDATE, ASSOCIATION_RELEASE, NODE_REPORT,
 SET_DELETION) = (1, 3, 5, 7, 9, 12, 14)
ESTABLISH, MODIFY, DELETE, REPORT = 50, 52, 54, 56


# ---- bytes ---------------------------------------------------------------------------------------------------------


def ie(kind, value=b"", length=None):
    return struct.pack(">HH", kind, len(value) if length is None else length) + value


def group(kind, *parts):
    return ie(kind, b"".join(parts))


def u8(kind, v):
    return ie(kind, bytes([v]))


def u16(kind, v):
    return ie(kind, struct.pack(">H", v))


def u32(kind, v):
    return ie(kind, struct.pack(">I", v))


def message(kind, body, sequence=1, seid=None, length=None, version=1):
    """One PFCP message; `seid` makes it a session message. `length` overrides the header's."""
    if seid is None:
        size = 4 + len(body)
        head = struct.pack(">BBH", version << 5, kind, size if length is None else length)
    else:
        size = 12 + len(body)
        head = struct.pack(">BBHQ", version << 5 | 1, kind, size if length is None else length, seid)
    return head + struct.pack(">I", sequence << 8) + body


def ip4(a):
    return socket.inet_pton(socket.AF_INET, a)


def ip6(a):
    return socket.inet_pton(socket.AF_INET6, a)


def node_id(name=None, address=None):
    if address:
        return ie(60, b"\x00" + ip4(address))
    return ie(60, b"\x02" + b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")))


def recovery(seconds):
    return u32(96, (int(seconds) + EPOCH) & 0xffffffff)


def fseid(seid, address):
    return ie(57, b"\x02" + struct.pack(">Q", seid) + ip4(address))


def fteid(teid, address=N3):
    return ie(21, b"\x01" + struct.pack(">I", teid) + ip4(address))


def choose_fteid(choose_id=None, v4=True, v6=False):
    flags = 4 | (1 if v4 else 0) | (2 if v6 else 0) | (0 if choose_id is None else 8)
    return ie(21, bytes([flags]) + (b"" if choose_id is None else bytes([choose_id])))


def ue_ip(v4=None, v6=None, destination=False):
    flags = (2 if v4 else 0) | (1 if v6 else 0) | (4 if destination else 0)
    return ie(93, bytes([flags]) + (ip4(v4) if v4 else b"") + (ip6(v6) if v6 else b""))


def instance(name):
    return ie(22, name.encode())


def sdf(text):
    raw = text if isinstance(text, bytes) else text.encode()
    return ie(23, b"\x01\x00" + struct.pack(">H", len(raw)) + raw)


def outer_header(teid, address):
    return ie(84, b"\x01\x00" + struct.pack(">I", teid) + ip4(address))


# ---- rules ---------------------------------------------------------------------------------------------------------


def pdr_up(id_, tunnel, ue=None, far=1, precedence=100, extra=b"", ohr=b"\x00"):
    pdi = group(2, u8(20, 0), tunnel, instance("access"), ue_ip(ue) if ue else b"", extra)
    return group(1, u16(56, id_), u32(29, precedence), pdi, ie(95, ohr) if ohr else b"", u32(108, far))


def pdr_down(id_, ue4=None, ue6=None, far=2, precedence=100, extra=b""):
    pdi = group(2, u8(20, 1), instance("internet"), ue_ip(ue4, ue6, destination=True), extra)
    return group(1, u16(56, id_), u32(29, precedence), pdi, u32(108, far))


def far_up(id_=1, action=2):
    return group(3, u32(108, id_), u8(44, action), group(4, u8(42, 1), instance("internet")))


def far_down(id_=2, teid=0x9001, address=GNB, action=2):
    return group(3, u32(108, id_), u8(44, action), group(4, u8(42, 0), instance("access"), outer_header(teid, address)))


class Answer:
    """A decoded answer: scapy's layers, and the values that tests ask for."""

    def __init__(self, data):
        self.data = data
        self.layer = PFCP(data)
        self.kind = data[1]
        self.ies = {}
        at = 16 if data[0] & 1 else 8
        while at + 4 <= len(data):
            kind, size = struct.unpack(">HH", data[at:at + 4])
            self.ies.setdefault(kind, []).append(data[at + 4:at + 4 + size])
            at += 4 + size

    @property
    def cause(self):
        return self.ies[19][0][0] if 19 in self.ies else None

    @property
    def offending(self):
        return struct.unpack(">H", self.ies[40][0])[0] if 40 in self.ies else None

    @property
    def failed_rule(self):
        """(type, id) of Failed Rule ID."""
        if 114 not in self.ies:
            return None
        raw = self.ies[114][0]
        return raw[0] & 31, int.from_bytes(raw[1:], "big")

    @property
    def seid(self):
        """SEID of the UP F-SEID."""
        return struct.unpack(">Q", self.ies[57][0][1:9])[0]

    def created(self):
        """{PDR id: TEID} of Created PDR."""
        out = {}
        for raw in self.ies.get(8, []):
            at, pdr, teid = 0, None, None
            while at + 4 <= len(raw):
                kind, size = struct.unpack(">HH", raw[at:at + 4])
                value = raw[at + 4:at + 4 + size]
                if kind == 56:
                    pdr = struct.unpack(">H", value)[0]
                if kind == 21:
                    teid = struct.unpack(">I", value[1:5])[0]
                at += 4 + size
            out[pdr] = teid
        return out


class Node:
    """A CP function on an address of its own. A thread answers the UP function's requests (heartbeats, reports) as
    they come, and keeps reports and answers for the test."""

    sequences = itertools.count(100)
    peer = {}  # CP SEID -> UP SEID of all nodes

    def __init__(self, address, name, started=None):
        self.address, self.name = address, name
        self.started = started or int(time.time()) - 60
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.socket.bind((address, 8805))
        self.socket.settimeout(0.2)
        self.reports, self.answers = [], {}
        self.answered = set()  # reports
        self.report_cause, self.report_extra = ACCEPTED, b""  # content of the answers to session reports
        self.changed = threading.Condition()
        self.silent = self.closed = False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def close(self):
        self.closed = True
        self.thread.join()
        self.socket.close()

    def send(self, data):
        self.socket.sendto(data, (UPF_N4, 8805))

    def run(self):
        while not self.closed:
            try:
                data, _ = self.socket.recvfrom(65535)
            except TimeoutError:
                continue
            with self.changed:
                self.take(data)
                self.changed.notify_all()

    def take(self, data):
        session = data[0] & 1
        sequence = int.from_bytes(data[12:15] if session else data[4:7], "big")
        if data[1] == HEARTBEAT:
            if not self.silent:
                self.send(message(2, recovery(self.started), sequence))
        elif data[1] == REPORT:
            # Sent again because our answer came late, it is answered again and is no other report (TS 29.244 §6.4).
            if data not in self.answered:
                self.reports.append(Answer(data))
            if not self.silent:
                self.answered.add(data)
                self.send(message(57, u8(19, self.report_cause) + self.report_extra, sequence, self.peer_seid(data)))
        elif data[1] == ASSOCIATION_SETUP:
            self.reports.append(Answer(data))
            self.send(message(data[1] + 1, node_id(self.name) + u8(19, 1) + recovery(self.started), sequence))
        elif data[1] in (NODE_REPORT, ASSOCIATION_UPDATE, ASSOCIATION_RELEASE):
            self.reports.append(Answer(data))
            self.send(message(data[1] + 1, node_id(self.name) + u8(19, 1), sequence))
        else:
            self.answers[sequence] = data

    def peer_seid(self, data):
        """The UP function's SEID of a report's session; Old CP F-SEID names a session of another CP function."""
        seid = struct.unpack(">Q", data[4:12])[0]
        old = Answer(data).ies.get(57)
        return Node.peer.get(seid if seid or not old else struct.unpack(">Q", old[0][1:9])[0], 0)

    def request(self, kind, body, seid=None, sequence=None, seconds=3, raw=None):
        """Sends a request and returns its Answer, None without one."""
        sequence = next(Node.sequences) if sequence is None else sequence
        self.send(raw if raw is not None else message(kind, body, sequence, seid))
        with self.changed:
            self.wait_locked(lambda: sequence in self.answers, seconds)
            data = self.answers.pop(sequence, None)
        return None if data is None else Answer(data)

    def wait_locked(self, test, seconds):
        """Waits, with the lock held, for tenths of a second: a machine that stands still for seconds uses up one."""
        for _ in range(int(seconds * 10)):
            if self.changed.wait_for(test, 0.1):
                break

    def wait_report(self, seconds=6):
        """The next report of a session: a gNB whose Echo Responses come late makes a Node Report at any time."""
        return self.take_report(lambda r: r.kind == REPORT, seconds)

    def take_report(self, test, seconds):
        """Waits for a report that passes the test and returns it; others stay. None without one."""
        find = lambda: next((r for r in self.reports if test(r)), None)
        with self.changed:
            self.wait_locked(lambda: find() is not None, seconds)
            found = find()
            if found is not None:
                self.reports.remove(found)
        return found

    def heartbeat(self):
        """Repeated until it is answered, at most five times (TS 29.244 §6.4): a burst may push a datagram out."""
        sequence, answer = next(Node.sequences), None
        for _ in range(5):
            answer = answer or self.request(HEARTBEAT, recovery(self.started), sequence=sequence)
        return answer

    def associate(self, body=None, **more):
        if body is None:
            body = bytes(p.PFCPAssociationSetupRequest(IE_list=[
                p.IE_NodeId(id_type=2, id=self.name), p.IE_RecoveryTimeStamp(timestamp=self.started + EPOCH)]))
        return self.request(ASSOCIATION_SETUP, body, **more)

    def establish_body(self, cp_seid, rules):
        return node_id(self.name) + fseid(cp_seid, self.address) + rules

    def establish(self, cp_seid, rules, **more):
        answer = self.request(ESTABLISH, self.establish_body(cp_seid, rules), seid=0, **more)
        if answer is not None and answer.cause == ACCEPTED:
            Node.peer[cp_seid] = answer.seid
        return answer


def rules_of(teid, ue4, ue6=None, down_teid=0x9001):
    """The usual session: an uplink and a downlink rule."""
    tunnel = fteid(teid) if teid else choose_fteid()
    return pdr_up(1, tunnel, ue4) + pdr_down(2, ue4, ue6) + far_up() + far_down(teid=down_teid)


def tshark_remarks(file):
    """Faults that tshark finds in the PFCP and GTP messages of a capture: malformed, unknown or undecoded parts."""
    out = subprocess.run(["tshark", "-r", file, "-V", "-Y", "pfcp || gtp"], capture_output=True, text=True,
                         check=True).stdout
    bad = ("Malformed", "Unknown", "not dissected", "Undecoded", "[Expert Info (Error", "[Expert Info (Warn", "Invalid")
    # "Cause: Invalid length" is the content of an answer, not a remark about it.
    return [line.strip() for line in out.splitlines() if any(b in line for b in bad)
            and not line.strip().startswith("Cause")]


def rss_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        for line in f:
            if line.startswith("VmRSS"):
                return int(line.split()[1])
    return 0


def alive(pid):
    return os.path.exists(f"/proc/{pid}")
