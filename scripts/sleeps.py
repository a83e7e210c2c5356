#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Finds sleeps in shell, Python and Go tests (paths on standard input) that do not wait for a condition. A permitted
sleep is in a loop that checks a condition and has a limit. WAITS has the exceptions, one a file, with reasons. `sleep
infinity` holds a namespace open and does not count. Fails when there are others, or fewer."""

import re
import sys

WAITS = {
    "bench/idle.sh": "time passes in which no packet comes",
    "bench/mobile.sh": "no event says that the last sessions are in the store",
    "bench/seeing.sh": "the time that passes is what is measured",
    "controlplane/agent/serve/probe_test.go": "virtual time",
    "controlplane/cputest/cputest_test.go": "time that is not to be counted",
    "controlplane/n4/node_test.go": "a message that is not to come",
    "controlplane/session/disturbed_test.go": "time between two looks at how long answers take",
    "test/e2e/chaos.py": "the sleep itself is measured",
    "test/lib/frames.py": "a packet that is not to come, or a process that says nothing",
    "test/lib/net.sh": "a count that is not to change",
    "test/smoke/traffic_errors_test.sh": "no event says that the tester can be interrupted",
    "test/vm/pppd_test.sh": "a session that is not to end",
}
SLEEP = re.compile(r"""(^|[ \t;&|(."'])[sS]leep([ \t(]|$)""")
LOOP = re.compile(r"^\s*(for|while|until)\b")
LIMIT = re.compile(r"\$\(seq |\.After\(|\.Before\(|\bin range\(|\(\(.*(<|>|--).*\)\)|monotonic\(\) *[<>]|SECONDS *[<>]")
LOOK = re.compile(r"\bif\b|\buntil\b|\bwhile\b|\breturn\b|\bbreak\b|!\w+(\.\w+)?\(")
COMMENT = re.compile(r'^\s*(#|//|""")')


def indent(line):
    return len(line.expandtabs(8)) - len(line.expandtabs(8).lstrip())


def loop_around(lines, at):
    """The text of the innermost loop around line `at`, or None. Every formatter here indents a loop's body."""
    level = indent(lines[at])
    for head in range(at, -1, -1):
        if not lines[head].strip() or (head != at and indent(lines[head]) >= level):
            continue
        level = indent(lines[head])
        if LOOP.match(lines[head]):
            end = head + 1
            while end < len(lines) and (not lines[end].strip() or indent(lines[end]) > level):
                end += 1
            return "\n".join(lines[head:end])
        if level == 0:
            return None
    return None


def main():
    bad, waits = 0, []
    for path in sys.stdin.read().splitlines():
        with open(path, encoding="utf-8") as f:
            lines = f.read().splitlines()
        for at, line in enumerate(lines):
            if COMMENT.match(line) or "sleep infinity" in line or not SLEEP.search(line):
                continue
            loop = loop_around(lines, at)
            if loop and LIMIT.search(loop) and LOOK.search(loop):
                continue
            waits.append(path)
            if path not in WAITS or waits.count(path) > 1:
                print(f"{path}:{at + 1}: a sleep that polls no condition with a limit: {line.strip()}")
                bad = 1
    for path in sorted(set(WAITS) - set(waits)):
        print(f"{path}: has no wait any more; scripts/sleeps.py names one")
        bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
