# SPDX-License-Identifier: Apache-2.0
"""isthmus-traffic between a PPPoE subscriber at home0 and a host behind core0."""

import json
import os
import subprocess

from frames import DIR

GATEWAY, GATEWAY_CORE, CORE = "02:00:00:aa:00:01", "02:00:00:cc:00:01", "02:00:00:cc:00:02"
OUTSIDE = {"access": 14 + 8 + 8 + 4, "core": 14 + 4}  # octets of a frame beside the IP packet: tags, PPPoE, PPP, FCS
TRIES = 8  # of a measurement: a gateway that is held up for longer than the burst passes less


class Stream:
    """Packets of a home (pppoe.Client), down to it or up from it: bytes of IP each, so many a second. `address` is the
    home's, and sets the family."""

    def __init__(self, name, home, address, down, rate, size, dscp=0, expect=None):
        self.name, self.home, self.address, self.down, self.rate = name, home, address, down, rate
        self.size, self.dscp, self.expect = size, dscp, expect
        self.v6 = ":" in address

    def yaml(self):
        far = "2001:db8:f::1" if self.v6 else "203.0.113.80"
        source, destination = (far, self.address) if self.down else (self.address, far)
        port, sink = ("core", "access") if self.down else ("access", "core")
        s_tag, c_tag = self.home.tags
        # AF_PACKET keeps a tag's number alone, and DPDK's driver puts it back as 0x8100.
        side = {"access": [self.ethernet(GATEWAY, self.home.mac.hex(":")), f"vlan: {{tpid: TPID, id: {s_tag}}}",
                           f"vlan: {{id: {c_tag}}}", f"pppoe: {{session: {self.home.session}}}"],
                "core": [self.ethernet(CORE, GATEWAY_CORE)]}
        rows = [f"- name: {self.name}", f"  port: {port}", f"  sink: {sink}", f"  rate: {self.rate}",
                f"  size: {self.size + OUTSIDE[port]}"]
        for word, where, hops, tpid in (("send", port, 64, "0x8100"), ("receive", sink, 63, "any")):
            ip = f"hop_limit: {hops}, traffic_class: {self.dscp << 2}" if self.v6 else f"ttl: {hops}, dscp: {self.dscp}"
            ip = f'ipv{6 if self.v6 else 4}: {{{ip}, source: "{source}", destination: "{destination}"}}'
            layers = [*side[where], ip, "udp: {checksum: 1}"]
            rows += [f"  {word}:"] + [f"    - {layer.replace('TPID', tpid)}" for layer in layers]
        return rows + ([f"  expect: {{{self.expect}}}"] if self.expect else [])

    def ethernet(self, above, below):
        return "ethernet: {destination: %s, source: %s}" % ((below, above) if self.down else (above, below))


def run(name, seconds, streams, meanwhile=None):
    """The exit status, each stream's result by name, and the tester's output. Ends the test when it is not complete."""
    lines = [f"name: {name}", "huge_pages: false", "memory_mb: 256", "ports:",
             "- {name: access, driver: net_af_packet, device: home0, mac: 02:00:00:00:00:01}",
             f"- {{name: core, driver: net_af_packet, device: core0, mac: {CORE}}}", "streams:"]
    for s in streams:
        lines += s.yaml()
    lines.append(f"run: {{mode: fixed, seconds: {seconds}, drain: 1.5, warmup: 0, latency: {{seconds: 0}}, "
                 "disturbed: {repeats: 0}}")
    path = f"{DIR}/{name}"
    with open(f"{path}.yaml", "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    with subprocess.Popen([os.environ["TESTER"], "--json", f"{path}.json", f"{path}.yaml"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as tester:
        if meanwhile:
            meanwhile()
        words, _ = tester.communicate(timeout=60)
    if tester.returncode == 2:
        raise SystemExit(words)
    with open(f"{path}.json", encoding="utf-8") as f:
        trial = json.load(f)["trials"][-1]
    return tester.returncode, {row["name"]: row for row in trial["streams"]}, words
