# SPDX-License-Identifier: Apache-2.0
"""Everything at once against a UPF (chaos_test.sh). In rounds of some seconds sessions of two CP functions come, change
and go. Packets flow, a fifth of them hostile, beside hostile PFCP and scrapes, and faults are drawn by chance.

After each round all is mended and quiet. Both processes are the same unless killed on purpose. A session that was
accepted and not deleted passes packets in both directions. The counters add up, no packet buffer is lost, and memory is
what it was when the process was first quiet.

No worker stood still for more than 10 ms unless the machine did. Its thread waited for a CPU, the hypervisor took it,
or a reference process of each CPU that wakes every millisecond came late too. The clock judges nothing else.

CHAOS_SEED repeats a run's configuration, faults and packets, though not their moments to the millisecond."""

import contextlib
import http.client
import itertools
import json
import logging
import multiprocessing
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.request

import n4
from frames import DIR, Wire, check, check_sum, done, equal, rows, show, wait_pass, wait_until
from hostile import Frames, Messages
from n4 import ASSOCIATION_RELEASE, DELETE, ESTABLISH, MODIFY, Node, group, node_id, outer_header, rules_of, u8, u32
from scapy.all import IP, UDP, Ether, Raw
from scapy.contrib.gtp import GTP_U_Header, GTPPDUSessionContainer
from subscribers import silent_gtpu

logging.getLogger("scapy.runtime").setLevel(logging.ERROR)  # what it thinks of our answers to bad messages
BIN, SECONDS = os.environ["BIN"], int(os.environ.get("CHAOS_SECONDS", "600"))
SEED = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().getrandbits(32))
ROUND = 6  # seconds of chaos between two quiet moments
RATE, HOSTILE = 1000, 0.2  # packets a second, and the part of them that is bad
SLOTS = 48  # sessions of the first CP function at most, each with its own TEID and UE address
LOAD = "10.40.0.5"  # where `isthmus control-load` is the CP function
METRICS = n4.UPF_N4 + ":9464"
STORE = f"{DIR}/store"


def teid(slot):
    return 0x1001 + slot


def ue(slot):
    return f"10.45.1.{slot + 1}"


def same_far(slot):
    return group(10, u32(108, 2), u8(44, 2), group(11, outer_header(0x9000 + slot, n4.GNB)))


def configuration(dice, engine):
    """A file of random settings. `engine` are those that only a restart can change."""
    with open(f"{DIR}/isthmus.yaml", encoding="utf-8") as f:
        text = f.read()
    swap = lambda old, new: text.replace(old, new, 1) if old in text else sys.exit(f"no {old!r} in the configuration")
    text = swap("engine: {packet_buffers: 8192,", "engine: {" + engine + ",")
    text = swap("limits: {sessions: 512, associations: 4, sessions_per_association: 400,",
                "limits: {associations: 8, sessions_per_association: 3000,")
    text = swap("    - {address: 10.40.0.3, node_id: smf2.isthmus.test}\n",
                f"    - {{address: 10.40.0.3, node_id: smf2.isthmus.test}}\n    - "
                f"{{address: {LOAD}, node_id: load.test}}\n")
    text = swap("  heartbeat:", f"  store: {STORE}/sessions.db\n  takeover: {dice.choice(('true', 'false'))}\n"
                f"  rates: {{requests: {dice.choice((500, 100000))}, heartbeats: {dice.choice((10, 1000))}}}\n  "
                f"heartbeat:")
    text = swap('sources: [access, cp]}', f"sources: [access, cp], pin_peer: {dice.choice(('true', 'false'))}}}")
    between = dice.choice(("inside", "out", "drop"))
    text = swap("sources: [core, sgi-lan]}", f"sources: [core, sgi-lan], ue_to_ue: {between}}}")
    extra = "".join(f"  - {{prefix: 10.{99 + i}.0.0/16, via: 10.60.0.{dice.randint(2, 9)}}}\n"
                    for i in range(dice.randint(0, 5)))
    return swap("routes:\n", "routes:\n" + extra)


