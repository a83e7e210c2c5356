# SPDX-License-Identifier: Apache-2.0
"""instances[].shaping over PFCP. What exceeds a session's pipe waits and leaves at the pipe's rate. What exceeds its
queue is dropped by the scheduler alone. Other sessions are unaffected, and a pipe is free when its session ends. Then
instances[].access_list: what it denies inside G-PDUs and from the data network.

Rates are bytes over the interval in which they came, by the kernel's time stamps, within wide bounds."""

import struct
import sys

import n4
from frames import DIR, check, check_sum, done, drops, equal, read_records, show, wait_until
from n4 import far_down, far_up, fteid, group, pdr_down, pdr_up, u8, u32
from upf import World, split_groups

PIPE = 1e6 / 8  # bytes per second (upf_shaping_test.sh)
QUEUE = 64  # packets of a class (docs/config.md, queue_size)
OVERHEAD = 24  # frame_overhead
SIZE = 900


def rules(n):
    """The usual session, with a QER whose MBR, 200 Mbit/s, is far above the pipe's rate."""
    ue = f"10.45.30.{n}"
    plain = pdr_up(1, fteid(0x3000 + n), ue) + pdr_down(2, ue)
    pdrs = b"".join(group(1, body, u32(109, 1)) for body in split_groups(plain))
    mbr = (200000).to_bytes(5, "big") * 2
    return pdrs + far_up() + far_down(teid=0x9300 + n) + group(7, u32(109, 1), u8(25, 0), n4.ie(26, mbr))


def establish(w, n, what, cause=n4.ACCEPTED):
    answer = w.smf.establish(n, rules(n))
    equal(what, answer and answer.cause, cause)
    return answer


def arrived(n):
    """(time, bytes on the link, bytes of the frame) of the G-PDUs to session n's gNB tunnel."""
    teid = struct.pack(">I", 0x9300 + n)
    return [(at, len(data) + OVERHEAD, data) for at, data in read_records(f"{DIR}/n3.pcap") if data[46:50] == teid]


def rate(frames):
    """Bytes per second between the first and the last, the first one's apart."""
    return sum(size for _, size, _ in frames[1:]) / max(frames[-1][0] - frames[0][0], 1e-6)


def queued():
    return sum(row["queued"] for row in show("scheduler") if row["pipe"] is None)


def burst(w):
    """As many as the queue takes: all come, one after the other."""
    w.at_gnb(w.down("10.45.30.1", SIZE), "downlink, which also finds the gNB's MAC address")
    sent = [w.down("10.45.30.1", SIZE) for _ in range(QUEUE // 2)]
    wait_until(lambda: len(arrived(1)) > len(sent), "all packets of the burst")
    frames = arrived(1)[1:]
    check([s for s in sent if s not in b"".join(f[2] for f in frames)] == [], "a packet of the burst did not come")
    # A policer passes a burst at the rate at which it came, or drops it.
    check(rate(frames) < 1.5 * PIPE, f"the burst came with {rate(frames):.0f} bytes/s; its pipe has {PIPE:.0f}")
    check(not drops(), f"drops: {drops()}")


def overload(w):
    """More at once than the queue takes, again and again; another session sends less than its pipe's rate meanwhile."""
    before, waited, sent, others = len(arrived(1)), 0, 0, []
    # Ready before, so that no slow machine paces it.
    flood = [bytes(w.downlink("10.45.30.1", w.mark(SIZE)))] * (QUEUE * 5 // 4)
    for _ in range(10):
        w.dn.send(*flood)
        sent += len(flood)
        others.append(w.down("10.45.30.2", SIZE))
        waited = max(waited, queued())
    wait_until(lambda: len(arrived(1)) - before + sum(drops().values()) >= sent, "all packets come or dropped")
    frames = arrived(1)[before:]
    got = rate(frames)
    print(f"{sent} sent, {len(frames)} came with {got:.0f} bytes/s, at most {waited} waited", flush=True)
    check(0.4 * PIPE < got < 1.3 * PIPE, f"{got:.0f} bytes/s through a pipe of {PIPE:.0f}")
    check(waited > QUEUE // 2, f"at most {waited} packets waited")
    equal("drops, by the scheduler alone", drops(), {"scheduler-queue-full": sent - len(frames)})
    equal("packets that the MBR refused", sum(s["downlink_dropped"] for s in show("session")), 0)
    equal("packets of the other session", [m for m in others if m not in b"".join(f[2] for f in arrived(2))], [])


def access_lists(w):
    """Session 5: each instance's list is looked at in its own direction; a packet that it denies is one drop, and
    nothing else."""
    ue, before = "10.45.30.5", drops()
    w.at_dn(w.up(0x3005, ue), "uplink, permitted")
    w.at_gnb(w.down(ue), "downlink, permitted")
    w.at_dn(w.up(0x3005, ue, dport=6667), "uplink with what the other list denies")
    w.at_gnb(w.down(ue, sport=6666), "downlink with what the other list denies")
    for n, send in enumerate((lambda: w.up(0x3005, ue, dport=6666), lambda: w.down(ue, sport=6667)), 1):
        mark = send()
        wait_until(lambda: drops() == {**before, "firewall-instance-deny": n}, f"denied packet {n}")
        for wire, where in ((w.dn, "data network"), (w.gnb, "gNB")):
            wire.quiet(lambda d: mark in d, 0.1, f"denied packet {n} at the {where}")


def main():
    w = World()
    first = establish(w, 1, "first session")
    second = establish(w, 2, "second session")
    establish(w, 3, "a third one for two pipes", n4.NO_RESOURCES)
    burst(w)
    overload(w)
    w.delete(first.seid, "deletion of the first")
    third = establish(w, 3, "a third one in the pipe of the first")
    establish(w, 4, "a fourth one", n4.NO_RESOURCES)
    w.at_gnb(w.down("10.45.30.3", SIZE), "downlink of the third")
    for answer in (second, third):
        w.delete(answer.seid, "deletion")
    for n in (5, 6):
        establish(w, n, "a session in a pipe that was given back")
    access_lists(w)
    check_sum("end")
    remarks = n4.tshark_remarks(f"{DIR}/n4.pcap")
    check(not remarks, f"tshark's remarks about PFCP: {sorted(set(remarks))[:10]}")
    done("shaping")


if __name__ == "__main__":
    sys.exit(main())
