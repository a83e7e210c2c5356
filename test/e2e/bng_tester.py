# SPDX-License-Identifier: Apache-2.0
"""One subscriber's packets, counted by isthmus-traffic and by accounting."""

import json
import os
import subprocess

import pppoe
from frames import DIR, Wire, check, done, equal, wait_until
from radius import of_kind, radclient, subscriber

MAC, GATEWAY, GATEWAY_CORE, CORE = "02:00:00:00:00:01", "02:00:00:aa:00:01", "02:00:00:cc:00:01", "02:00:00:cc:00:02"
OUTSIDE = {"access": 14 + 8 + 8 + 4, "core": 14 + 4}  # octets of a frame beside the IP packet
BURST = 0.1  # seconds of its rate that a policer passes at once
TRIES = 8  # of a measurement: a gateway that is held up for longer than the burst passes less


class Stream:
    """Packets of one family and direction: so many bytes of IP each, so many a second."""

    def __init__(self, name, rate, size, expect=None):
        self.name, self.rate, self.size, self.expect = name, rate, size, expect
        self.v6, self.down = name.startswith("v6"), "down" in name

    def yaml(self, anna, prefix):
        home, far = (prefix.split("/")[0] + "77", "2001:db8:f::1") if self.v6 else (anna.ipv4, "203.0.113.80")
        ends = f'source: "{far if self.down else home}", destination: "{home if self.down else far}"'
        port, sink = ("core", "access") if self.down else ("access", "core")
        # AF_PACKET keeps a tag's number alone, and DPDK's driver puts it back as 0x8100.
        side = {"access": [self.ethernet(GATEWAY, MAC), "vlan: {tpid: %s, id: 100}", "vlan: {id: 1}",
                           f"pppoe: {{session: {anna.session}}}"],
                "core": [self.ethernet(CORE, GATEWAY_CORE)]}
        rows = [f"- name: {self.name}", f"  port: {port}", f"  sink: {sink}", f"  rate: {self.rate}",
                f"  size: {self.size + OUTSIDE[port]}"]
        for word, where, hops, tpid in (("send", port, 64, "0x8100"), ("receive", sink, 63, "any")):
            ip = f"ipv6: {{hop_limit: {hops}, {ends}}}" if self.v6 else f"ipv4: {{ttl: {hops}, {ends}}}"
            layers = [line % tpid if "%s" in line else line for line in side[where]]
            rows += [f"  {word}:"] + [f"    - {line}" for line in (*layers, ip, "udp: {checksum: 1}")]
        return rows + ([f"  expect: {{{self.expect}}}"] if self.expect else [])

    def ethernet(self, above, below):
        return "ethernet: {destination: %s, source: %s}" % ((below, above) if self.down else (above, below))


class Tester:
    """Runs of isthmus-traffic, and the sum of what passed: of each family and direction, packets and bytes."""

    def __init__(self, anna):
        self.anna, self.prefix = anna, subscriber("anna")["ipv6"]
        self.passed = {}

    def run(self, name, seconds, *streams, meanwhile=None):
        """The exit status, and each stream's result."""
        lines = [f"name: {name}", "huge_pages: false", "memory_mb: 256", "ports:",
                 f"- {{name: access, driver: net_af_packet, device: home0, mac: {MAC}}}",
                 f"- {{name: core, driver: net_af_packet, device: core0, mac: {CORE}}}", "streams:"]
        for s in streams:
            lines += s.yaml(self.anna, self.prefix)
        lines.append(f"run: {{mode: fixed, seconds: {seconds}, drain: 1.5, warmup: 0, latency: {{seconds: 0}}, "
                     "disturbed: {repeats: 0}}")
        with open(f"{DIR}/{name}.yaml", "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
        with subprocess.Popen([os.environ["TESTER"], "--json", f"{DIR}/{name}.json", f"{DIR}/{name}.yaml"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as tester:
            if meanwhile:
                meanwhile()
            self.words, _ = tester.communicate(timeout=60)
        if tester.returncode == 2:
            raise SystemExit(self.words)
        with open(f"{DIR}/{name}.json", encoding="utf-8") as f:
            self.trial = json.load(f)["trials"][-1]
        results = {r["name"]: r for r in self.trial["streams"]}
        for s in streams:
            total = self.passed.setdefault((s.v6, s.down), [0, 0])
            total[0] += results[s.name]["received"]
            total[1] += results[s.name]["received"] * s.size
        return tester.returncode, results

    def whole(self, name, seconds, *streams, **more):
        """A run in which every packet arrives as it must."""
        status, results = self.run(name, seconds, *streams, **more)
        whole = status == 0 and all(r["sent"] == r["received"] > 0 for r in results.values())
        if not check(whole, f"{name}: packets lost"):
            print(self.words)

    def polices(self, name, kbit):
        """Twice the rate is sent. What arrives is the rate within 1 %, with up to one burst of it: a full bucket's at the
        beginning, less what a gateway that is held up for longer than the burst cannot pass."""
        seconds, packet = 4, 1000
        for _ in range(TRIES):
            status, results = self.run(name, seconds, Stream("v4-down", kbit * 2000 // 8 // packet, packet, "loss: 1"))
            row = results["v4-down"]
            got = row["received"] * packet * 8 / 1000 / seconds
            if status == 0 and 0.99 * kbit <= got <= 1.01 * kbit * (1 + BURST / seconds):
                break
            print(self.words)
        print(f"{name}: {got:.0f} kbit/s of {kbit}, and a burst")
        check(status == 0 and 0.99 * kbit <= got <= 1.01 * kbit * (1 + BURST / seconds), f"{name}: {got} kbit/s")


def main():
    anna = pppoe.Client(Wire("home0"), MAC)
    check(anna.sign_in(), "anna is not let in")
    tester = Tester(anna)
    tester.whole("families", 2, Stream("v4-up", 300, 301), Stream("v4-down", 200, 402), Stream("v6-up", 250, 503),
                 Stream("v6-down", 150, 604))
    tester.polices("before", 4000)

    def halve():
        wait_until(lambda: subscriber("anna")["uplink_packets"] > packets + 100, "packets on their way")
        out = radclient("coa", 'User-Name = "anna", WISPr-Bandwidth-Max-Down = 2000000')
        check("CoA-ACK" in out, f"no CoA-ACK: {out}")
    packets = subscriber("anna")["uplink_packets"]
    # Slow enough for the burst of the new rate to hold what a busy machine holds back for 400 ms.
    tester.whole("change", 3, Stream("v4-up", 1000, 500), Stream("v4-down", 100, 400), Stream("v6-down", 50, 300),
                 meanwhile=halve)
    tester.polices("after", 2000)

    out = radclient("disconnect", 'User-Name = "anna"')
    check("Disconnect-ACK" in out, f"no Disconnect-ACK: {out}")
    wait_until(lambda: of_kind("Stop"), "the last record")
    stop = of_kind("Stop")[0]
    for down, word in ((False, "Input"), (True, "Output")):
        four, six = tester.passed[False, down], tester.passed[True, down]
        names = [f"{part}Acct-{word}-{unit}" for part in ("", "ERX-IPv6-") for unit in ("Packets", "Octets")]
        print(word, four, six)
        equal(word, [int(stop[n]) for n in names], [four[0] + six[0], four[1] + six[1], *six])
    done("tester")


main()
