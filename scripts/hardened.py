#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Whether finished programs are what a distribution would accept; prints what each lacks. usage: hardened.py PROGRAM...

Of programs in C besides: a canary, fortified calls, and on x86 a landing pad (endbr64) at each function that other
files call. The linker writes the note that turns landing pads on, unless the C library's start files lack it (Debian
12).
"""

import re
import subprocess
import sys

ENDBR64 = bytes.fromhex("f30f1efa")
X86 = "X86-64"
START_FILES = {"_start", "_init", "_fini", "_dl_relocate_static_pie"} # the C library's


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def noted(file):
    return "IBT, SHSTK" in output_of("readelf", "-W", "-n", file)


def without_pad(program, text):
    """Functions that other files can call and that do not begin with a landing pad."""
    sections = [(int(at, 16), int(offset, 16), int(size, 16))
                for at, offset, size in re.findall(r"PROGBITS +(\w{16}) (\w+) (\w+) .*AX", text)]
    with open(program, "rb") as f:
        code = f.read()
    for at, name in re.findall(r" (\w{16}) +\d+ FUNC +GLOBAL +\w+ +\d+ (\w+)$", text, re.M):
        for start, offset, size in sections:
            here = int(at, 16) - start + offset
            if name not in START_FILES and offset <= here < offset + size and code[here:here + 4] != ENDBR64:
                yield name


def missing_of_c(program, text):
    calls = set(re.findall(r" UND (\w+)@", text))
    if "__stack_chk_fail" not in calls:
        yield "no stack protector (-fstack-protector-strong)"
    if not any(c.endswith("_chk") for c in calls):
        yield "no fortified call (-D_FORTIFY_SOURCE)"
    if X86 in text:
        bare = sorted(set(without_pad(program, text)))
        if bare:
            yield f"{len(bare)} functions without endbr64 (-fcf-protection): {' '.join(bare[:5])}"
        start = output_of("gcc", "-print-file-name=crti.o").strip()
        if noted(start) and not noted(program):
            yield "no note of IBT and SHSTK (-fcf-protection)"


def missing(program):
    text = output_of("readelf", "-W", "-h", "-l", "-S", "-d", "-s", program)
    if not re.search(r"FLAGS_1.*\bPIE\b", text):
        yield "no position-independent executable (-pie)"
    if "GNU_RELRO" not in text:
        yield "no RELRO (-z relro)"
    if not re.search(r"\(FLAGS\).*BIND_NOW|\(FLAGS_1\).*\bNOW\b", text):
        yield "RELRO is partial (-z now)"
    if not re.search(r"GNU_STACK .* RW +0x", text):
        yield "an executable stack (-z noexecstack)"
    for bad in re.findall(r"\((RPATH|RUNPATH|TEXTREL)\)", text):
        yield f"{bad} in its dynamic section"
    if ".note.go.buildid" not in text:
        yield from missing_of_c(program, text)
        return
    with open(program, "rb") as f:
        if b"-trimpath=true" not in f.read():
            yield "the builder's paths (-trimpath)"


def main():
    found = [f"{program}: {what}" for program in sys.argv[1:] for what in missing(program)]
    for line in found:
        print(line)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
