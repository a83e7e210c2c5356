#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Finds stale links in the repository's files (on standard input). In Markdown: relative links, anchors, and names of
files in backquotes. In code: names of files with a folder in comments. A name is looked up in a few folders; capitals
in a name are a wildcard. Fails when there are any."""

import os
import re
import sys

FOLDERS = ["", "dataplane/", "dataplane/modules/", "dataplane/lib/", "controlplane/", "lab/", "docs/", "traffic/",
           "test/"]
TOP = {"dataplane", "controlplane", "lab", "traffic", "api", "docs", "test", "bench", "scripts", "deploy", "core",
       "modules", "lib"}
FILE = r"\.(?:c|h|go|py|sh|md|yaml|json|jq|awk|service)"
ELSEWHERE = {"build", "linux", "internal"}  # made, the kernel's headers, other projects' sources
MANY = re.compile(r"(?!README|CONTRIBUTING)[A-Z]{2,}|^x_")  # NAME_test.sh, x_test.c


def slug(heading):
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"[`*]", "", heading.strip().lower()))
    return re.sub(r"\s", "-", re.sub(r"[^\w\- ]", "", heading))


def anchors(text):
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", text, re.M)}


class Tree:
    def __init__(self, files):
        self.files = set(files)
        self.known = set(files)
        for path in files:
            while "/" in path:
                path = path.rsplit("/", 1)[0]
                self.known.add(path)

    def stale_name(self, name, here):
        parts = name.rstrip("/").split("/")
        if parts[0] in ELSEWHERE or any(MANY.match(part) for part in parts):
            return False
        return not any(os.path.normpath(folder + name.rstrip("/")) in self.known for folder in [here + "/"] + FOLDERS)

    def links(self, path, text):
        here = os.path.dirname(path)
        pictures = re.findall(r'<(?:img|source) .*?src(?:set)?="([^"]+)"', text)
        for target in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", text) + pictures:
            if re.match(r"https?:|mailto:", target):
                continue
            name, _, anchor = target.partition("#")
            full = os.path.normpath(os.path.join(here, name)) if name else path
            if full not in self.known:
                yield target
            elif anchor and full.endswith(".md"):
                with open(full, encoding="utf-8") as f:
                    if anchor not in anchors(f.read()):
                        yield target
        for name in re.findall(r"`([\w.-]+(?:/[\w.-]+)+/?)`", text):
            if (re.search(FILE + "$", name) or name.split("/")[0] in TOP) and self.stale_name(name, here):
                yield name

    def comments(self, path, text):
        for line in text.splitlines():
            comment = re.search(r"(?://|#(?!include)).*", line)
            for name in re.findall(r'(?<![\w/.<"-])((?:[\w-]+/)+[\w-]+' + FILE + r")\b", comment.group(0) if comment
                                   else ""):
                if self.stale_name(name, os.path.dirname(path)):
                    yield name


def main():
    tree, bad = Tree(sys.stdin.read().splitlines()), 0
    for path in sorted(tree.files):
        look = tree.links if path.endswith(".md") else tree.comments if re.search(r"\.(c|h|go|py|sh)$", path) else None
        if look is None:
            continue
        with open(path, encoding="utf-8", errors="replace") as f:
            text = f.read()
        for name in look(path, text):
            print(f"{path}: there is no {name}")
            bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
