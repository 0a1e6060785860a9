"""Starts Python child processes with the options of this interpreter; no module of the user shadows a standard one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from tensorlens.paths import PACKAGE

_FLAGS = frozenset("bBdEiIOPqRsSuv")  # python's other flags exit at once (-h, -V) or change the script's text (-x)
_WITH_VALUE = frozenset("WX")
_LONG_WITH_VALUE = "--check-hash-based-pycs"

# `python -c` puts the current directory first on the path, and PYTHONPATH comes before the standard library: a file
# `signal.py` there would be imported in place of the standard one. So nothing is imported until the path is reordered:
# the standard library, then PYTHONPATH and the installed packages, and the current directory last. `sys` is built in,
# and python itself has imported `os`. `path` keeps python's own order, without the first entry, for the script.
_BOOTSTRAP = """\
import sys
first = frozenset(sys.modules)
if not sys.flags.safe_path:
    del sys.path[0]
path = sys.path[:]
import os
standard = os.path.dirname(os.__file__)
def place(entry):
    if entry == standard or os.path.basename(entry) == "lib-dynload":
        return 0
    return 2 if os.path.realpath(entry) == here else 1
try:
    here = os.getcwd()
except OSError:
    here = None
sys.path.sort(key=place)
ordered = sys.path[:]
sys.path.insert(sum(place(entry) == 0 for entry in ordered), {folder!r})
import tensorlens
sys.path[:] = ordered
"""


def python_child(code: str, *arguments: str, **streams: Any) -> subprocess.Popen[Any]:
    """Starts `code` with `arguments` in a new process of this interpreter; `streams` are those of `subprocess.Popen`.

    `code` imports from the standard library, PYTHONPATH and the installed packages, and gets the `tensorlens` of this
    process. It finds two names defined: `first`, the names of the modules that python itself has imported, and `path`,
    the `sys.path` for a script, without the script's own folder.
    """
    bootstrap = _BOOTSTRAP.format(folder=str(PACKAGE.resolve().parent))
    command = [sys.executable, *options(sys.orig_argv), "-c", bootstrap + code, *arguments]
    return subprocess.Popen(command, **streams)


def options(command_line: Sequence[str]) -> list[str]:
    """Returns the interpreter's own options of a command line: those before the script, `-m` or `-c`."""
    kept: list[str] = []
    rest = list(command_line[1:])
    while rest and rest[0].startswith("-") and rest[0] not in ("-", "--"):
        word = rest.pop(0)
        if word.startswith("--"):
            if word == _LONG_WITH_VALUE and rest:
                kept += [word, rest.pop(0)]
            continue
        for position, letter in enumerate(word[1:], 2):
            if letter in "cm":
                return kept
            if letter in _WITH_VALUE:
                value = word[position:] or (rest.pop(0) if rest else "")
                kept += [f"-{letter}{value}"] if value else []
                break
            if letter in _FLAGS:
                kept.append(f"-{letter}")
    return kept
