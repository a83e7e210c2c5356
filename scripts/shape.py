#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Shape of the code, from the repository's files on standard input. Functions of more than 80 lines fail. Lines of more than 120
columns (tabs of 8) are counted: formatters leave comments and Go alone, so what is there stays, but their number must not grow."""

import os
import re
import sys

LONGEST = 80
WIDE = 120
WIDE_LINES = 2986  # as many as there are; lower it when there are fewer
EXCEPTIONS = {
    ("config_test.go", "TestRefused"): "a table: file, line and reason of each refusal",
    ("view_test.go", "rows"): "a table: one row of each kind",
    ("prepare_test.go", "TestReplanPreparedAmongRequests"): "one history, whose steps need the ones before",
}
HEADS = {
    ".c": re.compile(r"^\{$"),
    ".h": re.compile(r"^\{$"),
    ".go": re.compile(r"^func\b.*\{$"),
    ".sh": re.compile(r"^[\w-]+\(\) [{(]$"),
    ".py": re.compile(r"^( *)def \w+"),
}


def end_of(lines, at, kind):
    """The last line of the function whose head is line `at`."""
    if kind != ".py":
        return next((i for i in range(at, len(lines)) if re.match(r"^[})]", lines[i]) and i > at), at)
    indent = len(lines[at]) - len(lines[at].lstrip())
    last = at
    for i in range(at + 1, len(lines)):
        text = lines[i].strip()
        if text and len(lines[i]) - len(lines[i].lstrip()) <= indent and not text.startswith((")", "]", "}")):
            break
        last = i if text else last
    return last


def name_of(lines, at, kind):
    """What the head says: of C the lines above the brace, up to an empty line or the end of something else."""
    first = at
    while kind in (".c", ".h") and first > 0 and lines[first - 1] and not re.search(r"[;})]$|^#|^//", lines[first - 1]):
        first -= 1
    if kind in (".c", ".h") and first > 0 and lines[first - 1].endswith(")"):
        first -= 1
    head = " ".join(lines[first : at + 1])
    names = re.findall(r"(\w+)\s*\(", head)
    return names[0] if names else head


def main():
    bad = wide = 0
    for path in sys.stdin.read().splitlines():
        with open(path, encoding="utf-8", errors="replace") as f:
            lines = f.read().splitlines()
        wide += sum(len(line.expandtabs(8)) > WIDE for line in lines)
        kind = path[path.rfind(".") :]
        for at, line in enumerate(lines):
            if kind not in HEADS or not HEADS[kind].match(line):
                continue
            length = end_of(lines, at, kind) - at + (2 if kind in (".c", ".h") else 1)
            if length > LONGEST and (os.path.basename(path), name_of(lines, at, kind)) not in EXCEPTIONS:
                print(f"{path}:{at + 1}: {name_of(lines, at, kind)} has {length} lines; {LONGEST} are enough for one function")
                bad = 1
    print(f"note: {wide} lines are wider than {WIDE} columns; {WIDE_LINES} may be")
    return int(bad or wide > WIDE_LINES)


if __name__ == "__main__":
    sys.exit(main())
