#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Plain words: finds words to avoid, sentences of more than 30 words and table cells of more than 25, in Markdown
and in comments. In Markdown it also finds table rows with more or fewer cells than their table. Fails when it finds
any.

usage: prose.py FILE...; without a file, the repository's files on standard input."""

import ast
import os
import re
import sys

AVOID = re.compile(r"\b(nobody|somebody|whoever|told|tells?|telling|anew|what comes|one that)\b", re.I)
SENTENCE = 30  # words
CELL = 25
END = re.compile(r"(?<=[.!?])[\"')\]*_]*\s+(?=[A-Z0-9`\"(\[*_])")


def plain(text):
    """Without what is no word of ours: code counts as one word, a link as its text."""
    text = re.sub(r"`[^`]*`", "CODE", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"https?://\S+", "LINK", text)


def length(text):
    return sum(any(c.isalnum() for c in word) for word in text.split())


def faults(text, cell=False):
    """(kind, what) of a paragraph or cell."""
    text = plain(text)
    for word in AVOID.findall(text):
        yield "words", word
    if cell and length(text) > CELL:
        yield "cells", f"{length(text)} words in a cell: {text[:60]}"
    for sentence in [] if cell else END.split(text):
        if length(sentence) > SENTENCE:
            yield "sentences", f"{length(sentence)} words: {sentence[:60]}"


def markdown(text):
    """(line number, text, is a cell) of paragraphs, list entries and table cells; blocks of code are none."""
    code, begun, lines = False, 0, []
    for number, line in enumerate(text.splitlines() + [""], 1):
        fence = line.lstrip().startswith("```")
        apart = fence or code or not line.strip() or line.startswith(("|", "#", "<!--"))
        if lines and (apart or re.match(r" *([*-]|\d+\.) ", line)):
            yield begun, " ".join(lines), False
            lines = []
        code ^= fence
        if line.startswith("|") and not code:
            for cell in re.split(r"(?<!\\)\|", line)[1:-1]:
                yield number, cell, True
        elif not apart:
            begun = begun if lines else number
            lines.append(re.sub(r"^ *([*-]|\d+\.) +", "", line).strip())


def ragged(text):
    """(line number, what) of table rows that have not as many cells as the first one."""
    code, cells = False, 0
    for number, line in enumerate(text.splitlines(), 1):
        code ^= line.lstrip().startswith("```")
        if code or not line.startswith("|"):
            cells = 0
            continue
        here = len(re.split(r"(?<!\\)\|", line.rstrip())) - 2
        if cells and here != cells:
            yield number, f"{here} cells in a table of {cells}: {line[:60]}"
        cells = cells or here


def comments(path, text):
    """(line number, text, False) of comments: of lines that follow each other as one."""
    mark = r"//" if path.endswith((".c", ".h", ".go")) else r"#(?!!)"
    alone, behind = re.compile(rf"^\s*{mark}(?: (.*))?$"), re.compile(rf"\s{mark} (.*)$")
    begun, lines = 0, []
    for number, line in enumerate(text.splitlines() + [""], 1):
        whole, tail = alone.match(line), behind.search(line)
        if whole and whole.group(1) and not whole.group(1).startswith("SPDX"):
            begun = begun if lines else number
            lines.append(whole.group(1))
            continue
        if lines:
            yield begun, " ".join(lines), False
            lines = []
        if tail and not whole:
            yield number, tail.group(1), False
    if path.endswith(".py"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)) and (said := ast.get_docstring(node)):
                yield node.body[0].lineno, " ".join(said.split()), False


def is_ours(path):
    return re.search(r"\.(md|c|h|go|py|sh)$", path) and not re.search(r"(_gen|\.pb)\.go$", path)


def look(path):
    """(line number, kind, what) of a file."""
    with open(path, encoding="utf-8", errors="replace") as f:
        text = f.read()
    if path.endswith(".md"):
        yield from ((number, "rows", what) for number, what in ragged(text))
    for number, part, cell in markdown(text) if path.endswith(".md") else comments(path, text):
        for kind, what in faults(part, cell):
            yield number, kind, what


def main():
    bad = 0
    for path in sys.argv[1:] or filter(is_ours, sys.stdin.read().splitlines()):
        for number, kind, what in look(os.path.relpath(path)):
            print(f"{path}:{number}: {kind}: {what}")
            bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
