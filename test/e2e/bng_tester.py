# SPDX-License-Identifier: Apache-2.0
"""One subscriber's packets, counted by isthmus-traffic and by accounting."""

import pppoe
import tester
from frames import Wire, check, done, equal, wait_until
from radius import of_kind, radclient, subscriber

BURST = 0.1  # seconds of its rate that a policer passes at once


class Anna:
    """A subscriber, and what passed of hers: of each family and direction, packets and bytes."""

    def __init__(self):
        self.home = pppoe.Client(Wire("home0"), "02:00:00:00:00:01")
        check(self.home.sign_in(), "anna is not let in")
        self.ipv6 = subscriber("anna")["ipv6"].split("/")[0] + "77"
        self.passed = {(v6, down): [0, 0] for v6 in (False, True) for down in (False, True)}

    def stream(self, name, rate, size, **more):
        address = self.ipv6 if name.startswith("v6") else self.home.ipv4
        return tester.Stream(name, self.home, address, name.endswith("down"), rate, size, **more)

    def run(self, name, seconds, *streams, **more):
        status, results, words = tester.run(name, seconds, streams, **more)
        for s in streams:
            total = self.passed[s.v6, s.down]
            total[0] += results[s.name]["received"]
            total[1] += results[s.name]["received"] * s.size
        return status, results, words

    def whole(self, name, seconds, *streams, **more):
        """A run in which every packet arrives as it must."""
        status, results, words = self.run(name, seconds, *streams, **more)
        whole = status == 0 and all(r["sent"] == r["received"] > 0 for r in results.values())
        if not check(whole, f"{name}: packets lost"):
            print(words)

    def polices(self, name, kbit):
        """Twice the rate is sent. The rate arrives within 1 %. Up to one burst more may arrive from a full bucket, and
        less if the gateway stalls for longer than the burst."""
        seconds, packet = 4, 1000
        for _ in range(tester.TRIES):
            status, results, words = self.run(
                name, seconds, self.stream("v4-down", kbit * 2000 // 8 // packet, packet, expect="loss: 1"))
            got = results["v4-down"]["received"] * packet * 8 / 1000 / seconds
            good = status == 0 and 0.99 * kbit <= got <= 1.01 * kbit * (1 + BURST / seconds)
            if good:
                break
            print(words)
        print(f"{name}: {got:.0f} kbit/s of {kbit}, and a burst")
        check(good, f"{name}: {got} kbit/s")


def main():
    anna = Anna()
    anna.whole("families", 2, anna.stream("v4-up", 300, 301), anna.stream("v4-down", 200, 402),
               anna.stream("v6-up", 250, 503), anna.stream("v6-down", 150, 604))
    anna.polices("before", 4000)

    def halve():
        wait_until(lambda: subscriber("anna")["uplink_packets"] > packets + 100, "packets on their way")
        out = radclient("coa", 'User-Name = "anna", WISPr-Bandwidth-Max-Down = 2000000')
        check("CoA-ACK" in out, f"no CoA-ACK: {out}")
    packets = subscriber("anna")["uplink_packets"]
    # Slow enough for the burst of the new rate to hold what a busy machine holds back for 400 ms.
    anna.whole("change", 3, anna.stream("v4-up", 1000, 500), anna.stream("v4-down", 100, 400),
               anna.stream("v6-down", 50, 300), meanwhile=halve)
    anna.polices("after", 2000)

    out = radclient("disconnect", 'User-Name = "anna"')
    check("Disconnect-ACK" in out, f"no Disconnect-ACK: {out}")
    wait_until(lambda: of_kind("Stop"), "the last record")
    stop = of_kind("Stop")[0]
    for down, word in ((False, "Input"), (True, "Output")):
        four, six = anna.passed[False, down], anna.passed[True, down]
        names = [f"{part}Acct-{word}-{unit}" for part in ("", "ERX-IPv6-") for unit in ("Packets", "Octets")]
        print(word, four, six)
        equal(word, [int(stop[n]) for n in names], [four[0] + six[0], four[1] + six[1], *six])
    done("tester")


main()
