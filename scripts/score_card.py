#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks docs/proof.md. Every id of bad input is there once, alone or in a row of several ("P1, P2", "G1–G3"). Every
id in a file ("row G21", "rows P28–P30") is one of them. No cell is longer than 25 words. The tests that a row names
exist: scripts of test/ and functions of their Python part, Go tests of a package, C test files. A line "Each row:
TESTS." stands for all rows of the table below it. Run from the top, with the repository's files on standard input."""

import glob
import os
import re
import sys

PROOF = "docs/proof.md"
WORDS = 25  # of a cell
ROWS = {"P": 34, "A": 15, "G": 27, "B": 17, "M": 11, "R": 16}
REPOSITORY = sys.stdin.read().splitlines()
faults = []


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def functions(paths, definition):
    """Names that files define: {name}."""
    return {name for path in paths for name in re.findall(definition, read(path), re.M)}


def table_rows():
    """(line number, cells, the tests of all rows) of each row of the tables."""
    common = ""
    for number, line in enumerate(read(PROOF).splitlines(), 1):
        if line.startswith("|"):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if not set("".join(cells)) <= set("-:"):
                yield number, cells, common
        elif line:
            common = line.rstrip(".") if line.startswith("Each row: ") else ""


def check_listed(where, paths, definition, words):
    """The functions named behind a file's name, as in "`upf` usage, idle"."""
    listed = re.match(r" ([a-z_0-9, ]+?)(?= \(|[;:,]? *$|[;:]|, TS)", words)
    known = functions(paths, definition)
    for word in listed.group(1).split(", ") if listed else []:
        if word not in known:
            faults.append(f"{where}: {paths[0]} has no function {word}")


def check_tests(where, text):
    """Looks for everything that the cell names; returns how many names it has."""
    found = 0
    for name, words in re.findall(r"`([^`]+)`([^`]*)", text):
        script = glob.glob(f"test/*/{name}_test.sh")
        if name.endswith((".c", ".go", ".sh", ".py")):
            files = [path for path in REPOSITORY if f"/{path}".endswith(f"/{name}")]
            if not files:
                faults.append(f"{where}: no file {name}")
            elif name.endswith(".c"):
                check_listed(where, files, r"^\w[\w *]*\b(\w+)\(", words)
            found += 1
        elif script:
            part = script[0].replace("_test.sh", ".py")
            if os.path.exists(part):
                check_listed(where, [part], r"^def (\w+)", words)
            found += 1
        elif glob.glob(f"controlplane/{name}/") or glob.glob(f"lab/{name}/"):
            known = functions(glob.glob(f"controlplane/{name}/*_test.go") + glob.glob(f"lab/{name}/*_test.go"),
                              r"^func (\w+)")
            named = re.findall(r"\b(?:Test|Fuzz|Benchmark)\w+", words)
            faults.extend(f"{where}: package {name} has no {word}" for word in named if word not in known)
            found += len(named)
        elif name.endswith("-fuzz"):
            found += 1
        elif re.fullmatch(r"[a-z0-9_]+", name):
            faults.append(f"{where}: nothing of the tests is called {name}")
    return found


def ids(cell):
    """The ids of a row's first cell, such as "P1, P2" or "G1–G3"; other cells have none."""
    parts = [re.fullmatch(r"([PAGBMR])(\d+)(?:–[PAGBMR](\d+))?", part) for part in cell.split(", ")]
    if not all(parts):
        return []
    return [f"{part[1]}{n}" for part in parts for n in range(int(part[2]), int(part[3] or part[2]) + 1)]


def check_card():
    seen = []
    for number, cells, common in table_rows():
        where = f"{PROOF}:{number}: {cells[0] or cells[1]}"
        found = check_tests(where, common) + check_tests(where, cells[-1])
        faults.extend(f"{where}: a cell of {len(cell.split())} words" for cell in cells if len(cell.split()) > WORDS)
        if named := ids(cells[0]):
            seen += named
            if len(cells) != 3 or ": " not in cells[1]:
                faults.append(f"{where}: input, outcome behind a colon, and test are needed")
            elif not found and "**N**" not in cells[2]:
                faults.append(f"{where}: no test is named, and it is not said to be untested (**N**)")
    for kind, count in ROWS.items():
        for n in range(1, count + 1):
            times = seen.count(f"{kind}{n}")
            if times != 1:
                faults.append(f"{PROOF}: row {kind}{n} is there {times} times, not once")
    for extra in sorted(set(seen) - {f"{k}{n}" for k, c in ROWS.items() for n in range(1, c + 1)}):
        faults.append(f"{PROOF}: there is no row {extra}")


def check_names():
    """Every id behind the word row or rows, anywhere."""
    for path in REPOSITORY:
        if not re.search(r"\.(c|h|go|py|sh|md|yaml)$", path) or path == PROOF:
            continue
        for number, line in enumerate(read(path).splitlines(), 1):
            for named in re.findall(r"\b[Rr]ows? ((?:[A-Z]\d+(?:[–,/ ]+(?:and |to )?)?)+)", line):
                for kind, n in re.findall(r"([A-Z])(\d+)", named):
                    if int(n) not in range(1, ROWS.get(kind, 0) + 1):
                        faults.append(f"{path}:{number}: there is no row {kind}{n} in {PROOF}")


def main():
    check_card()
    check_names()
    print("\n".join(faults), end="\n" if faults else "")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
