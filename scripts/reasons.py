#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the drop reasons that the data plane registers, and writes docs/reference/drops.md (--fix). A test names each
and checks that no other counter moves. Names count only in quotes, and not in kit_reason(), which reads one counter.
Each text has two sentences: what happened, and what to look at. Run from the repository's top."""

import glob
import re
import sys

TESTS = ["dataplane/**/*_test.c", "dataplane/hostile/*.c", "dataplane/**/*_test.h", "test/**/*.py", "test/**/*.sh"]
PAGE = "docs/reference/drops.md"
HEAD = """# Drop reasons

<!-- Made from the code by `./dev lint --fix`. -->

`isthmus show drop` prints reason, packets and both texts. The name is the label `reason` of
`isthmus_dropped_packets_total`. What else to look at: [running.md](../running.md#what-is-wrong-ask-isthmus-show-drop).
"""
LONGEST = 191  # bytes of struct api_drop_row.text


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def files(patterns):
    return {path for pattern in patterns for path in glob.glob(pattern, recursive=True)}


def registered():
    """{name: (file, text)} of DROP_REASON(variable, "name", "text")."""
    names = {}
    reason = re.compile(r'\bDROP_REASON\(\s*\w+,\s*"([^"]+)",((?:\s*"[^"]*")+)\s*\)')
    for path in sorted(files(["dataplane/**/*.[ch]"]) - files(TESTS)):
        for name, text in reason.findall(read(path)):
            names[name] = path, "".join(re.findall(r'"([^"]*)"', text))
    return names


def page(names):
    """The page: a table for each folder that registers reasons."""
    tables = {}
    for name, (path, text) in names.items():
        tables.setdefault(path.split("/")[-2], []).append((name, *text.split(". ", 1)))
    text = HEAD
    for folder in sorted(tables):
        text += f"\n## {folder}\n\n| reason | what happened | what to look at |\n|---|---|---|\n"
        text += "".join(f"| `{name}` | {what} | {look} |\n" for name, what, look in tables[folder])
    return text


def main():
    names = registered()
    named = {name for path in files(TESTS) for name in re.findall(r'(?<!kit_reason\()"([^"\n]+)"', read(path))}
    faults = []
    for name, (path, text) in names.items():
        if name not in named:
            faults.append(
                f"{path}: no test provokes the drop reason {name} and sees no other counter move"
                " (testkit/reasons.h, hostile/snapshot.h)"
            )
        if not re.fullmatch(r".+?\. [A-Z].*[^.]", text) or len(text.encode()) > LONGEST:
            faults.append(
                f"{path}: {name}: the text is not 'what happened. What to look at' of {LONGEST} bytes at most"
            )
    if not names:
        faults.append("no drop reason found: does DROP_REASON have another name now?")
    if not faults:
        if sys.argv[1:] == ["--fix"]:
            with open(PAGE, "w", encoding="utf-8") as f:
                f.write(page(names))
        elif read(PAGE) != page(names):
            faults.append(f"{PAGE} is old: ./dev lint --fix writes it")
    print("\n".join(faults), end="\n" if faults else "")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
