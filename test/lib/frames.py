# SPDX-License-Identifier: Apache-2.0
"""Frames for the tests: scapy makes them, packet sockets send and capture, tshark decodes.

No code is shared with the gateway. A Wire is one of our interfaces. A Frame is one captured frame as tshark decodes it:
its layers in order, each with its fields as text, and the frame's bytes."""

import json
import os
import select
import socket
import struct
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

DIR = os.environ["DIR"]
SECONDS = 8  # to wait for a frame that must come

failures = []


def check(good, text):
    """Notes a fault and continues, so that one run shows all of them."""
    if not good:
        failures.append(text)
        print(f"WRONG: {text}", flush=True)
    return good


def equal(what, got, want):
    return check(got == want, f"{what}: {got!r}, expected {want!r}")


def done(what):
    if failures:
        print(f"{what}: {len(failures)} wrong")
        sys.exit(1)
    print(f"{what}: ok", flush=True)


# ---- the gateway's own view ----------------------------------------------------------------------------------------


def show(table):
    bin_ = os.environ.get("BIN") or os.environ["BUILD"]
    out = subprocess.run([f"{bin_}/isthmus", "show", table, "-j"], check=True, capture_output=True, text=True)
    return json.loads(out.stdout)


def rows(table):
    """Counters of `show drop` or `show punt` by name; rows of zero left out."""
    return {r["name"]: r["packets"] for r in show(table) if r["packets"]}


def drops():
    """`show drop`, as caused by a test: without groups of hosts' kernels, also from :: (RFC 3590 §4)."""
    return {name: n for name, n in rows("drop").items() if name not in ("ip-multicast", "ip-martian-source")}


def wait_until(test, what, seconds=SECONDS):
    """Polls test() until it is true. The limit is an idle machine's, here and below: a busy one gets ten times as
    much."""
    for _ in range(int(seconds * 200)):
        if test():
            return True
        time.sleep(0.05)
    return check(False, f"waited in vain for {what}")


def wait_pass(seconds):
    """Lets time pass in which something must not happen, or for which there is no event to wait for."""
    time.sleep(seconds)


def sum_holds(total):
    left = total["in"] + total["originated"]
    return left == total["out"] + total["punted"] + total["held"] + total["dropped"] + total["merged"]


def check_sum(what):
    """in + originated = out + punted + held + dropped + merged, once nothing moves."""
    wait_until(lambda: sum_holds(show("total")), f"{what}: the counters to add up")
    total = show("total")
    check(sum_holds(total), f"{what}: the counters do not add up: {total}")
    return total


# ---- wires ---------------------------------------------------------------------------------------------------------

SOL_PACKET = 263  # linux/socket.h; the rest is of linux/if_packet.h
PACKET_AUXDATA, PACKET_IGNORE_OUTGOING = 8, 23
STATUS_VLAN_VALID, STATUS_VLAN_TPID_VALID = 1 << 4, 1 << 6


