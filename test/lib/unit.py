#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command with what a unit of deploy/systemd leaves it, where systemd is not the init: user, capabilities,
no_new_privs, and the seccomp filters of SystemCallFilter, RestrictAddressFamilies, RestrictNamespaces and
MemoryDenyWriteExecute. A system call that the unit refuses ends the process by SIGSYS, so that a test sees it.

usage: [DROP_IN=NAME] UNIT_USER=UID unit.py UNIT COMMAND [ARGUMENT...], as root
"""

import ctypes
import errno
import os
import re
import socket
import subprocess
import sys

UNITS = os.path.join(os.path.dirname(__file__), "../../deploy/systemd")
ALLOW, TRAP = 0x7FFF0000, 0x00030000
REFUSE = 0x00050000 # | errno
# System calls that libraries try when they are loaded, and do without: DPDK's virtio driver, libnuma.
ASKED_FOR = {"iopl", "set_mempolicy"}
MASKED_EQUAL = 7
WRITE, EXEC = 2, 4 # PROT_
SHM_EXEC = 0o100000
AF_XDP = 44
NAMESPACES = {"cgroup": 0x02000000, "uts": 0x04000000, "ipc": 0x08000000, "user": 0x10000000, "pid": 0x20000000,
              "net": 0x40000000, "mnt": 0x00020000}
ANY = (1 << 64) - 1


class Compare(ctypes.Structure):
    _fields_ = [("argument", ctypes.c_uint), ("operator", ctypes.c_int), ("mask", ctypes.c_uint64),
                ("value", ctypes.c_uint64)]


def settings(unit):
    """{key: [values in order]} of a unit and its drop-in."""
    found = {}
    for file in (f"{unit}.service", os.environ.get("DROP_IN", "") + ".conf"):
        path = os.path.join(UNITS, file)
        if file == ".conf":
            continue
        with open(path, encoding="utf-8") as f:
            for key, value in re.findall(r"^(\w+)=(.*)$", f.read(), re.M):
                found.setdefault(key, []).append(value)
    return found


def call_sets():
    """{@set: its words}, as systemd has them."""
    text = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager"],
                          capture_output=True, text=True, check=True).stdout
    return {name: re.findall(r"^    (@?\w[\w-]*)$", body, re.M)
            for name, body in re.findall(r"^(@[\w-]+)\n((?:(?: .*)?\n)*)", text, re.M)}


def allowed_calls(unit):
    sets = call_sets()

    def spread(word):
        return {c for w in sets[word] for c in spread(w)} if word in sets else {word}

    calls = spread("@default")
    for line in unit["SystemCallFilter"]:
        named = {c for word in line.lstrip("~").split() for c in spread(word)}
        calls = calls - named if line[0] == "~" else calls | named
    return calls


def argument_rules(unit):
    """{call: what it may be called with, as [[(argument, mask, value)...]...]}"""
    kept = 0
    for word in " ".join(unit["RestrictNamespaces"]).split():
        kept |= NAMESPACES.get(word, 0)
    refused = sum(NAMESPACES.values()) & ~kept
    families = " ".join(unit["RestrictAddressFamilies"]).split()
    assert unit["MemoryDenyWriteExecute"] == ["yes"]
    return {
        "socket": [[(0, ANY, AF_XDP if f == "AF_XDP" else getattr(socket, f))] for f in families],
        "clone": [[(0, refused, 0)]], "unshare": [[(0, refused, 0)]],
        "setns": [[(1, ANY, flag)] for flag in NAMESPACES.values() if flag & kept],
        "mmap": [[(2, WRITE | EXEC, bits)] for bits in (0, WRITE, EXEC)],
        "mprotect": [[(2, EXEC, 0)]], "shmat": [[(2, SHM_EXEC, 0)]],
    }


def load(unit):
    lib = ctypes.CDLL("libseccomp.so.2")
    lib.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(lib.seccomp_init(TRAP))
    limited = argument_rules(unit)

    def rule(action, call, comparisons):
        number = lib.seccomp_syscall_resolve_name(call.encode())
        if number < 0: # of another architecture
            return
        array = (Compare * len(comparisons))(*(Compare(n, MASKED_EQUAL, mask, value) for n, mask, value in comparisons))
        if lib.seccomp_rule_add_array(context, action, number, len(comparisons), array) != 0:
            raise OSError(f"no rule for {call}")

    calls = allowed_calls(unit)
    # Its flags lie in memory, where no filter sees them: the C library falls back to clone.
    rule(REFUSE | errno.ENOSYS, "clone3", [])
    for call in ASKED_FOR - calls:
        rule(REFUSE | errno.EPERM, call, [])
    for call in sorted(calls - {"clone3"}):
        for comparisons in limited.get(call, [[]]):
            rule(ALLOW, call, comparisons)
    if lib.seccomp_load(context) != 0:
        raise OSError("the kernel does not take the filter")


def main():
    unit = settings(sys.argv[1])
    command, user = sys.argv[2:], os.environ["UNIT_USER"]
    if os.geteuid() == 0:
        names = lambda key: ",".join(["-all", *("+" + c[4:].lower() for c in " ".join(unit.get(key, [])).split())])
        ambient, most = names("AmbientCapabilities"), names("CapabilityBoundingSet")
        os.execvp("setpriv", ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--no-new-privs",
                              "--inh-caps", ambient, "--ambient-caps", ambient, "--bounding-set", most, *sys.argv])
    load(unit)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
