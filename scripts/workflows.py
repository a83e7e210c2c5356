#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the workflow files named. A step of each job runs .ci/run; the others run verbs of ./dev, or get git for the
checkout. The JUnit file is uploaded however the tests end."""

import re
import sys

import yaml

GIT = "apt-get update && apt-get install -y --no-install-recommends ca-certificates git"


def verbs():
    with open("dev", encoding="utf-8") as f:
        return set(re.search(r'^([a-z| ]+)\) "verb_\$verb"', f.read(), re.M).group(1).split(" | "))


def faults(path):
    with open(path, encoding="utf-8") as f:
        jobs = yaml.safe_load(f)["jobs"]
    for name, job in jobs.items():
        runs = [step["run"] for step in job["steps"] if "run" in step]
        for run in runs:
            verb = re.fullmatch(r"\./dev ([a-z]+)( .*)?", run)
            if run not in (".ci/run", GIT) and (not verb or verb[1] not in verbs()):
                yield f"{path}: {name}: {run} is neither .ci/run nor a verb of ./dev"
        uploads = [step for step in job["steps"] if step.get("uses", "").startswith("actions/upload-artifact@")]
        if ".ci/run" not in runs:
            yield f"{path}: {name} does not run .ci/run"
        if not any("junit.xml" in step["with"]["path"] and step.get("if") == "always()" for step in uploads):
            yield f"{path}: {name}: junit.xml is not uploaded"


def main():
    found = []
    for path in sys.argv[1:]:
        try:
            found += faults(path)
        except (yaml.YAMLError, KeyError, TypeError) as fault:
            found.append(f"{path}: {fault!r}")
    print("\n".join(found), end="\n" if found else "")
    return bool(found or not sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