class Wire:
    """One interface: sends raw frames, and keeps received ones until they are read."""

    def __init__(self, name):
        self.name = name
        self.file = f"{DIR}/{name}.pcap"
        self.waiting = []
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.socket.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self.socket.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.socket.bind((name, 0))
        self.mac = self.socket.getsockname()[4].hex(":")
        with open(self.file, "wb") as f:
            f.write(PCAP_HEAD)

    def send(self, *packets):
        for packet in packets:
            self.socket.send(bytes(packet))

    def _read(self, seconds):
        """Waits for a frame, notes it in the capture file and returns it, or None."""
        if not select.select([self.socket], [], [], max(0, seconds))[0]:
            return None
        data, ancillary, *_ = self.socket.recvmsg(65535, 64)
        for level, kind, value in ancillary:
            if level == SOL_PACKET and kind == PACKET_AUXDATA:
                status, *_, tci, tpid = struct.unpack("IIIHHHH", value[:20])
                # The kernel hands the outer tag over beside the frame.
                if status & STATUS_VLAN_VALID:
                    tpid = tpid if status & STATUS_VLAN_TPID_VALID else 0x8100
                    data = data[:12] + struct.pack(">HH", tpid, tci) + data[12:]
        with open(self.file, "ab") as f:
            f.write(pcap_record(data))
        return data

    def receive(self, test=lambda data: True, count=1, what="frames", seconds=SECONDS):
        """Waits until `count` frames that pass the test have come in since the last call; returns them as bytes. Others
        are left to later calls."""
        slots = int(seconds * 100)  # of a tenth of a second: a machine that stands still for seconds uses up one
        while True:
            found = [data for data in self.waiting if test(data)]
            if len(found) >= count:
                break
            data = self._read(0.1)
            if data is None:
                slots -= 1
                if slots > 0:
                    continue
                check(False, f"{self.name}: {len(found)} of {count} came: {what}; {show('total')}, {show('port')}")
                break
            self.waiting.append(data)
        self.waiting = [data for data in self.waiting if not test(data)]
        return found

    def has(self, test, seconds=0.1):
        """Whether a frame that passes the test is there, or comes within the time."""
        while not any(map(test, self.waiting)) and (data := self._read(seconds)) is not None:
            self.waiting.append(data)
        return any(map(test, self.waiting))

    def frames(self, test=lambda data: True, count=1, what="frames", seconds=SECONDS):
        """As receive(), decoded by tshark."""
        return decode(self.receive(test, count, what, seconds), f"{DIR}/{self.name}-decoded.pcap")

    def frame(self, test, what):
        """One frame, decoded; a frame without layers when none came."""
        return (self.frames(test, 1, what) or [Frame(None, b"")])[0]

    def quiet(self, test, seconds, what):
        """No packet that passes the test comes in for so long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            data = self._read(left)
            if data is not None and test(data):
                return check(False, f"{self.name}: there came {what}: {data.hex()}")
        return not any(map(test, self.waiting)) or check(False, f"{self.name}: there was {what}")

    def forget(self):
        """Throws away what has come in so far."""
        while self._read(0) is not None:
            pass
        self.waiting = []


# ---- decoding ------------------------------------------------------------------------------------------------------

PREFERENCES = ["ip.check_checksum:TRUE", "udp.check_checksum:TRUE", "tcp.check_checksum:TRUE", "ip.defragment:TRUE",
               "ipv6.defragment:TRUE", "tcp.analyze_sequence_numbers:FALSE"]


class Layer(dict):
    """Fields of one protocol: name -> list of shown values, with the numbers also as `raw`."""

    name, position, size = "", 0, 0


class Frame:
    def __init__(self, packet, data):
        self.data = data
        self.layers = []
        for proto in packet.findall("proto") if packet is not None else []:
            if proto.get("name") in ("geninfo", "frame", "fake-field-wrapper"):
                continue
            layer = Layer()
            layer.name = proto.get("name")
            layer.position, layer.size = int(proto.get("pos", 0)), int(proto.get("size", 0))
            for field in proto.iter("field"):
                layer.setdefault(field.get("name"), []).append(field.get("show"))
            layer.nested = [p.get("name") for p in proto.iter("proto")]
            self.layers.append(layer)

    def names(self):
        return [layer.name for layer in self.layers]

    def get(self, name, nth=0):
        """The nth layer of that name, empty without one."""
        found = [layer for layer in self.layers if layer.name == name]
        return found[nth] if nth < len(found) else Layer()

    def value(self, layer, field, nth=0):
        return (self.get(layer, nth).get(field) or [None])[0]

    def expert(self):
        """Faults that tshark finds: malformed packets, bad checksums, bad lengths."""
        found = []
        for layer in self.layers:
            if "malformed" in layer.name:
                found.append(layer.name)
            for name, values in layer.items():
                if name in ("_ws.malformed", "_ws.short") or name.endswith("checksum.status") and "0" in values:
                    found.append(f"{name} in {layer.name}")
                if name == "_ws.expert.severity" and any(int(v) >= 6291456 for v in values):  # warning, error
                    found.append(f"{layer.get('_ws.expert.message')} in {layer.name}")
        return found


PCAP_HEAD = struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 262144, 1)


def pcap_record(data, at=None):
    at = time.time() if at is None else at
    return struct.pack("<IIII", int(at), round(at % 1 * 1000000), len(data), len(data)) + data


def write_pcap(file, packets, times=None):
    """Packets at the times given (seconds), or a millisecond apart; the same file every time."""
    times = times or [n / 1000 for n in range(len(packets))]
    with open(file, "wb") as f:
        f.write(PCAP_HEAD + b"".join(pcap_record(bytes(p), 1600000000 + at) for p, at in zip(packets, times)))


def read_records(file):
    """(time, data) of each packet of a little-endian capture, in microseconds or nanoseconds."""
    with open(file, "rb") as f:
        data = f.read()
    unit = {0xa1b2c3d4: 1e6, 0xa1b23c4d: 1e9}[struct.unpack_from("<I", data)[0]]
    at, records = 24, []
    while at + 16 <= len(data):
        seconds, part, length, _ = struct.unpack_from("<IIII", data, at)
        records.append((seconds + part / unit, data[at + 16:at + 16 + length]))
        at += 16 + length
    return records


def decode(packets, file):
    """Frames as tshark sees them. `file` is where it reads them from."""
    if not packets:
        return []
    write_pcap(file, packets)
    # The subscribers' ports of subscribers.py carry plain data; heuristic dissectors would find protocols in random
    # bytes.
    command = ["tshark", "-n", "-r", file, "-T", "pdml", "-d", "udp.port==40001,data", "-d", "tcp.port==40001,data"]
    for preference in PREFERENCES:
        command += ["-o", preference]
    pdml = subprocess.run(command, check=True, capture_output=True).stdout
    decoded = ElementTree.fromstring(pdml).findall("packet")
    equal("frames that tshark shows", len(decoded), len(packets))
    return [Frame(p, d) for p, d in zip(decoded, packets)]
