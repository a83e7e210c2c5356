#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks documents (the repository's files on standard input): a command in a block ```console names a command and
options of docs/reference/commands.md; a page whose commands can be run has a test in test/pages; and each page of docs/
stands in the navigation of mkdocs.yml, which names nothing else. From the top."""

import re
import shlex
import sys

sys.path.append("test/lib")
import page  # pylint: disable=wrong-import-position

REFERENCE = "docs/reference/commands.md"
PROGRAM = re.compile(r"(?:sudo )?(?:build/|\./)?(isthmus(?:-lab)?)")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def command_tree():
    """{command: its options}, "isthmus lab 5g": {"--ues", …}."""
    found = {}
    for part in re.split(r"^## ", read(REFERENCE), flags=re.M)[1:]:
        options = re.findall(r"^\| `(-[^`]*)`", part, re.M)
        found[part.split("\n", 1)[0].strip()] = {
            name for option in options for name in re.findall(r"(?<![\w-])--?[\w-]+", option)}
    return found


def words_of(line):
    """The simple commands of a line of the shell, as words; nothing where it is no plain shell."""
    lexer = shlex.shlex(line.replace("\\\n", " "), posix=True, punctuation_chars=";&|()")
    lexer.whitespace_split, lexer.commenters = True, "#"
    found = [[]]
    try:
        for word in lexer:
            if set(word) <= set(";&|()"):
                found.append([])
            else:
                found[-1].append(word)
    except ValueError:
        return []
    return found


def faults_of(words, tree):
    """What a simple command says that `isthmus` does not know."""
    while words and (words[0] in ("sudo", "if", "while", "until", "do", "then", "!") or re.match(r"\w+=", words[0])):
        words = words[1:]
    if not words or not re.fullmatch(r"(?:.*/)?isthmus(?:-lab)?", words[0]):
        return
    known, command, rest = {"-h", "--help"} | tree["isthmus"], "isthmus", words[1:]
    while rest:
        word = rest[0]
        if word.startswith("-"):
            name, value, _ = word.partition("=")
            if name not in known and not any(c.startswith(command + " ") and name in o for c, o in tree.items()):
                yield f"{command} has no option {name}"
            rest = rest[1:]
            if not value and name in ("--socket", "--server", "--ca", "--token-file", "--fingerprint"):
                rest = rest[1:]
            continue
        deeper = command + " " + word
        parents = [c for c in tree if c == deeper or c.startswith(deeper + " ")]
        if not parents:
            if any(c.startswith(command + " ") for c in tree) and command not in tree or command == "isthmus":
                yield f"there is no {deeper}"
                return
            break
        command, known, rest = deeper, known | tree.get(deeper, set()), rest[1:]
    if command == "isthmus lab exec":  # what follows is another program's
        return
    for word in rest:
        name = word.partition("=")[0]
        if re.fullmatch(r"--?[a-z][\w-]*", name) and name not in known:
            yield f"{command} has no option {name}"


def check_pages(files, tree):
    tested = "".join(read(path) for path in files if path.startswith("test/pages/"))
    for path in files:
        if not re.match(r"(README|docs/.*)\.md$", path) or path.startswith("docs/reference/"):
            continue
        try:
            steps = page.steps(read(path))
        except page.Fault as fault:
            yield f"{path}:{fault}"
            continue
        commands = [step for step in steps if isinstance(step, page.Command)]
        for command in commands:
            for words in words_of(command.text):
                for fault in faults_of(words, tree):
                    yield f"{path}:{command.line}: {fault} ({REFERENCE})"
        if any(not command.by_hand for command in commands) and path not in tested:
            yield f"{path}: its commands are run by no test in test/pages"


def check_navigation(files):
    named = re.findall(r"[:-] +([\w./-]+\.md)$", read("mkdocs.yml"), re.M)
    for path in named:
        if path not in files:
            yield f"mkdocs.yml: there is no {path}"
    for path in files:
        if re.match(r"docs/.*\.md$", path) and path not in named:
            yield f"mkdocs.yml: {path} is missing in the navigation"


def main():
    files = sys.stdin.read().splitlines()
    faults = [*check_pages(files, command_tree()), *check_navigation(files)]
    print("\n".join(faults), end="\n" if faults else "")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
