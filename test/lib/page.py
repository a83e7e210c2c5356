#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a page of docs/ as its reader does: writes its files, types its commands, compares what they print.
test/pages/README.md says how a page is written.

usage: page.py [--list] PAGE; --list prints files and commands and runs nothing. As root; BUILD names the build folder.
"""

import os
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SECONDS = 600  # for a command and its output; ends what hangs, also on a busy machine
FENCE = re.compile(r"^( *)(`{3,})(\w*)(.*)$")
# One bash types all: what cd, variables and & do stays. With -m, background processes take Ctrl-C's signal.
SHELL = """set -m
sudo() { "$@"; }
while IFS= read -r step; do { eval "$(<"$step")"; } >"$step.out" 2>&1 </dev/null; echo $?; done"""


class Fault(Exception):
    """What is wrong with the page, or with what its commands do."""


class File:
    def __init__(self, line, name, lines):
        self.line, self.name, self.text = line, name, "\n".join(lines) + "\n"

    def __str__(self):
        return f"writes {self.name}"


class Command:
    def __init__(self, line, text, by_hand):
        self.line, self.text, self.by_hand = line, text, by_hand  # by_hand: why it is not run
        self.output = []  # (line, text)

    def __str__(self):
        return f"by hand ({self.by_hand}): {self.text}" if self.by_hand else f"$ {self.text}"


def commands(lines, begin, by_hand):
    """The commands of a block, each with its output."""
    found, goes_on = [], False
    for number, line in enumerate(lines, begin):
        if goes_on:
            found[-1].text += "\n" + line
        elif line.startswith("$ "):
            found.append(Command(number, line[2:], by_hand))
        elif not found:
            raise Fault(f"{number}: a console block begins with a command: $ …")
        elif line.strip() not in ("", "…"):
            found[-1].output.append((number, line))
        goes_on = (goes_on or line.startswith("$ ")) and line.endswith("\\")
    return found


def blocks(text):
    """(line of the fence, language, title, lines, the paragraph before) of each fenced block."""
    fence, paragraph, previous = None, [], ""
    for number, line in enumerate(text.splitlines(), 1):
        found = FENCE.match(line)
        if fence is None and found:
            fence, begun, lines = found, number, []
        elif fence is None:
            if line.strip():
                paragraph = [*(paragraph if previous else []), line.strip()]
            previous = line.strip()
        elif found and found[2] == fence[2] and not found[3]:
            title = re.search(r'title="([^"]*)"', fence[4])
            yield begun, fence[3], title and title[1], lines, " ".join(paragraph)
            fence, paragraph, previous = None, [], ""
        else:
            lines.append(line.removeprefix(fence[1]))
    if fence is not None:
        raise Fault(f"{begun}: the block does not end")


def steps(text):
    """Files and commands of a page in their order."""
    found = []
    for line, language, title, lines, before in blocks(text):
        if language != "console":
            found += [File(line, title, lines)] if title else []
        elif title not in (None, "by hand"):
            raise Fault(f'{line}: a console block has the title "by hand" or none')
        elif title and not before:
            raise Fault(f"{line}: the sentence before a block by hand says why it is not run")
        else:
            found += commands(lines, line + 1, before if title else None)
    return found


def missing(expected, said):
    """The first of the expected lines that does not come, after those before it, in what was said; None: all come."""
    said = iter(said.splitlines())
    for number, line in expected:
        words = [re.escape(word).replace("…", ".*") for word in line.split()]
        pattern = re.compile(r"\s*" + r"\s+".join(words) + r"\s*")
        if not any(pattern.fullmatch(heard) for heard in said):
            return number, line
    return None


class Shell:
    def __init__(self):
        self.process = subprocess.Popen(["bash", "-c", SHELL], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.count = 0

    def run(self, command):
        """Types a command and waits for what it has to print."""
        self.count += 1
        step, deadline = f"/mnt/step{self.count}", time.monotonic() + SECONDS
        with open(step, "w", encoding="utf-8") as f:
            f.write(command.text)
        self.process.stdin.write(step.encode() + b"\n")
        self.process.stdin.flush()
        os.set_blocking(self.process.stdout.fileno(), False)
        status = b""
        while not status.endswith(b"\n"):
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise Fault(f"{command.line}: $ {command.text}\nit does not come to an end; it printed\n{said(step)}")
            time.sleep(0.02)
            status += self.process.stdout.read() or b""
        fails = command.text.endswith("# fails")
        if (int(status) != 0) != fails:
            raise Fault(f"{command.line}: $ {command.text}\nstatus {int(status)}; it printed\n{said(step)}")
        while line := missing(command.output, said(step)):
            # What goes on in the background prints later.
            if time.monotonic() > deadline or not command.text.endswith("&"):
                raise Fault(f"{line[0]}: $ {command.text}\nno line \"{line[1]}\" in\n{said(step)}")
            time.sleep(0.1)


def said(step):
    with open(step + ".out", encoding="utf-8", errors="replace") as f:
        return f.read()


def has_what_it_needs(text):
    """Ends the test when the machine lacks something that the page names: a function of test/lib/has.sh."""
    for need in " ".join(re.findall(r"<!-- page: needs (.*?) -->", text)).split():
        have = subprocess.run(["bash", "-c", f". {ROOT}/test/lib/has.sh; {need}"], check=False).returncode
        if have == 127:
            raise Fault(f"1: test/lib/has.sh has no {need}")
        if have != 0:
            print(f"skip: needs what {need} of test/lib/has.sh looks for")
            sys.exit(77)


def run(text):
    has_what_it_needs(text)
    shell, by_hand = Shell(), 0
    for step in steps(text):
        print(f"{step.line}: {step}", flush=True)
        if isinstance(step, File):
            os.makedirs(os.path.dirname(os.path.abspath(step.name)), exist_ok=True)
            with open(step.name, "w", encoding="utf-8") as f:
                f.write(step.text)
        elif step.by_hand:
            by_hand += 1
        else:
            shell.run(step)
    print(f"PASS: {shell.count} commands were run, {by_hand} are left to a hand")


def main():
    *options, page = sys.argv[1:]
    if not options and "PAGE_INSIDE" not in os.environ:
        os.execv(f"{ROOT}/test/lib/page.sh", ["page.sh", os.path.relpath(page, ROOT)])
    with open(page, encoding="utf-8") as f:
        text = f.read()
    try:
        if options == ["--list"]:
            print(*(f"{step.line}: {step}" for step in steps(text)), sep="\n")
        else:
            run(text)
    except Fault as fault:
        print(f"FAIL: {os.path.relpath(page, ROOT)}:{fault}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
