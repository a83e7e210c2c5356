#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who includes whom in dataplane/: no circle among its folders, no arrow upward, and a core that knows no protocol.

Only what the product links is looked at: tests, benchmarks, fuzz targets and fixtures may include whatever they need,
since nothing is built on them."""
import collections
import os
import re
import subprocess
import sys

ROOTS = ["api", ".", "dataplane", "dataplane/modules", "dataplane/lib"]  # the build's, in its order
FLOORS = ["dataplane/lib/", "dataplane/core", "dataplane/modules/"]  # lowest first
PROTOCOL = re.compile(r"pppoe|teid|qfi|gtp-?u|pfcp|[ns]_tag", re.IGNORECASE)
TESTS = re.compile(r"(_test|_bench|_fuzz|_model)\.[ch]$|world[^/]*\.h$|^dataplane/(testkit|hostile)/")


def listed():
    """C files of the data plane and the contract, those not yet committed as well."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "dataplane", "api"]
    out = subprocess.run(command, capture_output=True, text=True, check=True)
    return [f for f in out.stdout.split("\n") if f.endswith((".c", ".h")) and os.path.isfile(f)]


def resolve(file, name, known):
    for root in [os.path.dirname(file)] + ROOTS:
        path = os.path.normpath(os.path.join(root, name))
        if path in known:
            return path
    return None


def includes(text, known):
    """(folder, folder included) -> lines that include."""
    edges = collections.defaultdict(list)
    for file, lines in text.items():
        for number, line in enumerate(lines.split("\n"), 1):
            found = re.match(r'#\s*include "([^"]+)"', line)
            target = found and resolve(file, found.group(1), known)
            if target and os.path.dirname(target) != os.path.dirname(file):
                edge = os.path.dirname(file), os.path.dirname(target)
                edges[edge].append(f"{file}:{number} includes {found.group(1)}")
    return edges


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


def floor_of(folder):
    return next((i for i, prefix in enumerate(FLOORS) if folder.startswith(prefix)), None)


def upward(edges):
    return [f"{where}, which stands above it" for (a, b), lines in sorted(edges.items())
            if floor_of(a) is not None and floor_of(b) is not None and floor_of(a) < floor_of(b) for where in lines]


def core_knows(text):
    """Protocol's words in headers of core, and modules' nodes in any of its files."""
    nodes, said = set(), []
    node = re.compile(r'struct rte_node_register \w+ = \{[^;]*?\.name = "([\w-]+)"', re.DOTALL)
    for file, content in text.items():
        if file.startswith("dataplane/modules/"):
            nodes |= set(node.findall(content))
    for file, content in sorted(text.items()):
        if not file.startswith("dataplane/core/"):
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
    said = circles(edges) + upward(edges) + core_knows(text)
    if said:
        print("\n".join(said))
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
