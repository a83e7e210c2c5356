#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks docs/development.md: the lines of its code blocks stand in a file that their section names; its commands,
functions and tests exist. (links.py looks for named files.) From the top, with the repository's files on standard
input."""

import glob
import os
import re
import sys

GUIDE = "docs/development.md"
QUOTED = {"c", "go", "meson"}
COMMANDS = ("N=", "cp -r", "for f in", "sed -i", "touch", "kill -INT")  # of any machine
faults = []


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


class Tree:
    def __init__(self, files):
        self.files = files
        self.meson = "".join(read(path) for path in files if path.endswith("meson.build"))
        self.words = {}

    def has_word(self, word, endings, made=r"\b{}\b"):
        """A file with one of the endings has the word."""
        key = endings, made
        if key not in self.words:
            self.words[key] = "\n".join(read(path) for path in self.files if path.endswith(endings))
        return re.search(made.format(re.escape(word)), self.words[key]) is not None


def sections(text):
    """(heading, [(line number, language, block)], text outside of blocks)."""
    for part in re.split(r"^(?=## )", text, flags=re.M):
        blocks = [(m.group(1), m.group(2)) for m in re.finditer(r"^```(\w*)\n(.*?)^```$", part, re.M | re.S)]
        yield part.split("\n", 1)[0], blocks, re.sub(r"^```.*?^```$", "", part, flags=re.M | re.S)


def check_quotes(where, blocks, prose):
    named = [path for path in re.findall(r"`([\w./-]+)`", prose) if os.path.isfile(path)]
    text = "\n".join(re.sub(r"[ \t]+", " ", read(path)) for path in named)
    for language, block in blocks:
        for line in block.splitlines() if language in QUOTED else []:
            if re.sub(r"\s+", " ", line.strip()) not in text:
                faults.append(f"{where}: none of {', '.join(named)} has: {line.strip()}")


def verbs():
    return set(re.findall(r"\b[a-z]+\b", re.search(r"^(setup \|.*)\) \"verb_", read("dev"), re.M).group(1)))


def known_ninja(tree, words):
    """A test or benchmark of a meson.build; none: all."""
    return all(f"'{word.removeprefix('dataplane/')}':" in tree.meson for word in words)


def known_go(words):
    packages = [word for word in words[1:] if word.startswith("./")]
    if words[0] != "test" or not all(os.path.isdir(package) for package in packages):
        return False
    code = "".join(read(path) for package in packages for path in glob.glob(f"{package}/*_test.go"))
    return "-update" not in words or "testkit.Golden(" in code


def known_isthmus(tree, words):
    if words[0] == "show":
        return tree.has_word(words[1], ("view/rows.go", "view/graph.go"), r'"{}"')
    return tree.has_word(words[0], ("cli/run.go", "cli/config.go", "cli/status.go"), r'Use: +"{}\b')


def known(tree, line):
    program, *words = line.removesuffix(" &").split()
    if program == "./dev":
        checks = [word for word in words[1:] if words[0] == "lint" and word != "--fix"]
        return words[0] in verbs() and all(f"lint_{word}()" in read("scripts/lint.sh") for word in checks)
    if program == "ninja":
        return known_ninja(tree, words[2:])
    if program == "go":
        return known_go(words)
    if program == "build/isthmus":
        return known_isthmus(tree, words)
    if program.startswith("build/dataplane/"):
        return known_ninja(tree, [os.path.basename(program)])
    if program == "api/check.sh":
        return all(f"{word})" in read(program) for word in words)
    if program.startswith("scripts/"):
        return os.access(program, os.X_OK)
    return line.startswith(COMMANDS)


def check_commands(where, tree, blocks, prose):
    lines = [line for language, block in blocks if language == "sh" for line in block.splitlines()]
    begins = r"(\./dev|ninja|go test|build/isthmus|api/check\.sh) "
    lines += [code for code in re.findall(r"`([^`\n]+)`", prose) if re.match(begins, code)]
    for line in lines:
        if not known(tree, line):
            faults.append(f"{where}: is that a command? {line}")


def check_names(where, tree, prose):
    for code in re.findall(r"`([^`\n]+)`", prose):
        name = re.fullmatch(r"(\w+)\([^)]*\)|(\w*_\w+)", code)
        if name and not tree.has_word(name.group(1) or name.group(2), (".c", ".h", ".go")):
            faults.append(f"{where}: nothing is called {code}")
    for test in re.findall(r"\bTest[A-Z]\w+", prose):
        if not tree.has_word(test, ("_test.go",), r"(?m)^func {}\("):
            faults.append(f"{where}: there is no {test}")


def main():
    tree = Tree(sys.stdin.read().splitlines())
    for heading, blocks, prose in sections(read(GUIDE)):
        where = f"{GUIDE}: {heading}"
        check_quotes(where, blocks, prose)
        check_commands(where, tree, blocks, prose)
        check_names(where, tree, prose)
    print("\n".join(faults), end="\n" if faults else "")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
