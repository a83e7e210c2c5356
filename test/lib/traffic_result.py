# SPDX-License-Identifier: Apache-2.0
"""Checks expressions on a result of isthmus-traffic. Usage: traffic_result.py RESULT.json EXPRESSION...

The names in an expression:

* r: the whole result, and each stream of its last trial by its name, with dots for brackets: r.trials,
up.latency_us.min.

* faults: every fault counter above zero, over all trials but the warm-up: {"up.lost": 3, "up.wrong.header": 2,
"foreign": 1}.

* where: the fields of the kept wrong frames: {"gtpu.teid"}.

* relay: the counts of fault-relay ($DIR/relay.json), in the same form.

A false expression is printed with all values. The expression `all` prints them and holds."""

import json
import os
import sys
from types import SimpleNamespace

PER_STREAM = ("lost", "duplicate", "reordered", "stale", "refused")
PER_TRIAL = ("foreign", "stray")


def load(name):
    with open(name, encoding="utf-8") as f:
        return json.load(f, object_hook=lambda d: SimpleNamespace(**d))


def all_faults(result):
    counts = {}
    for trial in result.trials:
        if trial.purpose == "warmup":
            continue
        for key in PER_TRIAL:
            counts[key] = counts.get(key, 0) + getattr(trial, key)
        for stream in trial.streams:
            rows = {f"{stream.name}.{key}": getattr(stream, key) for key in PER_STREAM}
            rows |= {f"{stream.name}.wrong.{key}": n for key, n in vars(stream.wrong).items()}
            for key, n in rows.items():
                counts[key] = counts.get(key, 0) + n
    return {key: n for key, n in counts.items() if n}


def show_all(result, names, kept):
    print("faults:", names["faults"], "relay:", vars(names.get("relay", SimpleNamespace())))
    for trial in result.trials:
        print({key: value for key, value in vars(trial).items() if key not in ("latency_us", "streams")})
        for stream in trial.streams:
            print({key: value for key, value in vars(stream).items() if key not in ("latency_us", "wrong_frames")})
    for wrong in kept[:6]:
        print(vars(wrong))


def main():
    result = load(sys.argv[1])
    names = {"r": result, "faults": all_faults(result)}
    kept = [w for t in result.trials for s in t.streams for w in getattr(s, "wrong_frames", [])]
    names["where"] = {w.where for w in kept}
    if result.trials:
        names |= {stream.name: stream for stream in result.trials[-1].streams}
    relay = os.path.join(os.environ["DIR"], "relay.json")
    if os.path.exists(relay) and os.path.getsize(relay):
        names["relay"] = load(relay)
    bad = [e for e in sys.argv[2:] if e != "all" and not eval(e, {}, names)]  # the tests' own words
    for expression in bad:
        print(f"does not hold: {expression}")
    if bad or "all" in sys.argv[2:]:
        show_all(result, names, kept)
    sys.exit(1 if bad else 0)


main()
