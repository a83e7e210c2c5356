#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over the C files that changed since they last passed. usage: tidy.py JOBS, from the repository's top.

Most of a run over one file is DPDK's headers, so one translation unit has many files in turn. A file's private names
(static names, enumerators, tags) get its number as a suffix; files that share other names are kept apart. A file that
passed has a stamp in build/lint/. It is checked again when it, any header, .clang-tidy or this script is newer."""

import functools
import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

WORK = "build/lint"
# The analyzer follows 225,000 steps of a function by default, most of them in DPDK's inline functions. With 10,000 it
# reaches 94 % of the functions' blocks as before. It reaches more functions: those only seen inlined before are
# analysed on their own (debug.Stats over the units: 6,080 blocks with 30,000 steps, 6,415 with 10,000).
DEPTH = ["-Xclang", "-analyzer-config", "-Xclang", "max-nodes=10000"]
# The flags are gcc's; clang need not know every one of them. main() gets other names here.
OPTIONS = ["--quiet", "-p", WORK,
           *("--extra-arg=" + a for a in ["-Wno-unknown-warning-option", "-Wno-missing-prototypes", *DEPTH])]
MOST = 40 # files of a unit; if one does not fit the others, each is checked alone
# A file's private names.
PRIVATE = re.compile(
    r"^static\s+(?!assert)[^;{}=()\[]*?\b(\w+)\s*(?:[;=\[]|\((?!\*))|^(?:DROP|PUNT)_REASON\((\w+)", re.M)
TAGS = re.compile(r"^(?:static )?(?:const )?((?:struct|union|enum) \w+) \{", re.M)
# Names defined at file scope: functions and variables, tags, and names made by our macros.
NAMES = re.compile(r"""^(?!(?:struct|union|enum)\ \w+;)[A-Za-z_][\w\ *]*?\b(\w+)\ ?[=;\[(,] |
                       ^(?:static\ )?(?:const\ )?((?:struct|union|enum)\ \w+)\ \{ |
                       ^\}(?:\ __\w+)?\ \**(\w+) | ^[A-Z_]+\((\w+) | ^\w[^\n(]*\(\*(?:const\ )?(\w+)""", re.M | re.X)
NO_NAMES = {"RTE_INIT", "RTE_FINI", "NODE_REGISTER", "main", "void", "cache_aligned", "__attribute__"}
ENUMERATORS = re.compile(r"^(?:static\s+)?(?:const\s+)?enum\b[^{;(]*\{(.*?)\}", re.M | re.S)


def units():
    """{file: its entry in the compiler's database}, as paths from the top."""
    with open("build/compile_commands.json", encoding="utf-8") as f:
        entries = json.load(f)
    return {os.path.relpath(os.path.join(e["directory"], e["file"])): e for e in entries}


def is_test(file):
    return file.endswith("_test.c")


def stamp(file):
    return f"{WORK}/{file}.ok"


def headers():
    tops = ("api", "dataplane", "traffic")
    return [os.path.join(where, name) for top in tops for where, _, names in os.walk(top) for name in names
            if name.endswith(".h")]


def stale(files):
    newest = max(map(os.path.getmtime, [".clang-tidy", __file__, *headers()]))
    return [f for f in files if not os.path.exists(stamp(f))
            or os.path.getmtime(stamp(f)) <= max(newest, os.path.getmtime(f))]


def read(file):
    with open(file, encoding="utf-8") as f:
        return f.read()


@functools.cache
def shared_tags():
    """Tags named by our headers: they may pass between files."""
    return set(re.findall(r"\b(?:struct|union|enum) \w+", "".join(map(read, headers()))))


def macros(text):
    return re.findall(r"^#define (\w+)", text, re.M)


def private(text):
    """Names that may be renamed: tags, and names that no struct's member shares here; none where macros make names."""
    if "##" in text:
        return set()
    found = {name for pair in PRIVATE.findall(text) for name in pair if name}
    for declaration in re.findall(r"^static [^(\n]*", text, re.M): # int a = 1, b = 2
        found.update(re.findall(r"(\w+)(?:\[\w*\])* = ", declaration))
    found.update(re.findall(r"^static (?:const )?(?:struct|union)\b[^;(]*?\{.*?^\}(?: __\w+)? (\w+)", text,
                            re.M | re.S))
    for body in ENUMERATORS.findall(text):
        found.update(re.findall(r"(?:^|,)\s*([A-Z]\w+)", body))
    for body in re.findall(r"\b(?:struct|union)(?: \w+)? \{(.*?)^\}", text, re.M | re.S):
        found.difference_update(re.findall(r"\b(\w+)(?:\[[^]]*\]|\)\([^)]*\)| : \d+)*[;,]", body))
    found.update(macros(text[text.rfind("\n#include") + 1 :])) # one before that may be for what is included
    viewed = {f"struct {name}" for name in re.findall(r"^PACKET_VIEW\((\w+)", text, re.M)}
    return found - {"cache_aligned", "__attribute__"} | set(TAGS.findall(text)) - shared_tags() - viewed


@functools.cache
def names(file):
    """{name at file scope: the file that defines it}, of a file and the headers of ours that it includes."""
    text = read(file)
    mine = {name for groups in NAMES.findall(text) for name in groups if name}
    defined = set(macros(text))
    if file.endswith(".c"):
        mine -= private(text)
        defined -= private(text)
    found = {name: file for name in mine - NO_NAMES}
    # A file's macros end with its text, so that only a header's may not be another's.
    found.update((f"#{macro}", file if file.endswith(".h") else "") for macro in defined)
    for header in re.findall(r'^#include "([^"]+)"', text, re.M):
        for top in (os.path.dirname(file), "api", ".", "dataplane", "dataplane/modules", "dataplane/lib"):
            if os.path.exists(path := os.path.normpath(os.path.join(top, header))):
                found.update(names(path))
                break
    return found


def flags(file, entry):
    """The key by which two files can be one translation unit; folders of a part are those of all its files."""
    words = shlex.split(entry["command"])
    return file.split("/")[0], *(w for w in words if w.startswith(("-D", "-U", "-std")))


def pack(files, entries):
    """Groups of files that define no name twice: [files]. Tests stay among themselves."""
    groups = {}
    for file in sorted(files, key=os.path.getsize, reverse=True):
        mine = names(file)
        rivals = groups.setdefault((is_test(file), flags(file, entries[file])), [])
        fits = lambda g: len(g[1]) < MOST and all(g[0].get(name, where) == where for name, where in mine.items())
        group = next(filter(fits, rivals), None)
        if group is None:
            group = ({}, [])
            rivals.append(group)
        group[0].update(mine)
        group[1].append(file)
    found = [group for rivals in groups.values() for _, group in rivals]
    # The longest first. The analyzer takes most of the time, and passes over tests.
    return sorted(found, key=lambda g: sum(map(os.path.getsize, g)) / (1 + 9 * is_test(g[0])), reverse=True)


def text_of(file, place):
    """The file's text for a place elsewhere: headers beside it are named in full, private names have the place in
    them, if any."""
    beside = lambda m: (f'#include "{os.path.abspath(path)}"'
                        if os.path.exists(path := os.path.join(os.path.dirname(file), m[1])) else m[0])
    text = read(file)
    if place is not None and (own := private(text)):
        own = r"^#include.*|(?<!struct )(?<!\.)(?<!->)\b(" + "|".join(own) + r")\b"
        text = re.sub(own, lambda m: m[0] + (f"_{place}" if m[1] else ""), text, flags=re.M)
    return re.sub(r'^#include "([^"]+)"', beside, text, flags=re.M)


def write_units(groups, entries):
    """One file with the text of a group, and its compile database for clang-tidy. (The analyzer skips included files.)
    Returns [(path, [(first line, file)])]."""
    database, out = [], []
    for number, group in enumerate(groups):
        path = os.path.abspath(f"{WORK}/unit{number}.c")
        entry = max((entries[file] for file in group), key=lambda e: len(e["command"]))
        lines, places = [], []
        for place, file in enumerate(group):
            text = text_of(file, place if len(group) > 1 else None)
            lines.append(f"#define main main_{place}")
            places.append((len(lines), file))
            lines += text.splitlines() + ["#undef main", *(f"#undef {m}" for m in macros(text))]
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
        command = re.sub(r"-include \S+/pch\.h ", "", entry["command"].replace(entry["file"], path)) # gcc's
        database.append({"directory": entry["directory"], "file": path, "command": command})
        out.append((path, places))
    with open(f"{WORK}/compile_commands.json", "w", encoding="utf-8") as f:
        json.dump(database, f)
    return out


def look(unit):
    """Runs clang-tidy over a unit; returns its findings, with the lines of the files, or none and leaves the stamps."""
    path, places = unit
    # cmocka does not declare that a failed assertion does not return, so the analyzer follows impossible paths.
    checks = ["--checks=-clang-analyzer-*"] if is_test(places[0][1]) else []
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
    groups, failed = pack(todo, entries), []
    with ThreadPoolExecutor(jobs) as pool:
        while groups:
            looked = write_units(groups, entries)
            groups = []
            for (_, places), said in zip(looked, pool.map(look, looked)):
                files = [file for _, file in places]
                if len(files) > 1 and "[clang-diagnostic-error]" in said:
                    # Names that got past pack(): the files with the errors are looked at by themselves, the others once
                    # more.
                    unfit = [f for f in files if re.search(rf"^{re.escape(f)}:.*error\]$", said, re.M)] or files
                    groups += [[f] for f in unfit] + [rest for rest in [[f for f in files if f not in unfit]] if rest]
                elif said:
                    failed.append(said)
    print("".join(failed), end="")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
