#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Shape of the code, from the repository's files on standard input. Functions of more than 80 lines fail, and lines of
more than 120 columns (tabs of 8, in Go of 4): formatters leave comments and Go alone. A Go type has at most
45 methods, an interface 5; exceptions stand in a list, with their number, which must not grow."""

import collections
import os
import re
import sys

LONGEST = 80
WIDE = 120
TAG = re.compile(r"^\t+\w+ .*`\w+:\".*\"`( //.*)?$")  # of a field of a Go struct: no line may end in it
EXCEPTIONS = {
    ("config_test.go", "TestRefused"): "a table: file, line and reason of each refusal",
    ("mobile_test.go", "TestMobileRefused"): "a table: section and reason of each refusal",
    ("view_test.go", "rows"): "a table: one row of each kind",
    ("prepare_test.go", "TestReplanPreparedAmongRequests"): "one history, whose steps need the ones before",
}
METHODS = {"type": 45, "interface": 5}
# (folder, type): permitted methods, with the reason for so many. Lower the number when there are fewer.
MANY = {
    ("controlplane/pfcp", "writer"): (56, "one IE, or group of them, a method"),
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
    """The head of a function: in C the lines above the brace, up to an empty line or the end of other code."""
    first = at
    while kind in (".c", ".h") and first > 0 and lines[first - 1] and not re.search(r"[;})]$|^#|^//", lines[first - 1]):
        first -= 1
    if kind in (".c", ".h") and first > 0 and lines[first - 1].endswith(")"):
        first -= 1
    head = " ".join(lines[first : at + 1])
    names = re.findall(r"(\w+)\s*\(", head)
    return names[0] if names else head


class Types:
    """Methods of Go's types, of which tests are none."""

    METHOD = re.compile(r"^func \((?:\w+ )?\*?(\w+)(?:\[.*?\])?\) \w", re.M)
    INTERFACE = re.compile(r"^type (\w+)(?:\[.*\])? interface \{\n(.*?)^\}", re.M | re.S)

    def __init__(self):
        self.methods = collections.Counter()
        self.interfaces = {}  # to (methods, interfaces within)

    def add(self, path, text):
        folder = os.path.dirname(path)
        self.methods.update((folder, name) for name in self.METHOD.findall(text))
        for name, body in self.INTERFACE.findall(text):
            named = re.findall(r"^\t(\w+)\(", body, re.M)
            self.interfaces[folder, name] = len(named), re.findall(r"^\t([\w.]+)(?: *//.*)?$", body, re.M)

    def of_interface(self, key):
        """With those of the interfaces within; one of another package counts as one method."""
        own, within = self.interfaces.get(key, (1, []))
        return own + sum(self.of_interface((key[0], name)) for name in within)

    def faults(self):
        """Types with too many methods; notes those with fewer than the list has."""
        have = {key: (n, "type") for key, n in self.methods.items()}
        have.update((key, (self.of_interface(key), "interface")) for key in self.interfaces)
        large = {key for key, (n, kind) in have.items() if n > METHODS[kind]}
        for key in sorted(large | MANY.keys()):
            n, kind = have.get(key, (0, "type"))
            most = MANY[key][0] if key in MANY else METHODS[kind]
            if n > most:
                yield f"{key[0]}: {kind} {key[1]} has {n} methods; {most} may be"
            elif n < most:
                print(f"note: {kind} {key[1]} of {key[0]} has {n} methods, and MANY in scripts/shape.py says {most}")


def main():
    bad = 0
    types = Types()
    for path in sys.stdin.read().splitlines():
        with open(path, encoding="utf-8", errors="replace") as f:
            text = f.read()
        lines = text.splitlines()
        if path.endswith(".go") and not path.endswith("_test.go"):
            types.add(path, text)
        kind = path[path.rfind(".") :]
        tab = 4 if kind == ".go" else 8
        for at, line in enumerate(lines):
            if len(line.expandtabs(tab)) > WIDE and not TAG.search(line):
                print(f"{path}:{at + 1}: wider than {WIDE} columns")
                bad = 1
        for at, line in enumerate(lines):
            if kind not in HEADS or not HEADS[kind].match(line):
                continue
            length = end_of(lines, at, kind) - at + (2 if kind in (".c", ".h") else 1)
            if length > LONGEST and (os.path.basename(path), name_of(lines, at, kind)) not in EXCEPTIONS:
                print(f"{path}:{at + 1}: {name_of(lines, at, kind)} has {length} lines; {LONGEST} are enough for one "
                      f"function")
                bad = 1
    for fault in types.faults():
        print(fault)
        bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
