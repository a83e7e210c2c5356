# SPDX-License-Identifier: Apache-2.0
"""Observation of subscribers beside their traffic, with two workers and NAT44: copies, sums, watermarks."""

import re
import socket
import urllib.request

import n4
from frames import DIR, Wire, check, check_sum, decode, done, equal, show, wait_until
from upf import World
from upf_nat import Subscriber, echo, listener

METRICS = "http://10.40.0.1:9464/metrics"
IP_BYTES = 20 + 8 + 60  # of a packet of echo()


def mirrored(tap, sent, server, s):
    """Each packet is copied once: up as it came, down as the subscriber knows it."""
    for port in (5001, 5002, 5001):
        del sent[:]
        external = echo(server, s, port, f"{s.address}:{port}")
        inside = socket.inet_aton(s.address)
        up = tap.receive(lambda d: d in sent, 1, "copy of the uplink")
        equal("uplink as it came", up, sent)
        copies = tap.receive(lambda d: d[30:34] == inside, 1, "copy of the downlink")
        equal("copies of the downlink", len(copies), 1)
        for f in decode(copies, f"{DIR}/tap-decoded.pcap"):
            ends = f.value("ip", "ip.src"), f.value("ip", "ip.dst"), f.value("udp", "udp.dstport")
            equal("downlink", (ends, f.expert()), ((n4.DN, s.address, str(port)), []))
        check(external[0].startswith("203.0.113."), f"external {external}")
    equal("other frames", tap.waiting, [])


def metric(line):
    with urllib.request.urlopen(METRICS, timeout=60) as answer:
        return line in answer.read().decode().splitlines()


def counter(name):
    return next(r for r in show("counter") if r["name"] == name)


def watermark_event():
    return next(r for r in show("event") if r["name"] == "watermark")


def logged():
    """(counter, session, packets, bytes) of each line of the control plane's log."""
    form = r'msg="watermark reached" counter=(\S+) session=(\S+) seid=\S+ packets=(\d+) bytes=(\d+)'
    with open(f"{DIR}/isthmus.log", encoding="utf-8") as f:
        return [(m[1], m[2], int(m[3]), int(m[4])) for m in re.finditer(form, f.read())]


def one_of_each_worker(w):
    """Subscribers until the last one has another worker than those before."""
    all_ = []
    for n in range(1, 40):
        all_.append(Subscriber(w, n))
        if {r["worker"] for r in show("session")} == {0, 1}:
            return all_
    check(False, "one worker has all sessions")
    return all_


def watermarks(server, a, b, sessions):
    """The sum of both reaches 20 packets, then one of them alone does."""
    wait_until(lambda: counter("slice")["packets"] == 12, "12 packets to be counted")
    for port in (5001, 5002, 5003):
        echo(server, a, port, "more")
    wait_until(lambda: counter("slice")["packets"] == 18, "18 packets to be counted")
    equal("events so far", (watermark_event()["raised"], logged()), (0, []))
    echo(server, b, 5001, "the twentieth")
    wait_until(lambda: logged() == [("slice", '""', 20, 20 * IP_BYTES)], "the watermark of the sum")
    equal("row", [counter("slice")[k] for k in ("sessions", "packets", "bytes", "reached", "mark_packets")],
          [sessions, 20, 20 * IP_BYTES, 1, 20])
    for port in (5001, 5002, 5003, 5004):
        echo(server, a, port, "of one alone")
    wait_until(lambda: len(logged()) == 2, "the watermark of one subscriber")
    if len(logged()) == 2:
        name, session, packets, size = logged()[1]
        session_of_a = next(r["name"] for r in show("session") if r["ue_ip4"] == a.address)
        equal("whose", (name, session), ("heavy", session_of_a))
        check(packets == 20 and size == 20 * IP_BYTES, f"{packets} packets, {size} bytes")
    # The line is written before the event is acknowledged.
    wait_until(lambda: watermark_event()["waiting"] == 0, "the word that both events were seen")
    event = watermark_event()
    equal("events", [event[k] for k in ("raised", "acknowledged", "suppressed", "waiting")], [2, 2, 0, 0])
    for line in ('isthmus_aggregate_watermarks_reached_total{counter="slice"} 1',
                 'isthmus_aggregate_watermarks_reached_total{counter="heavy"} 1',
                 'isthmus_events_raised_total{event="watermark"} 2'):
        wait_until(lambda line=line: metric(line), f"metric {line}")


def main():
    w = World()
    tap, sent = Wire("tap0"), []
    send = w.gnb.send
    w.gnb.send = lambda *packets: (sent.extend(map(bytes, packets)), send(*packets))
    server = listener(socket.SOCK_DGRAM, 40010)
    subscribers = one_of_each_worker(w)
    a, b = subscribers[0], subscribers[-1]
    for s in (a, b):
        mirrored(tap, sent, server, s)
    equal("copies", show("mirror")[0]["packets"], 12)
    watermarks(server, a, b, len(subscribers))
    for s in subscribers:
        w.delete(s.seid, f"deletion of {s.address}")
    check_sum("watching")
    done("watching")


if __name__ == "__main__":
    main()
