#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Copies what the site shows into a folder. All Markdown files of the repository (on standard input) keep their places,
so that their links stay as they are, with the files that they link to. A link to a folder becomes one to its README or
to a list of its files. Python's Markdown wants a blank line before a list or table where GitHub's does not.
Usage: site.py FOLDER, from the top."""

import os
import re
import shutil
import sys

LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))|(srcset=\"|src=\")([^\"]+)(\")")
ITEM = re.compile(r"(?:[*-]|\d+\.) ")
STYLE = ".md-typeset th:empty { padding: 0 !important; }\n"  # many tables have no titles
FENCE = re.compile(r"(^ *```.*?^ *```$|`[^`\n]*`)", re.M | re.S)


def apart(text):
    """With a blank line before each list and table."""
    lines, code, block = [], False, ""
    for line in text.splitlines():
        code ^= line.lstrip().startswith("```")
        begins = "list" if ITEM.match(line) else "table" if line.startswith("|") else ""
        if begins and begins != block and not code and lines and lines[-1].strip():
            lines.append("")
        # a list goes on in lines that are set in, and in those of its last paragraph
        block = begins or (block if block == "list" and line.strip() else "")
        lines.append(line)
    return "\n".join(lines) + "\n"


class Site:
    def __init__(self, files, folder):
        self.files, self.folder, self.lists = set(files), folder, set()
        self.folders = {path[:i] for path in files for i, c in enumerate(path) if c == "/"}

    def put(self, path, text=None):
        to = os.path.join(self.folder, path)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        if text is None:
            shutil.copyfile(path, to)
        else:
            with open(to, "w", encoding="utf-8") as f:
                f.write(text)

    def list_of(self, folder):
        """A page of the files of a folder that has no README."""
        inside = sorted(path for path in self.files if path.startswith(folder + "/"))
        self.lists.add(folder)
        rows = []
        for path in inside:
            name = path.removeprefix(folder + "/")
            rows.append(f"* [{name}]({name})\n")
            if not path.endswith(".md"):
                self.put(path)
        self.put(folder + "/README.md", f"# {folder}\n\n" + "".join(rows))

    def link(self, path, found):
        begin, target, end = found.groups()[:3] if found[1] else found.groups()[3:]
        if re.match(r"[a-z]+:", target):
            return found[0]
        full = os.path.normpath(os.path.join(os.path.dirname(path), target))
        if full in self.folders:
            if full + "/README.md" not in self.files and full not in self.lists:
                self.list_of(full)
            target = target.rstrip("/") + "/README.md"
        elif full in self.files and not full.endswith(".md"):
            self.put(full)
        return begin + target + end

    def page(self, path):
        with open(path, encoding="utf-8") as f:
            parts = FENCE.split(f.read())
        for i in range(0, len(parts), 2):  # the others are code
            parts[i] = LINK.sub(lambda found: self.link(path, found), parts[i])
        self.put(path, apart("".join(parts)))


def main():
    site = Site(sys.stdin.read().splitlines(), sys.argv[1])
    shutil.rmtree(site.folder, ignore_errors=True)
    site.put("site.css", STYLE)
    for path in sorted(site.files):
        if path.endswith(".md"):
            site.page(path)


if __name__ == "__main__":
    main()
