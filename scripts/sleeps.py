#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Finds sleeps in shell, Python and Go tests (paths on standard input) that are no waiting for a condition. A sleep is in a loop
that looks at a condition and has a limit; or the comment of its function says what must not happen meanwhile, or that there
is no event to wait for. `sleep infinity` holds a namespace open and is no waiting. Fails when there are any."""

import re
import sys

SLEEP = re.compile(r"(^|[ \t;&|(.])[sS]leep([ \t(]|$)")
LOOP = re.compile(r"^\s*(for|while|until)\b")
LIMIT = re.compile(r"\$\(seq |\.After\(|\.Before\(|\bin range\(|\(\(.*(<|>|--).*\)\)|monotonic\(\) *[<>]|SECONDS *[<>]")
LOOK = re.compile(r"\bif\b|\buntil\b|\bwhile\b|\breturn\b|\bbreak\b|!\w+(\.\w+)?\(")
DEFENCE = re.compile(r"must not|no event")
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


def defended(lines, at):
    """The comment right above the line or above its function's head, or a docstring below that."""
    head = at
    while head > 0 and indent(lines[head]) > 0:
        head -= 1
    first = head
    while first > 0 and COMMENT.match(lines[first - 1]):
        first -= 1
    near = lines[first:head] + [line for line in lines[head + 1 : at] if COMMENT.match(line)]
    return any(DEFENCE.search(line) for line in near)


def main():
    bad = 0
    for path in sys.stdin.read().splitlines():
        with open(path, encoding="utf-8") as f:
            lines = f.read().splitlines()
        for at, line in enumerate(lines):
            if COMMENT.match(line) or "sleep infinity" in line or not SLEEP.search(line):
                continue
            loop = loop_around(lines, at)
            if not (loop and LIMIT.search(loop) and LOOK.search(loop)) and not defended(lines, at):
                print(f"{path}:{at + 1}: a sleep that neither polls a condition with a limit nor says what must not happen: {line.strip()}")
                bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
