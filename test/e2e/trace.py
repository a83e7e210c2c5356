# SPDX-License-Identifier: Apache-2.0
"""isthmus trace, explain, capture: twelve prepared faults, each found by one command whose output names the cause."""

import json
import json
import os
import select
import signal
import struct
import subprocess
import sys
import time

import n4
from frames import DIR, check, check_sum, done, equal, rows, show, wait_until
from n4 import far_down, far_up, fteid, group, ie, pdr_down, pdr_up, u8, u32
from upf import World, split_groups
from scapy.all import IP, UDP, Ether
from scapy.contrib.gtp import GTP_U_Header, GTPErrorIndication, IE_GSNAddress, IE_TEIDI

FAR = "198.51.100.7:53"
BIN = (os.environ.get("BIN") or os.environ["BUILD"]) + "/isthmus"


def run(*arguments):
    """A command that ends alone."""
    out = subprocess.run([BIN, *arguments], capture_output=True, text=True, timeout=60)
    check(out.returncode == 0, f"isthmus {' '.join(arguments)}: {out.stderr}")
    return out.stdout


def while_it_runs(arguments, send):
    """A command that waits for packets, which are sent until it ends."""
    p = subprocess.Popen([BIN, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(600):
        send()
        try:
            p.wait(0.1)
            break
        except subprocess.TimeoutExpired:
            pass
    else:
        p.kill()
    out, why = p.communicate()
    check(p.returncode == 0, f"isthmus {' '.join(arguments)}: {p.returncode} {why}")
    return out


def says(what, text, *words):
    for word in words:
        check(word in text, f"{what}: {word!r} is not said:\n{text}")


def session(w, n, teid, ue, links=(), rules=b"", extra_far=None):
    pdrs = b"".join(group(1, body, *links) for body in split_groups(pdr_up(1, fteid(teid), ue) + pdr_down(2, ue)))
    answer = w.smf.establish(n, pdrs + (extra_far or far_up() + far_down(teid=0x9000 + n)) + rules)
    equal(f"session {n}", answer and answer.cause, n4.ACCEPTED)
    return answer, f"n4.{answer.seid:016x}"


def qer(gates=0, mbr=None):
    return group(7, u32(109, 1), u8(25, gates), ie(26, mbr.to_bytes(5, "big") * 2) if mbr else b"")


def trace(*arguments):
    return ["trace", "--count", "1", "--for", "60s", *arguments]


def faults(w):
    ue = "10.45.50.{}".format
    _, good = session(w, 1, 0x5001, ue(1))
    w.at_dn(w.up(0x5001, ue(1)), "uplink, which finds the data network's MAC address")

    text = while_it_runs(trace("--ue", ue(1)), lambda: w.up(0x5fff, ue(1)))
    says("wrong TEID", text, "F-TEID 0x00005fff", "no session has it")

    session(w, 2, 0x5002, ue(2), (u32(109, 1),), qer(gates=0b0101))
    text = while_it_runs(trace("--ue", ue(2), "--drop", "any"), lambda: w.up(0x5002, ue(2)))
    says("gate closed", text, "uplink-gate-closed: the QER's uplink gate is closed", "= dropped")
    says("gate closed, downlink", run("explain", "--ue", ue(2), "--to", FAR, "--downlink"), "downlink-gate-closed")

    urr = group(6, u32(81, 1), u8(62, 2), ie(37, b"\x00\x01"), ie(73, b"\x01" + struct.pack(">Q", 300)))
    session(w, 3, 0x5003, ue(3), (u32(81, 1),), urr)
    text = while_it_runs(["trace", "--ue", ue(3), "--until-drop", "--for", "60s"], lambda: w.up(0x5003, ue(3)))
    says("quota used up", text, "the quota of a URR is used up", "usage-quota: ")

    _, name = session(w, 4, 0x5004, ue(4), (u32(109, 1),), qer(mbr=8))
    text = while_it_runs(["trace", "--session", name, "--until-drop", "--for", "60s"],
                         lambda: [w.up(0x5004, ue(4), 1000) for _ in range(20)])
    says("policer", text, "meter: red, drop", "tokens for a packet of 1028", "policer-uplink: ")

    text = run("explain", "--ue", ue(1), "--to", "203.0.113.9:443")
    says("no route", text, "203.0.113.9", "no route leads there")
    text = while_it_runs(trace("--ue", ue(1)), lambda: w.up(0x5001, ue(1), destination="203.0.113.9"))
    says("no route, traced", text, "no route leads there")
    text = while_it_runs(["trace", "--ue", ue(1), "--until-drop", "--for", "12s"],
                         lambda: w.up(0x5001, ue(1), destination="203.0.113.9"))
    says("no route, until a drop", text, "no route leads there", "its sender is sent ICMP no route (type 3, code 0)")

    text = run("explain", "--ue", ue(1), "--to", "10.60.0.77:443")
    says("no neighbour", text, "the neighbour 10.60.0.77 on n6", "its MAC address is not known")

    text = while_it_runs(trace("--session", good, "--drop", "any"), lambda: w.up(0x5001, "10.45.51.9"))
    says("spoofed source", text, f"session {good}", "source-spoofed: ")

    text = while_it_runs(trace("--drop", "firewall-instance-deny"), lambda: w.up(0x5001, ue(1), dport=6666))
    says("firewall", text, "the access list refuses it", "firewall-instance-deny: ")
    says("firewall, explained", run("explain", "--ue", ue(1), "--to", "198.51.100.7:6666"), "firewall-instance-deny: ")

    text = run("explain", "--ue", ue(1), "--to", FAR, "--teid", "0x5fff")
    says("wrong TEID, explained", text, "= dropped: gtpu-teid-unknown: ", "; its sender is sent Error Indication")

    text = run("explain", "--ue", ue(1), "--to", FAR, "--length", "1540")
    says("MTU", text, "MTU 1500: longer than the MTU", "= sent on n6: ", "; in 2 fragments of at most ")
    text = run("explain", "--ue", ue(1), "--to", FAR, "--length", "1580", "--downlink")
    says("MTU below the tunnel", text, "MTU 1600: longer than the MTU")

    session(w, 5, 0x5005, ue(5), extra_far=far_up() + far_down(teid=0x9005, action=12))
    text = run("explain", "--ue", ue(5), "--to", FAR, "--downlink")
    says("buffering", text, "the FAR says buffer, the packet waits for the UE")
    text = while_it_runs(trace("--ue", ue(5)), lambda: w.down(ue(5)))
    says("buffering, traced", text, "the packet waits for the UE", "= held")

    flood = [bytes(w.downlink(ue(1), w.mark(900)))] * 150
    text = while_it_runs(trace("--drop", "scheduler-queue-full"), lambda: w.dn.send(*flood))
    says("scheduler full", text, "scheduler-queue-full: the subscriber's queue of this traffic class is full")
    text = run("explain", "--ue", ue(1), "--to", FAR, "--downlink")
    says("scheduler's depth", text, "n3: subport", "packets of the class wait", "it would be queued")

    error = GTPErrorIndication(IE_list=[IE_TEIDI(TEIDI=0x9001), IE_GSNAddress(length=4, ipv4_address=n4.GNB)])
    frame = (Ether(src=w.gnb.mac, dst=w.mac["n3"]) / IP(src=n4.GNB, dst=n4.N3) / UDP(sport=2152, dport=2152)
             / GTP_U_Header(gtp_type=26, teid=0, S=1) / error)
    text = while_it_runs(trace("--filter", "udp port 2152 and udp[9] = 26"), lambda: w.gnb.send(frame))
    says("peer's error indication", text, "message 26", "= punted", "gtpu-error-indication")


def remarks(text):
    """tshark's messages, without those about its user and, for a pipe, its usual ones: begun, the file, ended, how
    many."""
    usual = ("as user \"root\"", "Capturing on ", "[Main MESSAGE]", " packets captured")
    return [line for line in text.splitlines() if line not in ("", "tshark: ") and not any(u in line for u in usual)]


def pipe_to_tshark(w, fields):
    """A capture is read as it goes, from a pipe, and its end is the reader's."""
    capture = [BIN, "capture", "--ue", "10.45.50.1", "--count", "4", "--for", "60s", "-w", "-"]
    shark = ["tshark", "-n", "-l", "-i", "-", "-T", "fields", *fields]
    quiet = {"stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(capture, stdout=subprocess.PIPE, **quiet) as taken, \
         subprocess.Popen(shark, stdin=taken.stdout, stdout=subprocess.PIPE, **quiet) as read:
        taken.stdout.close()
        wait_until(lambda: [w.up(0x5001, "10.45.50.1"), taken.poll() is not None][1], "the end of the capture", 15)
        text, said = read.communicate(timeout=60)
        equal("capture into a pipe", taken.returncode, 0)
    equal("tshark's remarks on a pipe", remarks(said), [])
    equal("frames of a pipe, received and sent", len(text.splitlines()), 8)
    says("interfaces of a pipe", text, "n3", "n6", "sent", "session-tunnel")


def captures(w):
    """Taken live, opened by tshark without a remark, with the ports, comments and the configuration."""
    file = f"{DIR}/capture.pcapng"
    chosen = ["--ue", "10.45.50.1", "--count", "4", "--for", "60s"]
    while_it_runs(["capture", *chosen, "--stage", "rx,decap,tx", "-w", file], lambda: w.up(0x5001, "10.45.50.1"))
    fields = ["-e", "frame.interface_name", "-e", "frame.comment", "-e", "ip.src"]
    out = subprocess.run(["tshark", "-n", "-r", file, "-T", "fields", *fields], capture_output=True, text=True)
    equal("tshark's remarks", remarks(out.stderr), [])
    says("interfaces", out.stdout, "n3", "n3 inside", "n6", "sent", "session-tunnel")
    pipe_to_tshark(w, fields)
    says("packet of a capture", run("explain", file), "port-rx", "= sent on n6")
    # Sessions of N4 are not in the configuration: the frames of the capture are replayed, and find none.
    text = run("replay", "--capture", file, "--counters", f"{DIR}/counters.json", "--out", f"n6={DIR}/n6.pcap")
    with open(f"{DIR}/counters.json", encoding="utf-8") as f:
        says(f"replay: {text}", f.read(), "gtpu-teid-unknown")
    with open("/dev/full", "wb"):
        out = subprocess.run([BIN, "capture", "-w", "/dev/full", "--for", "1s"], capture_output=True, text=True)
    check(out.returncode == 1 and "disk is full" in out.stderr, f"full disk: {out.returncode} {out.stderr}")


def hostile(w):
    long = "host " + " or host ".join(["10.0.0.1"] * 3000)
    for bad, word in (("((", "syntax error"), ("port " + "9" * 5000, "too long"), (long, "too long")):
        out = subprocess.run([BIN, "trace", "--filter", bad, "--for", "1s"], capture_output=True, text=True)
        check(out.returncode == 1 and word in out.stderr, f"filter {bad[:20]}: {out.returncode} {out.stderr}")
    out = subprocess.run([BIN, "trace", "--session", "nobody", "--for", "1s"], capture_output=True, text=True)
    says("unknown session", out.stderr, "there is no session or subscriber nobody")
    # One user does not get all traces; clients that go away leave nothing.
    out = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    many = [subprocess.Popen([BIN, "trace", "--for", "60s"], **out) for _ in range(3)]
    wait_until(lambda: any(p.poll() is not None for p in many), "the third trace to be refused")
    ended = [p for p in many if p.poll() is not None]
    says("a third trace", ended[0].stderr.read(), "no place for one more trace: 4 in all")
    for p in many:
        p.kill()
        p.wait()
    wait_until(lambda: subprocess.run([BIN, "trace", "--for", "1s"], capture_output=True).returncode == 0,
               "traces of clients that went to end")


def restarts(w):
    """The data plane dies below a trace: it ends with a reason, and the next one works."""
    p = subprocess.Popen([BIN, "trace", "--for", "60s"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def traced():
        w.up(0x5001, "10.45.50.1")
        return p.poll() is not None or bool(select.select([p.stdout], [], [], 0.1)[0])

    wait_until(traced, "packets of the trace")
    status = json.loads(subprocess.run([BIN, "status", "-j"], capture_output=True, text=True).stdout)
    os.kill(status["dp_pid"], signal.SIGKILL)
    _, why = p.communicate(timeout=60)
    check(p.returncode == 1 and "the data plane went away" in why, f"its data plane died: {p.returncode} {why}")
    wait_until(lambda: b"n4." in subprocess.run([BIN, "show", "session", "-j"], capture_output=True).stdout,
               "its sessions")
    text = while_it_runs(trace("--ue", "10.45.50.1"), lambda: w.up(0x5001, "10.45.50.1"))
    says("after a restart", text, "session n4.")


def main():
    w = World()
    for step in (faults, captures, hostile, restarts):
        step(w)
    check_sum("trace")
    return done("trace")


sys.exit(main())
