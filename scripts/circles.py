#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Include graph against docs/reference/structure.md: each folder stands in one row of its block. The arrows are the
includes. No arrow goes to a row above. C folders have no circle, nor have core's files (Go's compiler refuses circles).
core knows no protocol. With --write the arrows are drawn again, and new folders get a line; other rows are edited by
hand.

Only what the product links is checked: tests, benchmarks, fuzz targets and fixtures may include anything, since nothing
builds on them."""
import collections
import os
import re
import subprocess
import sys

ROOTS = ["api", ".", "dataplane", "dataplane/modules", "dataplane/lib"]  # the build's, in its order
DRAWING = "docs/reference/structure.md"
CORE = "dataplane/core"
PROTOCOL = re.compile(r"pppoe|teid|qfi|gtp-?u|pfcp|[ns]_tag", re.IGNORECASE)
TESTS = re.compile(r"(_test|_bench|_fuzz|_model|_kit|fixture)\.[ch]$|^dataplane/(testkit|hostile)/")


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")


def listed():
    """C files of the product, those not yet committed as well."""
    out = run("git", "ls-files", "-co", "--exclude-standard", "dataplane", "api", "traffic")
    return [f for f in out if f.endswith((".c", ".h")) and os.path.isfile(f)]


def resolve(file, name, known):
    for root in [os.path.dirname(file)] + ROOTS:
        path = os.path.normpath(os.path.join(root, name))
        if path in known:
            return path
    return None


def stem(file):
    """In core a header and its source stand together."""
    return os.path.splitext(file)[0]


def ends(file, target):
    """Between folders; within core, between files."""
    a, b = os.path.dirname(file), os.path.dirname(target)
    return (stem(file), stem(target)) if a == b == CORE else (a, b)


def includes(text, known):
    """(folder, folder included) -> lines that include."""
    edges = collections.defaultdict(list)
    for file, lines in text.items():
        for number, line in enumerate(lines.split("\n"), 1):
            found = re.match(r'#\s*include "([^"]+)"', line)
            target = found and resolve(file, found.group(1), known)
            edge = ends(file, target) if target else ("", "")
            if edge[0] != edge[1]:
                edges[edge].append(f"{file}:{number} includes {found.group(1)}")
    return edges


def imports():
    """The packages, and (package, package imported) -> what imports."""
    packages, edges = set(), {}
    for line in run("go", "list", "-f", '{{.ImportPath}} {{join .Imports " "}}', "./api", "./controlplane/...",
                    "./lab/...", "./traffic/..."):
        words = [w.removeprefix("isthmus/") for w in line.split() if w.startswith("isthmus/")]
        packages |= set(words[:1])
        edges |= {(words[0], to): [f"{words[0]} imports {to}"] for to in words[1:]}
    return packages, edges


def shortest_loop(edges):
    """The shortest way from a folder back to itself, as a list of folders, or None."""
    out = collections.defaultdict(list)
    for a, b in sorted(edges):
        out[a].append(b)
    best = None
    for start in sorted(out):
        came, queue = {start: None}, collections.deque([start])
        while queue:
            at = queue.popleft()
            if start in out[at]:
                loop = [at]
                while came[loop[-1]] is not None:
                    loop.append(came[loop[-1]])
                loop.reverse()
                if best is None or len(loop) < len(best):
                    best = loop
                break
            for to in out[at]:
                if to not in came:
                    came[to] = at
                    queue.append(to)
    return best


def circles(edges):
    """Each loop by its name; its edge with the fewest includes is cut in thought, so that the next loop is found."""
    edges, said = dict(edges), []
    while (loop := shortest_loop(edges)) is not None:
        steps = list(zip(loop, loop[1:] + loop[:1]))
        said.append("circle: " + " -> ".join([os.path.basename(d) for d in loop + loop[:1]]))
        for step in steps:
            said += [f"  {where}" for where in edges[step]]
        del edges[min(steps, key=lambda step: len(edges[step]))]
    return said


class Block:
    """A block of the drawing, whose first line is its folder; then a line for each folder in it: the row's name
    where a row begins, the folder, the arrows."""

    def __init__(self, lines):
        self.top, self.row, self.names = lines[0].strip().rstrip("/"), {}, []  # highest row first
        for line in lines[1:]:
            name, words = line[:12].strip(), line[12:].split()
            if name:
                self.names.append(name)
            self.row[words[0]] = len(self.names) - 1

    def place(self, folder):
        """The longest name here that the folder is, or is in."""
        if self.top and not (folder + "/").startswith(self.top + "/"):
            return None
        inner = folder[len(self.top) :].lstrip("/") or "."
        within = [f for f in self.row if (inner + "/").startswith(f + "/")]
        return max(within, key=len, default=None)

    def add(self, folder, edges):
        """A line for a new folder: in the lowest row of those that include it, else in the highest."""
        above = {self.place(a) for a, b in edges if b == folder} - {None}
        new = folder.removeprefix(self.top + "/"), max((self.row[f] for f in above), default=0)
        self.row = dict(sorted([*self.row.items(), new], key=lambda line: line[1]))

    def look(self, folders, edges, write):
        """Faults, and the block as it should be drawn."""
        said, arrows = [], collections.defaultdict(set)
        for folder in folders:
            if not self.top or not folder.startswith(self.top + "/") or self.place(folder) is not None:
                continue
            if write:
                self.add(folder, edges)
            else:
                said.append(f"{DRAWING}: {folder} stands in no row of {self.top}/: scripts/circles.py --write")
        used = {self.place(f) for f in folders}
        said += [f"{DRAWING}: {self.top}/{f} is drawn and not there" for f in self.row if f not in used]
        for (a, b), lines in edges.items():
            a, b = self.place(a), self.place(b)
            if a is None or b is None or a == b:
                continue
            arrows[a].add(b)
            if self.row[b] < self.row[a]:
                said += [f"{line}, which stands above it ({self.names[self.row[b]]})" for line in lines]
        wide, order, out = max(map(len, self.row)), list(self.row), [self.top + "/"]
        for i, f in enumerate(order):
            name = self.names[self.row[f]] if i == 0 or self.row[f] != self.row[order[i - 1]] else ""
            to = " ".join(sorted(arrows[f], key=order.index))
            out.append(f"{name:<12}{f:<{wide}} {'─► ' + to if to else ''}".rstrip())
        return said, out


def drawn(folders, edges, write):
    """Faults of the drawing."""
    with open(DRAWING, encoding="utf-8") as f:
        parts = f.read().split("```")
    said = []
    for i in range(1, len(parts), 2):
        wrong, lines = Block(parts[i].strip("\n").split("\n")).look(folders, edges, write)
        said += wrong
        parts[i], before = "\n" + "\n".join(lines) + "\n", parts[i]
        if parts[i] != before and not write:
            said.append(f"{DRAWING}: the arrows of {lines[0]} are others now: scripts/circles.py --write")
    if write:
        with open(DRAWING, "w", encoding="utf-8") as f:
            f.write("```".join(parts))
    return said


def core_knows(text):
    """Protocol's words in headers of core, and modules' nodes in any of its files."""
    nodes, said = set(), []
    node = re.compile(r'struct rte_node_register \w+ = \{[^;]*?\.name = "([\w-]+)"', re.DOTALL)
    for file, content in text.items():
        if file.startswith("dataplane/modules/"):
            nodes |= set(node.findall(content))
    for file, content in sorted(text.items()):
        if not file.startswith(CORE + "/"):
            continue
        for number, line in enumerate(content.split("\n"), 1):
            word = file.endswith(".h") and PROTOCOL.search(line)
            if word:
                said.append(f"{file}:{number}: core knows no protocol, and this says {word.group(0)}")
            said += [f"{file}:{number}: core names node {n} of a module" for n in nodes if f'"{n}"' in line]
    return said


def main():
    known = set(listed())
    text = {f: open(f, encoding="utf-8").read() for f in sorted(known) if not TESTS.search(f)}
    edges = includes(text, known)
    packages, imported = imports()
    files = {stem(f) for f in text if os.path.dirname(f) == CORE}
    folders = sorted({os.path.dirname(f) for f in text} | files | packages)
    said = circles(edges) + drawn(folders, edges | imported, "--write" in sys.argv) + core_knows(text)
    if said:
        print("\n".join(said))
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
