#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks documents (the repository's files on standard input), from the top. A command in a block ```console names a
command and options of docs/reference/commands.md. No command stands in a block without a language, where no test would
type it. A page whose commands can be run has a test in test/pages. Each page of docs/ stands in the navigation of
mkdocs.yml, which names nothing else."""

import re
import shlex
import sys

sys.path.append("test/lib")
import page  # pylint: disable=wrong-import-position

REFERENCE = "docs/reference/commands.md"
PLAIN = re.compile(r"(sudo )?(build/|\./)?(isthmus|dev) ")  # a command
BEFORE = {"sudo", "if", "while", "until", "do", "then", "!", "exec", "timeout"}


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
    while words and (words[0] in BEFORE or re.match(r"\w+=", words[0])):
        words = words[1:]
    if not words or not re.fullmatch(r"(?:.*/)?isthmus(?:-lab)?", words[0]):
        return
    command, known, options = "isthmus", {"-h", "--help", "-v", "--version"} | tree["isthmus"], []
    for word in words[1:]:
        deeper = command + " " + word
        if re.match(r"--?[a-z]", word):
            options.append(word.partition("=")[0])
        elif any(f"{name} ".startswith(deeper + " ") for name in tree):
            command, known = deeper, known | tree.get(deeper, set())
        elif options and (command not in tree or any(name.startswith(command + " ") for name in tree)):
            continue  # the value of an option before the command
        elif any(name.startswith(command + " ") for name in tree):
            yield f"there is no {deeper}"
            return
        if command == "isthmus lab exec":
            break  # what follows is another program's
    if command not in tree:
        yield f"{command} is no whole command"
    yield from (f"{command} has no option {name}" for name in options if name not in known)


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
            for fault in (fault for words in words_of(command.text) for fault in faults_of(words, tree)):
                yield f"{path}:{command.line}: {fault} ({REFERENCE})"
        for begin, language, _, lines, _ in page.blocks(read(path)):
            for number, line in enumerate(lines, begin + 1):
                if language == "" and PLAIN.match(line):
                    yield (f"{path}:{number}: a command is in a block ```console, which a test types "
                           "(test/pages/README.md)")
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
