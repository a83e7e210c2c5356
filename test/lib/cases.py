# SPDX-License-Identifier: Apache-2.0
"""One packet of every kind: (name, subscriber, IP version, inner packet, frame to send)."""

from subscribers import SUBSCRIBERS, INTERNET4, INTERNET6, from_upf, inner, to_frame

KINDS = ["udp", "tcp", "icmp"]
SIZES = [1, 100, 1200]


def uplink_cases(mac):
    """Every subscriber, IP version and TPID of the outer tag; transports and sizes in turn."""
    n = 0
    for subscriber in SUBSCRIBERS:
        for version in (4, 6):
            for tpid in (0x8100, 0x88a8):
                kind, size = KINDS[n % 3], SIZES[n // 2 % 3]
                packet = inner(version, subscriber.address(version), INTERNET4 if version == 4 else INTERNET6, kind,
                               size, tos=0xb8 if n % 2 else 3, seed=1000 + n)
                yield (f"up {subscriber.name} IPv{version} {kind} {tpid:#x}", subscriber, version, packet,
                       to_frame(subscriber, mac, packet, tpid))
                n += 1


def downlink_cases(core_mac, our_mac):
    n = 0
    for subscriber in SUBSCRIBERS:
        for version in (4, 6):
            for container in (True, False) if subscriber.qfi_down == 0 else (True,):
                kind, size = KINDS[n % 3], SIZES[n // 3 % 3]
                packet = inner(version, INTERNET4 if version == 4 else INTERNET6, subscriber.address(version), kind,
                               size, tos=0x28, seed=2000 + n)
                frame = from_upf(subscriber, core_mac, our_mac, packet, container=container)
                yield (f"down {subscriber.name} IPv{version} {kind} container={container}", subscriber, version, packet,
                       frame)
                n += 1
