#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes LOGS/junit.xml: a test suite for each job of ./dev test, a test case for each test. usage: junit.py LOGS
NAME..."""

import json
import os
import sys
from xml.etree import ElementTree

MOST = 20000 # characters of a failed test's output


def lines(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read().splitlines()


def case(name, seconds, result, text=""):
    e = ElementTree.Element("testcase", name=name, time=f"{seconds:.3f}")
    if result != "passed":
        # XML has no place for most control characters.
        text = "".join(c for c in text[-MOST:] if c >= " " or c in "\n\t")
        ElementTree.SubElement(e, {"failed": "failure", "skipped": "skipped"}[result], message=result).text = text
    return e


def meson(folder):
    """The programs that the unit step of a build folder ran."""
    results = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}
    for row in map(json.loads, lines(f"{folder}/meson-logs/testlog.json")):
        text = row.get("stdout", "") + row.get("stderr", "")
        yield case(row["name"], row["duration"], results.get(row["result"], "failed"), text)


def go(path):
    """The top-level tests in the events of `go test -json`."""
    output = {}
    for event in map(json.loads, lines(path)):
        test = event.get("Test")
        if test is None or "Package" not in event:
            continue
        key = event["Package"], test.split("/")[0]
        if event["Action"] == "output":
            output[key] = output.get(key, "") + event["Output"]
        elif event["Action"] in ("pass", "fail", "skip") and "/" not in test:
            result = {"pass": "passed", "fail": "failed", "skip": "skipped"}[event["Action"]]
            yield case(".".join(key), event.get("Elapsed", 0), result, output.get(key, ""))


def suite(logs, name):
    status, begin, end = map(int, lines(f"{logs}/{name}.status")[0].split())
    seconds = (end - begin) / 1000
    if name == "unit":
        cases = list(meson("build"))
    elif name == "unit-sanitizers":
        cases = list(meson("build-asan"))
    elif name == "go":
        cases = list(go(f"{logs}/go.json"))
    else:
        cases = []
    failed = int(lines(f"{logs}/{name}.counts")[0].split()[1])
    # A job of one test, or a failed job whose tests passed.
    if not cases or (failed and not any(c.find("failure") is not None for c in cases)):
        result = "failed" if failed else "skipped" if status == 77 else "passed"
        cases.append(case(name, seconds, result, "\n".join(lines(f"{logs}/{name}.log"))))
    count = lambda kind: str(sum(c.find(kind) is not None for c in cases))
    e = ElementTree.Element("testsuite", name=name, time=f"{seconds:.3f}", tests=str(len(cases)),
                            failures=count("failure"), skipped=count("skipped"))
    e.extend(cases)
    return e


def main():
    logs, names = sys.argv[1], sys.argv[2:]
    root = ElementTree.Element("testsuites")
    root.extend(suite(logs, n) for n in names if os.path.exists(f"{logs}/{n}.status"))
    ElementTree.ElementTree(root).write(f"{logs}/junit.xml", encoding="utf-8", xml_declaration=True)


main()
