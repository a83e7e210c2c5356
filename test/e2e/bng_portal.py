# SPDX-License-Identifier: Apache-2.0
"""The network of a captive home: a name server, and web servers of a portal and of others, by HTTP and HTTPS.

usage: bng_portal.py CERTIFICATE KEY. A line on standard output for each request; "ready" before the first.
"""

import http.server
import socket
import socketserver
import ssl
import sys
import threading

from scapy.all import DNS, DNSRR

SERVERS = "192.0.2.53", "2001:db8:53::53"
SITES = {name + ".test": (f"192.0.2.{host}", f"2001:db8:53::{host}")
         for name, host in (("news", 80), ("portal", 81), ("other", 82))}
A, AAAA = 1, 28


def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def serve_names(address):
    with socket.socket(family(address), socket.SOCK_DGRAM) as s:
        s.bind((address, 53))
        STARTED.release()
        while True:
            data, client = s.recvfrom(512)
            request = DNS(data)
            question = request.qd[0] if isinstance(request.qd, list) else request.qd
            found = SITES.get(question.qname.decode().rstrip("."), ())
            answer = [a for a in found if question.qtype == (AAAA if ":" in a else A)]
            record = DNSRR(rrname=question.qname, type=question.qtype, ttl=60, rdata=answer[0]) if answer else None
            reply = DNS(id=request.id, qr=1, ra=1, rd=request.rd, rcode=0 if found else 3, qd=question, an=record)
            s.sendto(bytes(reply), client)


class Page(http.server.BaseHTTPRequestHandler):
    """Names its server, whatever name the client requested."""

    def do_GET(self):
        text = f"this is {self.server.site}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        print(f"{self.server.site} {self.server.scheme} {self.client_address[0]}", flush=True)


class Web(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def __init__(self, site, address, context):
        self.site, self.scheme, self.address_family = site, "https" if context else "http", family(address)
        super().__init__((address, 443 if context else 80), Page)
        if context:  # the handshake is the connection's thread's, not accept()'s
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)


STARTED = threading.Semaphore(0)


def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*sys.argv[1:])
    for address in SERVERS:
        threading.Thread(target=serve_names, args=(address,), daemon=True).start()
        STARTED.acquire()
    webs = [Web(site, address, c) for site, both in SITES.items() for address in both for c in (None, context)]
    for w in webs:
        threading.Thread(target=w.serve_forever).start()
    print("ready", flush=True)


main()