def engine_settings(dice):
    return (f"workers: {dice.randint(1, 2)}, packet_buffers: {dice.choice((8192, 16384))}, "
            f"drop_ue_gtpu: {dice.choice(('true', 'false'))}, "
            f"rates: {{icmp_errors: {dice.choice((10, 100))}, error_indications: {dice.choice((10, 100))}, "
            f"echo: {dice.choice((10, 1000))}}}")


# ---- the gateway ---------------------------------------------------------------------------------------------------


class OverUnix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(5)
        self.sock.connect(os.environ["ISTHMUS_SOCKET"])


def ask(path):
    """The answer of the control plane's socket, None while it is away or refuses."""
    connection = OverUnix("isthmus")
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return json.loads(answer.read()) if answer.status == 200 else None
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


class Gateway:
    def __init__(self):
        self.log = open(f"{DIR}/isthmus.log", "ab")
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            ["nsenter", "--net=/run/netns/gateway", "--", BIN + "/isthmus", "run", "-c", f"{DIR}/chaos.yaml",
             "--dp-socket", f"{DIR}/dp.sock",
             "--metrics", METRICS, "--metrics-public", "--spawn"], stdout=self.log, stderr=self.log)

    def ready(self):
        """Waits until both processes are in step; returns their ids."""
        run = subprocess.run([BIN + "/isthmus", "status", "--wait", "60s"], capture_output=True, text=True, check=False)
        check(run.returncode == 0, f"the gateway does not become ready: {run.stdout}{run.stderr}")
        status = ask("/v1/status")
        return (status["pid"], status["dp_pid"]) if status else sys.exit("the gateway is away")

    @staticmethod
    def noticed_full_disk():
        with open(f"{DIR}/isthmus.log", encoding="utf-8", errors="replace") as f:
            return "no space left" in f.read()

    def kill_control(self):
        self.process.kill()
        self.process.wait()
        self.start()

    def kill_data(self):
        status = ask("/v1/status")
        if status and status["dp_pid"]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(status["dp_pid"], signal.SIGKILL)


# ---- stalls --------------------------------------------------------------------------------------------------------


def wait_reference(cpu, late):
    """Wakes every millisecond on a CPU and adds up, in microseconds, by how much it was late by 3 ms or more."""
    # The sleep itself is measured: there is no event to wait for.
    os.sched_setaffinity(0, {cpu})
    while True:
        before = time.monotonic()
        time.sleep(0.001)
        over = time.monotonic() - before - 0.001
        if over > 0.003:
            with late.get_lock():
                late.value += int(over * 1e6)


class Stalls:
    """Walks of more than 10 ms, less those that the machine explains."""

    def __init__(self):
        self.late = multiprocessing.Value("Q", 0)
        for cpu in os.sched_getaffinity(0):
            multiprocessing.Process(target=wait_reference, args=(cpu, self.late), daemon=True).start()
        self.before = {}  # (pid, worker): (stalls, microseconds of them, microseconds of the machine)
        self.shared = 0  # of `machine`, what is not of one process
        # [(time of a look, microseconds that the machine took before it)]: a stall is counted at its end, the machine's
        # part possibly some looks earlier.
        self.took = {}
        self.all = self.longest = 0
        self.unexplained = []

    def machine(self, pid):
        """{worker: microseconds of waiting for a CPU}; microseconds stolen or by which references were late."""
        waited = {}
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/comm", encoding="ascii") as f:
                name = f.read().strip()
                if name.startswith("worker-"):
                    with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as f:
                        waited[int(name[7:])] = int(f.read().split()[1]) // 1000
        with open("/proc/stat", encoding="ascii") as f:
            stolen = int(f.readline().split()[8]) * 1000000 // os.sysconf("SC_CLK_TCK")
        return waited, stolen + self.late.value

    def look(self):
        status, rows = ask("/v1/status"), ask("/v1/show/worker")
        if not status or not rows:
            return
        try:
            waited, shared = self.machine(status["dp_pid"])
        except OSError:
            return
        # A worker whose process was killed after the request has no figure.
        now = {(status["dp_pid"], row["worker"]): (row["stalls"], row["stalled_us"], waited[row["worker"]] + shared)
               for row in rows if row["worker"] in waited}
        at = time.monotonic()
        for who, figures in now.items():
            # A process that was not there at the last look may have a stall since then that is not counted yet.
            stalls, stalled, took = (a - b for a, b in zip(figures, self.before.get(who, (*figures[:2], self.shared))))
            looks = self.took.setdefault(who, [])
            looks.append((at, took))
            explained = sum(us for when, us in looks if when > at - stalled / 1e6 - 1)
            self.all += max(stalls, 0)
            if stalls > 0 and stalled > explained + 10000 * stalls:
                self.unexplained.append(f"worker {who[1]}: {stalls} stalls of {stalled} us, "
                                        f"of which the machine explains {explained}")
                print(self.unexplained[-1], flush=True)
        self.longest = max(self.longest, *(row["longest_us"] for row in rows))
        self.before, self.shared = now, shared

    @staticmethod
    def prove(pid):
        """A data plane that is stopped for 100 ms must count it, or this proves nothing; less of it, where a worker
        slept."""
        def stalled():
            return {row["worker"]: row["stalled_us"] for row in ask("/v1/show/worker") or []}
        for _ in range(40):
            before = stalled()
            os.kill(pid, signal.SIGSTOP)
            wait_pass(0.1)
            os.kill(pid, signal.SIGCONT)
            wait_pass(0.05)
            if any(us >= before.get(worker, us) + 90000 for worker, us in stalled().items()):
                return
        check(False, "a data plane that was stopped for 100 ms shows no stall")


