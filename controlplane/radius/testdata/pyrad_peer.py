# SPDX-License-Identifier: Apache-2.0
"""Reads packets of ours, one a line in hexadecimal digits, with pyrad: prints what is in them and, of an
Access-Request, an answer. For pyrad_test.go."""
import hashlib
import hmac
import io
import sys

from pyrad import packet
from pyrad.dictionary import Dictionary

SECRET = b"testing123"
NAMES = Dictionary(io.StringIO("""
ATTRIBUTE User-Name 1 string
ATTRIBUTE User-Password 2 octets
ATTRIBUTE NAS-IP-Address 4 ipaddr
ATTRIBUTE Reply-Message 18 string
ATTRIBUTE Session-Timeout 27 integer
ATTRIBUTE Acct-Status-Type 40 integer
ATTRIBUTE Acct-Session-Id 44 string
ATTRIBUTE Message-Authenticator 80 octets
ATTRIBUTE NAS-Port-Id 87 string
ATTRIBUTE Framed-IPv6-Prefix 97 ipv6prefix
VENDOR ADSL-Forum 3561
BEGIN-VENDOR ADSL-Forum
ATTRIBUTE ADSL-Agent-Circuit-Id 1 string
ATTRIBUTE Actual-Data-Rate-Upstream 129 integer
END-VENDOR ADSL-Forum
"""))


def signature_is_right(raw, authenticator):
    """Message-Authenticator is the first attribute (RFC 3579 section 3.2)."""
    if raw[20:22] != bytes([80, 18]):
        return False
    blank = raw[:4] + authenticator + raw[20:22] + bytes(16) + raw[38:]
    return hmac.new(SECRET, blank, hashlib.md5).digest() == raw[22:38]


for line in sys.stdin:
    raw = bytes.fromhex(line)
    if raw[0] == packet.AccessRequest:
        p = packet.AuthPacket(packet=raw, secret=SECRET, dict=NAMES)
        print("password", p.PwDecrypt(p["User-Password"][0]))
        print("signed", signature_is_right(raw, raw[4:20]))
        reply = p.CreateReply()
        reply.code = packet.AccessAccept
        reply["Reply-Message"] = "made by pyrad"
        reply["Session-Timeout"] = 77
        print("reply", reply.ReplyPacket().hex())
    elif raw[0] == packet.AccountingRequest:
        p = packet.AcctPacket(packet=raw, secret=SECRET, dict=NAMES)
        print("authentic", hashlib.md5(raw[:4] + bytes(16) + raw[20:] + SECRET).digest() == raw[4:20])
    else:
        p = packet.CoAPacket(packet=raw, secret=SECRET, dict=NAMES)
        print("authentic", p.VerifyCoARequest() if hasattr(p, "VerifyCoARequest")
              else hashlib.md5(raw[:4] + bytes(16) + raw[20:] + SECRET).digest() == raw[4:20])
        print("signed", signature_is_right(raw, bytes(16)))
    for name in sorted(p.keys(), key=str):
        if name not in ("User-Password", "Message-Authenticator"):
            print(name, p[name])
    print("end")
