#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the drop reasons that the data plane registers. Each is named in a test that sees no other counter move: in quotes, so
that a longer name does not count, and not only in a look at that one counter, kit_reason(). docs/running.md says of each once
what the operator looks at, and of no other. From the repository's top."""

import glob
import re
import sys

TESTS = ["dataplane/**/*_test.c", "dataplane/hostile/*.c", "dataplane/**/*_test.h", "test/**/*.py", "test/**/*.sh"]
HEADING = "## What is wrong? Ask `isthmus show drop`"


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def files(patterns):
    return {path for pattern in patterns for path in glob.glob(pattern, recursive=True)}


def registered():
    """Names of DROP_REASON(variable, "name", ...), with the file of each."""
    names = {}
    for path in sorted(files(["dataplane/**/*.[ch]"]) - files(TESTS)):
        for name in re.findall(r'\bDROP_REASON\(\s*\w+,\s*"([^"]+)"', read(path)):
            names[name] = path
    return names


def documented():
    """Names in the first column of the table behind HEADING, in order."""
    behind = read("docs/running.md").split(HEADING, 1)
    if len(behind) < 2:
        return []
    rows = [line for line in behind[1].split("\n## ", 1)[0].splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


def main():
    names, listed = registered(), documented()
    named = {name for path in files(TESTS) for name in re.findall(r'(?<!kit_reason\()"([^"\n]+)"', read(path))}
    faults = [
        f"{path}: no test provokes the drop reason {name} and sees no other counter move (testkit/reasons.h, hostile/snapshot.h)"
        for name, path in names.items()
        if name not in named
    ]
    for name in names:
        if listed.count(name) != 1:
            faults.append(f"docs/running.md: the drop reason {name} stands there {listed.count(name)} times, not once")
    faults += [f"docs/running.md: nothing registers the drop reason {name}" for name in listed if name not in names]
    if not names:
        faults.append("no drop reason found: does DROP_REASON have another name now?")
    print("\n".join(faults), end="\n" if faults else "")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
