#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over the C files that changed since they last passed. usage: tidy.py JOBS, from the repository's top.

Most of a run over one file is DPDK's headers, so many files are looked at in one translation unit, each after the other: what is
private to a file (static names, enumerators) gets the file's number as a suffix, and files that share other names are kept apart. A file that passed has a stamp in build/lint/; it is looked at again when it, any header, .clang-tidy or
this script is newer.
"""

import functools
import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

WORK = "build/lint"
# The analyzer follows 225,000 steps of a function unless told otherwise, most of them in DPDK's inline functions again and
# again. With 10,000 it reaches 94 % of the functions' blocks as before, and more of them: what was looked at only inlined in
# another function is then looked at by itself (debug.Stats over the units: 6,080 blocks with 30,000 steps, 6,415 with 10,000).
DEPTH = ["-Xclang", "-analyzer-config", "-Xclang", "max-nodes=10000"]
# The flags are gcc's; clang need not know every one of them. main() gets other names here.
OPTIONS = ["--quiet", "-p", WORK, *("--extra-arg=" + a for a in ["-Wno-unknown-warning-option", "-Wno-missing-prototypes", *DEPTH])]
MOST = 30 # files of a unit; when one does not fit the others, each is looked at by itself
# What is a file's own.
PRIVATE = re.compile(r"^static\s+(?!assert)[^;{}=()\[]*?\b(\w+)\s*[;=\[(]", re.M)
# What a file defines at file scope: functions and variables, tags, and what our macros make names of.
NAMES = re.compile(r"""^[A-Za-z_][\w\ *]*?\b(\w+)\ ?[=;\[(,] | ^(?:static\ )?(?:const\ )?((?:struct|union|enum)\ \w+)\ \{ |
                       ^\}\ \**(\w+) | ^[A-Z_]+\((\w+) | ^\w[^\n(]*\(\*(?:const\ )?(\w+)""", re.M | re.X)
ENUMERATORS = re.compile(r"^(?:static\s+)?(?:const\s+)?enum\b[^{;(]*\{(.*?)\}", re.M | re.S)


def units():
    """{file: its entry in the compiler's database}, as paths from the top."""
    with open("build/compile_commands.json", encoding="utf-8") as f:
        entries = json.load(f)
    return {os.path.relpath(os.path.join(e["directory"], e["file"])): e for e in entries}


def stamp(file):
    return f"{WORK}/{file}.ok"


def stale(files):
    shared = [".clang-tidy", __file__]
    for top in ("api", "dataplane", "traffic"):
        shared += [os.path.join(where, name) for where, _, names in os.walk(top) for name in names if name.endswith(".h")]
    newest = max(map(os.path.getmtime, shared))
    return [f for f in files if not os.path.exists(stamp(f)) or os.path.getmtime(stamp(f)) <= max(newest, os.path.getmtime(f))]


def read(file):
    with open(file, encoding="utf-8") as f:
        return f.read()


def private(text):
    """What may be renamed: no name of a member, which headers may share, and none where macros make names."""
    if "##" in text:
        return set()
    found = set(PRIVATE.findall(text))
    for declaration in re.findall(r"^static [^(\n]*", text, re.M): # int a = 1, b = 2
        found.update(re.findall(r"(\w+)(?:\[\w*\])* = ", declaration))
    for body in ENUMERATORS.findall(text):
        found.update(re.findall(r"(?:^|,)\s*([A-Z]\w+)", body))
    return found - set(re.findall(r"(?:\.|->)(\w+)", text)) - {"__rte_cache_aligned", "__attribute__"}


@functools.cache
def names(file):
    """{name at file scope: the file that defines it}, of a file and the headers of ours that it includes."""
    text = read(file)
    mine = {name for groups in NAMES.findall(text) for name in groups if name}
    if file.endswith(".c"):
        mine -= private(text)
    found = {name: file for name in mine - {"RTE_INIT", "RTE_FINI", "NODE_REGISTER", "main", "__rte_cache_aligned"}}
    # A file's macros end with its text, so that only a header's may not be another's.
    found.update((f"#{macro}", file if file.endswith(".h") else "") for macro in re.findall(r"^#define (\w+)", text, re.M))
    for header in re.findall(r'^#include "([^"]+)"', text, re.M):
        for top in (os.path.dirname(file), "api", ".", "dataplane", "dataplane/modules", "dataplane/lib"):
            if os.path.exists(path := os.path.normpath(os.path.join(top, header))):
                found.update(names(path))
                break
    return found


def flags(entry):
    """What decides whether two files can be one translation unit."""
    return tuple(w for w in shlex.split(entry["command"]) if w.startswith(("-D", "-U", "-I", "-std")) and not w.endswith(".p"))


def pack(files, entries):
    """Groups of files that define no name twice: [files]. Tests stay among themselves."""
    groups = {}
    for file in sorted(files, key=os.path.getsize, reverse=True):
        mine = names(file)
        rivals = groups.setdefault((file.endswith("_test.c"), flags(entries[file])), [])
        fits = lambda g: len(g[1]) < MOST and all(g[0].get(name, where) == where for name, where in mine.items())
        group = next(filter(fits, rivals), None)
        if group is None:
            group = ({}, [])
            rivals.append(group)
        group[0].update(mine)
        group[1].append(file)
    return [group for rivals in groups.values() for _, group in rivals]


def text_of(file, place):
    """The file's text for a place elsewhere: headers beside it are named in full, private names have the place in them."""
    beside = lambda m: f'#include "{os.path.abspath(path)}"' if os.path.exists(path := os.path.join(os.path.dirname(file), m[1])) else m[0]
    text = read(file)
    if own := private(text):
        text = re.sub(r"^#include.*|(?<!struct )\b(" + "|".join(own) + r")\b", lambda m: m[0] + (f"_{place}" if m[1] else ""), text, flags=re.M)
    return re.sub(r'^#include "([^"]+)"', beside, text, flags=re.M)


def write_units(groups, entries):
    """One file with the text of those of a group, and the database that clang-tidy finds its flags in. (The analyzer passes over what
    is included.) Returns [(path, [(first line, file)])]."""
    database, out = [], []
    for number, group in enumerate(groups):
        path = os.path.abspath(f"{WORK}/unit{number}.c")
        entry = entries[group[0]]
        lines, places = [], []
        for place, file in enumerate(group):
            text = text_of(file, place)
            lines.append(f"#define main main_{place}")
            places.append((len(lines), file))
            lines += text.splitlines() + ["#undef main", *(f"#undef {m}" for m in re.findall(r"^#define (\w+)", text, re.M))]
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
        command = re.sub(r"-include \S+/pch\.h ", "", entry["command"].replace(entry["file"], path)) # gcc's
        database.append({"directory": entry["directory"], "file": path, "command": command})
        out.append((path, places))
    with open(f"{WORK}/compile_commands.json", "w", encoding="utf-8") as f:
        json.dump(database, f)
    return out


def look(unit):
    """Runs clang-tidy over a unit; returns what it says, with the lines of the files, or nothing and leaves the stamps."""
    path, places = unit
    # cmocka does not say that a failed assertion does not return, so the analyzer follows paths that are none.
    checks = ["--checks=-clang-analyzer-*"] if places[0][1].endswith("_test.c") else []
    run = subprocess.run(["clang-tidy", *OPTIONS, *checks, path], capture_output=True, text=True, check=False)
    if run.returncode == 0:
        for _, file in places:
            os.makedirs(os.path.dirname(stamp(file)), exist_ok=True)
            with open(stamp(file), "w", encoding="utf-8"):
                pass
        return ""

    def there(match):
        start, file = max(p for p in places if p[0] < int(match[1]) or p == places[0])
        return f"{file}:{int(match[1]) - start}:"

    said = run.stdout + "".join(line + "\n" for line in run.stderr.splitlines() if line and " generated" not in line)
    return re.sub(re.escape(path) + r":(\d+):", there, said)


def main():
    jobs = int(sys.argv[1])
    entries = units()
    todo = stale(entries)
    os.makedirs(WORK, exist_ok=True)
    with ThreadPoolExecutor(jobs) as pool:
        groups = write_units(pack(todo, entries), entries)
        results = list(zip(groups, pool.map(look, groups)))
        # Names that got past pack() would be errors in a unit of several: what cannot be one is looked at file by file.
        unfit = lambda places, said: "[clang-diagnostic-error]" in said and len(places) > 1
        apart = [file for (_, places), said in results if unfit(places, said) for _, file in places]
        failed = [said for (_, places), said in results if said and not unfit(places, said)]
        if apart:
            alone = write_units([[file] for file in apart], entries)
            failed += [said for said in pool.map(look, alone) if said]
    print("".join(failed), end="")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