# ---- what goes on --------------------------------------------------------------------------------------------------


class Chaos:
    def __init__(self, dice, gateway, stalls):
        self.dice, self.gateway, self.stalls = dice, gateway, stalls
        self.going, self.ended = threading.Event(), threading.Event()
        self.smf, self.other = Node(n4.SMF1, "smf1.isthmus.test"), Node(n4.SMF2, "smf2.isthmus.test")
        self.mac = {port["name"]: port["mac"] for port in show("port")}
        self.sessions, self.blocked, self.numbers, self.refusal = {}, set(), itertools.count(1), None
        self.pids, self.memory, self.reasons, self.faults = None, {}, set(), set()
        self.counts = dict.fromkeys(("good", "hostile", "messages", "scrapes", "established", "modified", "deleted",
                                     "refused", "unanswered"), 0)
        self.sockets = {name: self.raw(name) for name in ("gnb0", "dn0")}
        self.own = {name: s.getsockname()[4].hex(":") for name, s in self.sockets.items()}
        self.fill(2000)
        self.threads = [threading.Thread(target=self.over_and_over, args=(work, random.Random(dice.random())),
                                         daemon=True)
                        for work in (self.packets, self.control, self.messages, self.scrape)]
        for thread in self.threads:
            thread.start()

    @staticmethod
    def raw(name):
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        s.bind((name, 0))
        return s

    def fill(self, count):
        """Frames of the round; good ones for every slot."""
        bad = Frames(self.dice, self.mac, self.own["gnb0"], self.own["dn0"], [teid(s) for s in range(SLOTS)],
                     [ue(s) for s in range(SLOTS)])
        self.hostile = [bad.frame() for _ in range(count)]
        self.good = [f for s in range(SLOTS)
                     for f in (("gnb0", bytes(self.up(s, b"load"))), ("dn0", bytes(self.down(s, b"load"))))]

    def up(self, slot, mark):
        gtpu = GTP_U_Header(teid=teid(slot), gtp_type=255) / GTPPDUSessionContainer(type=1, QFI=9)
        inner = IP(src=ue(slot), dst=n4.DN, ttl=17) / UDP(sport=40001, dport=40002) / Raw(mark.ljust(64, b"."))
        return (Ether(src=self.own["gnb0"], dst=self.mac["n3"]) / IP(src=n4.GNB, dst=n4.N3)
                / UDP(sport=2152, dport=2152) / gtpu / inner)

    def down(self, slot, mark):
        return (Ether(src=self.own["dn0"], dst=self.mac["n6"]) / IP(src=n4.DN, dst=ue(slot), ttl=17)
                / UDP(sport=40002, dport=40001) / Raw(mark.ljust(64, b".")))

    def over_and_over(self, work, dice):
        while not self.ended.is_set():
            if self.going.wait(0.1):
                work(dice)

    def packets(self, dice):
        for _ in range(RATE // 100):
            kind = "hostile" if dice.random() < HOSTILE else "good"
            name, data = dice.choice(self.hostile if kind == "hostile" else self.good)
            with contextlib.suppress(OSError):  # the port is down
                self.sockets[name].send(data[:1614])
                self.counts[kind] += 1
        wait_pass(0.01)

    def control(self, dice):
        """One request of the CP function that behaves."""
        slot = dice.randrange(SLOTS)
        if slot in self.blocked:
            return
        session = self.sessions.get(slot)
        if session is None:
            cp_seid = next(self.numbers)
            what, kind, seid = "established", ESTABLISH, 0
            body = self.smf.establish_body(cp_seid, rules_of(teid(slot), ue(slot), down_teid=0x9000 + slot))
        elif dice.random() < 0.5:
            what, kind, seid, body = "modified", MODIFY, session, same_far(slot)
        else:
            what, kind, seid, body = "deleted", DELETE, session, b""
        answer, sequence = None, next(Node.sequences)
        for _ in range(4):  # TS 29.244 §6.4
            answer = answer or self.smf.request(kind, body, seid=seid, sequence=sequence, seconds=1)
        if answer is None:
            self.counts["unanswered"] += 1
            if what != "modified":  # the outcome is unknown
                self.sessions.pop(slot, None)
                self.blocked.add(slot)
        elif answer.cause != n4.ACCEPTED:
            self.counts["refused"] += 1
            self.refusal = f"{what}: cause {answer.cause}"
        else:
            self.counts[what] += 1
            if what == "established":
                self.sessions[slot] = answer.seid
            elif what == "deleted":
                self.sessions.pop(slot, None) # its own thread may have deleted it
        wait_pass(0.01)

    def messages(self, dice):
        bad = Messages(dice, self.other)
        unknown = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        unknown.bind((n4.UNKNOWN, 0))
        while self.going.is_set():
            data = bad.message()
            with contextlib.suppress(OSError):
                (unknown if dice.random() < 0.3 else self.other.socket).sendto(data, (n4.UPF_N4, 8805))
                self.counts["messages"] += 1
            wait_pass(0.02)
        unknown.close()

    def scrape(self, _):
        """Row M3: a hundred scrapes a second, as far as the machine can."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            with urllib.request.urlopen(f"http://{METRICS}/metrics", timeout=2) as answer:
                answer.read()
                self.counts["scrapes"] += 1
        wait_pass(0.01)

    # ---- faults

    def flap(self, dice):
        """A port goes down and comes back, at either end of its cable."""
        name = dice.choice(("n3", "n6"))
        inside = dice.random() < 0.5
        device = f"veth-{name}" if inside else {"n3": "gnb0", "n6": "dn0"}[name]
        enter = ["nsenter", "--net=/run/netns/gateway", "--"] if inside else []
        for _ in range(dice.randint(1, 4)):
            for state, seconds in (("down", dice.uniform(0.02, 0.4)), ("up", dice.uniform(0.02, 0.2))):
                subprocess.run([*enter, "ip", "link", "set", device, state], check=True)
                wait_pass(seconds)

    def kill_control(self, _):
        self.gateway.kill_control()

    def kill_data(self, _):
        self.gateway.kill_data()

    def disk(self, dice):
        with contextlib.suppress(OSError), open(f"{STORE}/full", "wb", buffering=0) as f:
            while True:
                f.write(bytes(4096))
        wait_pass(dice.uniform(0.5, 2))
        for _ in range(40):  # while the data plane is away no change is written
            if self.gateway.noticed_full_disk():
                break
            wait_pass(0.25)
        os.remove(f"{STORE}/full")

    def apply(self, dice):
        self.put(configuration(dice, self.engine))

    def bad(self, dice):
        """Row M5: refused, and what runs stays."""
        text = configuration(dice, self.engine)
        at = dice.randrange(len(text))
        text = dice.choice((text[:at] + "\n}nonsense: [" + text[at:], text + "\nunknown: 1\n",
                            text.replace("10.30.0.1", "10.30.0.300")))
        with open(f"{DIR}/bad.yaml", "w", encoding="utf-8") as f:
            f.write(text)
        run = subprocess.run([BIN + "/isthmus", "config", "apply", f"{DIR}/bad.yaml"], capture_output=True, text=True,
                             check=False)
        check(run.returncode != 0, "a bad configuration was taken")

    def put(self, text):
        with open(f"{DIR}/next.yaml", "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(f"{DIR}/next.yaml", f"{DIR}/chaos.yaml")
        # It may be away, having been killed: then it starts with the new file.
        subprocess.run([BIN + "/isthmus", "config", "apply"], capture_output=True, check=False)

    def round(self, number):
        """Chaos for a while. Returns the faults that were drawn."""
        names = ("flap", "kill_control", "kill_data", "disk", "apply", "bad")
        drawn = self.dice.sample(names, self.dice.randint(1, 4))
        moments = sorted((self.dice.uniform(0, ROUND * 0.7), name, random.Random(self.dice.random())) for name in drawn)
        print(f"round {number}: " + ", ".join(f"{name} at {at:.1f} s" for at, name, _ in moments), flush=True)
        load = subprocess.Popen(
            [BIN + "/isthmus", "control-load", "--peer", n4.UPF_N4, "--local", LOAD, "--node-id", "load.test", "--core",
             "internet", "--access-peer",
             n4.GNB, "--first-ue", "10.45.128.0", "--rate", "100", "--sessions", "200", "--seconds", str(ROUND - 2),
             "--t1", "300ms", "-j"],
            stdout=open(f"{DIR}/load.json", "wb"), stderr=open(f"{DIR}/load.log", "wb"))
        begun = time.monotonic()
        self.going.set()
        faults = [threading.Timer(at, getattr(self, name), [dice]) for at, name, dice in moments]
        for fault in faults:
            fault.start()
        while time.monotonic() < begun + ROUND or any(f.is_alive() for f in faults):
            self.stalls.look()
            wait_pass(0.25)
        self.going.clear()
        load.kill()
        load.wait()
        self.faults |= set(drawn)
        return drawn

    # ---- quiet moments

    def passing(self, wires, slots):
        """The slots of which a packet does not pass in one of the directions."""
        marks = {}
        for slot in slots:
            for way in ("up", "down"):
                mark = struct.pack(">IIQ", 0x15715715, slot, next(self.numbers))
                name, frame = ("gnb0", self.up(slot, mark)) if way == "up" else ("dn0", self.down(slot, mark))
                marks[mark] = (slot, way)
                self.sockets[name].send(bytes(frame))
        there = {"gnb0": "down", "dn0": "up"}
        for _ in range(20):
            for wire in wires:
                while (data := wire._read(0.05)) is not None:
                    found = next((m for m in marks if m in data and marks[m][1] == there[wire.name]), None)
                    marks.pop(found, None)
            if not marks:
                break
        return sorted({slot for slot, _ in marks.values()})

    def probe(self, what):
        wires = [Wire("gnb0"), Wire("dn0")]
        left = sorted(self.sessions)
        for _ in range(4):  # the first ones may find that a neighbour must be asked for
            left = self.passing(wires, left) if left else []
        check(not left, f"{what}: {len(left)} of {len(self.sessions)} sessions do not pass packets: slots {left}")
        for wire in wires:
            wire.socket.close()

    def quiet(self, what, drawn=()):
        pids = self.gateway.ready()
        for now, was, fault in zip(pids, self.pids or pids, ("kill_control", "kill_data")):
            check(now == was or fault in drawn, f"{what}: process {was} ended by itself, {now} is there now")
        self.pids = pids
        check(self.smf.heartbeat() is not None, f"{what}: no heartbeat answered")
        if {"disk", "kill_control"} <= set(drawn):
            self.forget_lost()
        self.probe(what)
        total = check_sum(what)
        self.reasons |= set(rows("drop")) | {"n4 " + reason for reason, count in show("n4")["rejected"].items()
                                             if count}
        lost = lambda t: t["buffers"] - t["buffers_free"] - t["held"]
        wait_until(lambda: lost(show("total")) <= 0, f"{what}: buffers to be given back")
        # The control plane's heap comes and goes by the room that its collector has; in ten minutes it was 25 to 97 MB,
        # to and fro.
        for pid, room in zip(pids, (98304, 16384)):
            kib = n4.rss_kib(pid)
            grown = kib - self.memory.setdefault(pid, kib)
            check(grown < room, f"{what}: process {pid} grew by {grown} KiB")
        print(f"{what}: {total['sessions']} sessions, {total['buffers_free']} of {total['buffers']} buffers free, "
              f"{total['held']} held, "
              f"memory {[n4.rss_kib(pid) for pid in pids]} KiB; so far {self.counts}, last refusal {self.refusal}",
              flush=True)
        if len(self.blocked) > SLOTS // 2:
            self.afresh()

    def forget_lost(self):
        """Sessions accepted while the disk was full need not outlive the control plane."""
        for slot, seid in list(self.sessions.items()):
            answer = self.smf.request(MODIFY, same_far(slot), seid=seid, seconds=3)
            if answer is not None and answer.cause == n4.CONTEXT_NOT_FOUND:
                self.sessions.pop(slot, None) # its own thread may have deleted it

    def release(self, node):
        answer = node.request(ASSOCIATION_RELEASE, node_id(node.name), seconds=10)
        check(answer is not None and answer.cause in (n4.ACCEPTED, n4.NO_ASSOCIATION),
              f"release of {node.name}: {answer and answer.cause}")

    def afresh(self):
        """Slots with an unanswered last request are free again with a new association."""
        self.release(self.smf)
        wait_until(lambda: getattr(self.smf.associate(), "cause", None) == n4.ACCEPTED, "a new association", 10)
        self.sessions, self.blocked = {}, set()

    def end(self):
        self.ended.set()
        for thread in self.threads:
            thread.join()
        for node in (self.smf, self.other):
            self.release(node)
        load = Node(LOAD, "load.test")
        load.associate()
        self.release(load)
        empty = lambda: (lambda t: t["sessions"] == 0 and t["held"] == 0
                         and t["buffers_free"] == t["buffers"])(show("total"))
        wait_until(empty, f"no session, no packet, no buffer left: {show('total')}", 30)
        self.sessions = {}
        self.quiet("end")


def main():
    print(f"CHAOS_SEED={SEED}", flush=True)
    dice = random.Random(SEED)
    sinks = silent_gtpu()
    engine = engine_settings(dice)
    with open(f"{DIR}/chaos.yaml", "w", encoding="utf-8") as f:
        f.write(configuration(dice, engine))
    gateway = Gateway()
    gateway.ready()
    stalls = Stalls()
    chaos = Chaos(dice, gateway, stalls)
    chaos.engine = engine
    for node in (chaos.smf, chaos.other):
        equal(f"association of {node.name}", getattr(node.associate(), "cause", None), n4.ACCEPTED)
    chaos.going.set()
    stalls.prove(gateway.ready()[1])
    wait_pass(1)
    chaos.going.clear()
    wait_pass(0.5)
    chaos.quiet("first")
    until = time.monotonic() + SECONDS
    for number in itertools.count(1):
        drawn = chaos.round(number)
        chaos.quiet(f"round {number}", drawn)
        chaos.fill(200)
        if time.monotonic() > until:
            break
    chaos.end()
    check(not stalls.unexplained, f"the machine does not explain {stalls.unexplained}")
    print(f"{stalls.all} stalls, {len(stalls.unexplained)} times not explained by the machine; longest walk "
          f"{stalls.longest} us")
    for what in ("good", "hostile", "messages", "scrapes", "established", "modified", "deleted"):
        check(chaos.counts[what] > 0, f"nothing was {what}")
    print(f"{len(chaos.reasons)} reasons to drop or refuse: {sorted(chaos.reasons)}")
    check(len(chaos.reasons) >= 25, "so few reasons: the hostile input is not what it should be")
    check("disk" not in chaos.faults or chaos.gateway.noticed_full_disk(), "the disk was full and nobody noticed")
    check(0.15 < chaos.counts["hostile"] / (chaos.counts["good"] + chaos.counts["hostile"]) < 0.25,
          f"the hostile part: {chaos.counts}")
    for s in sinks:
        s.close()
    print(f"CHAOS_SEED={SEED}: {number} rounds")
    done("chaos")


if __name__ == "__main__":
    sys.exit(main())
