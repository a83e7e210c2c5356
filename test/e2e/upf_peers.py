# SPDX-License-Identifier: Apache-2.0
"""Foreign control planes against the UPF: SD-Core's pfcpsim by its own command line, and the PFCP library of free5GC's
SMF with that SMF's rules. They judge the answers themselves; packets show here whether the rules hold."""

import json
import os
import queue
import re
import subprocess
import threading

import n4
from frames import DIR, check, check_sum, done, drops, equal, show, wait_until
from n4 import GNB
from upf_smfs import BUFF, END_MARKER, FORW, GNB_2, NOCP, Flow, World, gtpu_header, is_gtpu

PEERS = os.environ["PEERS"]


def refusals():
    return [(r["message"], r["cause"], r["text"]) for r in show("n4")["refusals"]]


# ---- pfcpsim -------------------------------------------------------------------------------------------------------


def pfcpctl(*words):
    """One command; it ends with another status than 0 when the UPF's answer is not what pfcpsim expects."""
    run = subprocess.run([f"{PEERS}/pfcpctl", "-s", "127.0.0.1:54321", *words], capture_output=True, text=True,
                         check=False)
    said = re.sub(r"\x1b\[[0-9;]*m", "", run.stdout + run.stderr)
    return check(run.returncode == 0 and "error" not in said, f"pfcpctl {' '.join(words)}: {refusals()[:1]}; {said}")


def pfcpsim(w):
    """Two sessions of two filters each: everything but one address, whose gate is closed. TEIDs and rule ids are 1
    and 11 onwards."""
    server = subprocess.Popen([f"{PEERS}/pfcpsim", "-i", "smf0"], stdout=open(f"{DIR}/pfcpsim.log", "wb"),
                              stderr=subprocess.STDOUT)
    filters = ("-a", "ip:any:any:allow:200", "-a", "ip:10.60.0.9/32:any:deny:100")
    sessions = ("-c", "2", "-i", "1", "-u", "10.45.7.0/24", "-g", GNB)
    wait_until(lambda: "listening" in open(f"{DIR}/pfcpsim.log", encoding="utf-8").read(), "pfcpsim")
    pfcpctl("service", "configure", "--n3-addr", n4.N3, "--remote-peer-addr", n4.UPF_N4)
    pfcpctl("service", "associate")
    if not pfcpctl("session", "create", *sessions, *filters, "-q", "9"):
        return
    equal("sessions of pfcpsim", len(show("session")), 2)
    # Downlink FARs drop, with an outer header of nothing; uplink flows.
    flows = [Flow(w, "10.45.7.1", 1, 9), Flow(w, "10.45.7.2", 11, 9)]
    for flow in flows:
        flow.up("before the gNB")
        closed(w, flow)
    pfcpctl("session", "modify", *sessions, *filters)
    for flow, teid in zip(flows, (2, 12)):
        flow.both(teid, what="of pfcpsim")
    # Idle, with TEID 0: a report that pfcpsim acknowledges; then active again, and what waited goes out.
    pfcpctl("session", "modify", *sessions, *filters, "-b", "-n")
    first = w.down(flows[0].ue)
    wait_until(lambda: show("n4")["sent"].get("session-report-request"), "a Session Report")
    pfcpctl("session", "modify", *sessions, *filters)
    flows[0].down(2, what="that waited", mark=first)
    # It answers no heartbeats of ours: its requests are served all the same.
    wait_until(lambda: show("n4")["events"].get("path-failed"), "heartbeats without answers", 20)
    pfcpctl("session", "modify", *sessions, *filters)
    flows[0].both(2, what="with a failed path")
    pfcpctl("session", "delete", "-c", "2", "-i", "1")
    wait_until(lambda: not show("session"), "pfcpsim's sessions to go")
    pfcpctl("service", "disassociate")
    server.terminate()
    server.wait(60)


def closed(w, flow):
    """Drops by the closed gate."""
    before = drops()
    w.up(flow.teid, flow.ue, qfi=9, destination="10.60.0.9")
    wait_until(lambda: drops() != before, "a drop")
    rose = {name: n - before.get(name, 0) for name, n in drops().items() if n != before.get(name)}
    equal("drops", rose, {"uplink-gate-closed": 1})


# ---- free5GC -------------------------------------------------------------------------------------------------------


class Free5GC:
    ue, teid = "10.45.6.1", 0x11

    def __init__(self):
        self.process = subprocess.Popen([f"{PEERS}/free5gc", "10.40.0.3", n4.UPF_N4, n4.N3, self.ue], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.answers, self.reports = queue.Queue(), queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for text in self.process.stdout:
            line = json.loads(text)
            (self.reports if line["event"] == "report" else self.answers).put(line)

    def __call__(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        try:
            line = self.answers.get(timeout=60)
        except queue.Empty:
            line = {}
        check(line.get("event") == "answer" and line.get("cause") == n4.ACCEPTED, f"{words}: {line}; {refusals()[:1]}")
        return line

    def report(self, what, test):
        try:
            while True:
                line = self.reports.get(timeout=60)
                if test(line):
                    return line
        except queue.Empty:
            check(False, f"no report: {what}")
            return {}


def free5gc(w):
    smf = Free5GC()
    smf("associate")
    smf("establish")
    flow = Flow(w, smf.ue, smf.teid, 1)
    smf("connect", 0x6001, GNB, FORW, 0)
    flow.both(0x6001, what="of free5GC")
    smf("connect", 0x6002, GNB_2, FORW, 2)
    end = w.gnb.frame(is_gtpu(END_MARKER), "an End Marker")
    equal("End Marker to", (end.value("ip", "ip.dst"), gtpu_header(end)), (GNB, 0x6001))
    flow.both(0x6002, GNB_2, "after the path switch")
    smf("connect", 0x6002, GNB_2, BUFF | NOCP, 0)
    first = w.down(smf.ue)
    equal("PDR of the Downlink Data Report", smf.report("downlink data", lambda r: "pdr" in r).get("pdr"), 2)
    smf("connect", 0x6003, GNB, FORW, 0)
    flow.down(0x6003, what="that woke the UE", mark=first)
    # 28 bytes of headers: two of 128 so far, and the threshold of 1000 is one of the uplink alone.
    for _ in range(4):
        flow.up("of the threshold", size=172)
    report = smf.report("the uplink's threshold", lambda r: r.get("usage"))
    check(all(u["uplink"] >= 1000 for u in report.get("usage", [{"uplink": 0}])), f"volumes at the threshold: {report}")
    equal("URRs that a query tells", [u["urr"] for u in smf("query").get("usage", [])], [1, 2])
    flow.up("before the end", size=172)
    equal("final reports", [(u["urr"], u["total"]) for u in smf("delete").get("usage", [])], [(1, 200), (2, 200)])
    smf("release")
    smf.process.stdin.close()
    smf.process.wait(60)


def main():
    w = World()
    w.gnb.socket.setblocking(True)
    for peer in (pfcpsim, free5gc):
        peer(w)
    check_sum("end")
    remarks = n4.tshark_remarks(f"{DIR}/n4.pcap")
    check(not remarks, f"tshark's remarks about our PFCP: {sorted(set(remarks))[:10]}")
    done("peers")


if __name__ == "__main__":
    main()
