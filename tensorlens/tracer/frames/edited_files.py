"""Knows which files were edited while the program runs, and which text a code object was compiled from.

A notebook reloads a module, or runs a script again, after the user has edited it. Sites in the code from before keep
the text from before; the new text has a name of its own, `net.py (edited)`. IPython's `%autoreload` compiles each
function that has changed from a text of its own, without comments and blank lines, whose lines are not those of the
file: that text is called `net.py (edited: loss, reloaded)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from textwrap import indent
from types import CodeType

from tensorlens.records.source import unwarned
from tensorlens.tracer.frames.source_text import source_text


class EditedFiles:
    """The names of the texts of files: the path of a file for its first text, another for each later one."""

    def __init__(self, kept: list[CodeType], codes: Mapping[tuple[str, CodeType], object]) -> None:
        self._kept, self._codes = kept, codes  # the code that was seen so far
        self._newest: dict[str, str] = {}  # file -> the name of its newest text, if it was edited
        self._older: dict[int, str] = {}  # the id of a code object that is older than the newest text -> its text
        self._functions: dict[str, dict[CodeType, str]] = {}  # file that has several texts -> function -> its text
        self._edits: dict[str, int] = {}
        self._reloaded: dict[str, str] = {}  # texts of single functions, by name
        self._stamps: dict[str, tuple[int, int]] = {}  # file -> its time and size when it was last compared

    def name_of(self, code: CodeType) -> str:
        """Returns the name of the text that a code object was compiled from."""
        file = code.co_filename
        if file in self._functions and code.co_name != "<module>":
            known = self._functions[file].get(code)
            if known is not None or file.startswith("<"):
                return known or file
        return self._older.get(id(code)) or self._newest.get(file, file)

    def changed(self, texts: Mapping[str, str]) -> list[tuple[str, str, str]]:
        """Returns the files whose text differs from that in `texts`, which has texts by name, and both texts."""
        found = []
        for file in [name for name in texts if name not in self._newest.values()]:
            try:
                status = Path(file).stat()
            except (OSError, ValueError):  # no file: a cell
                continue
            stamp = status.st_mtime_ns, status.st_size
            if self._stamps.get(file) != stamp:
                self._stamps[file] = stamp
                text = source_text(file)
                before = texts[self._newest.get(file, file)]
                if text != before:
                    found.append((file, before, text))
        return found

    def renew(self, file: str, before: str, text: str) -> str:
        """Returns a name for the new text of a file. Functions of the text before may be called for the first time."""
        self._note_functions(file, self._newest.get(file, file), before)
        number = self._edits[file] = self._edits.get(file, 0) + 1
        return self.name(file, f"{file} (edited)" if number == 1 else f"{file} (edited {number} times)", text)

    def name(self, file: str, name: str, text: str) -> str:
        """Gives a name to the next of several texts that are compiled as one `file`: to each of its functions, too,
        which may be called after the next text."""
        self._note_functions(file, name, text)
        return self._renamed(file, name)

    def _note_functions(self, file: str, name: str, text: str) -> None:
        functions = self._functions.setdefault(file, {})
        with suppress(SyntaxError, ValueError, RecursionError, MemoryError), unwarned():
            tree = ast.parse(text, file)
            for qualified, alone in _alone(tree.body, ""):
                reloaded = f"{name} ({qualified}, reloaded)".replace(") (", ": ")
                self._reloaded[reloaded] = alone
                for code in _inner(compile(alone, file, "exec", dont_inherit=True)):
                    functions.setdefault(code, reloaded)
            functions.update((code, name) for code in _inner(compile(text, file, "exec", dont_inherit=True)))

    def text_of(self, name: str) -> str | None:
        """Returns the text of a function that was reloaded alone; None if this is another name."""
        return self._reloaded.get(name)

    def _renamed(self, file: str, name: str) -> str:
        for code in (*self._kept, *(code for _, code in self._codes)):
            if code.co_filename == file:
                self._older[id(code)] = self.name_of(code)
        self._newest[file] = name
        return name


def _alone(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, str]]:
    """Yields the name and the text of each function and method, as `%autoreload` compiles it."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _alone(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.unparse(node)
            yield f"{prefix}{node.name}", f"class __autoreload_class__:\n{indent(text, '    ')}" if prefix else text


def _inner(code: CodeType) -> Iterator[CodeType]:
    """Yields the functions and classes in a code object, and those in them."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _inner(constant)
