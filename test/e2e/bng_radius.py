# SPDX-License-Identifier: Apache-2.0
"""One subscriber by RADIUS: let in, changed, accounted, ended."""

import pppoe
from frames import Wire, check, done, equal, wait_until
from radius import of_kind, radclient, subscriber
from scapy.all import ICMP, IP, ICMPv6EchoRequest, IPv6, Raw

PINGS, SIZE = 20, 128


def main():
    wait_until(lambda: of_kind("Accounting-On"), "Accounting-On")
    anna = pppoe.Client(Wire("home0"), "02:00:00:00:00:01")
    check(anna.sign_in(), "anna is not let in")
    equal("Framed-IP-Address", anna.ipv4, "100.64.7.7")
    row = subscriber("anna")
    equal("rate", row["down_kbit"], 8000)
    wait_until(lambda: of_kind("Start"), "the first record")
    start = of_kind("Start")[0]
    equal("first record",
          (start["User-Name"], start["Framed-IP-Address"], start["Acct-Session-Id"], start["NAS-Identifier"]),
          ('"anna"', "100.64.7.7", f'"{row["session"]}"', '"bng-1"'))

    changed = False
    for n in range(PINGS):
        request = IP(src=anna.ipv4, dst="10.60.0.2") / ICMP(id=7, seq=n) / Raw(b"x" * (SIZE - 28))
        anna.send(pppoe.IP4, bytes(request))
        check(anna.echo_reply(pppoe.IP4) is not None, f"no answer to ping {n}")
        if not changed:
            out = radclient("coa", f'User-Name = "anna", Acct-Session-Id = "{row["session"]}", '
                                   f'WISPr-Bandwidth-Max-Down = 4000000')
            changed = check("CoA-ACK" in out, f"no CoA-ACK: {out}")
    equal("rate", subscriber("anna")["down_kbit"], 4000)
    request = (IPv6(src=subscriber("anna")["ipv6"].split("/")[0] + "77", dst="fd00:60::2") / ICMPv6EchoRequest()
               / Raw(b"y" * 52))
    anna.send(pppoe.IP6, bytes(request))
    check(anna.echo_reply(pppoe.IP6) is not None, "no answer over IPv6")

    out = radclient("disconnect", 'User-Name = "anna"')
    check("Disconnect-ACK" in out, f"no Disconnect-ACK: {out}")
    check((anna.next(pppoe.LCP) or (0, 0))[1] == pppoe.TERMINATE, "no Terminate-Request")
    wait_until(lambda: of_kind("Stop"), "the last record")
    stop = of_kind("Stop")[0]
    equal("last record", [stop.get(a) for a in ("Acct-Terminate-Cause", "Acct-Input-Packets", "Acct-Output-Packets")],
          ["Admin-Reset", str(PINGS + 1), str(PINGS + 1)])
    octets = str(PINGS * SIZE + 100)
    equal("octets", (stop.get("Acct-Input-Octets"), stop.get("Acct-Output-Octets")), (octets, octets))
    print({k: v for k, v in stop.items() if "IPv6" in k or "Class" in k or "Port" in k})
    out = radclient("disconnect", 'User-Name = "anna"')
    check("Disconnect-NAK" in out and "Session-Context-Not-Found" in out, f"{out}")
    done("radius")


main()
