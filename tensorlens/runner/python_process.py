"""The command line of the Python processes that we start: which options python itself gets, and what it runs first."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tensorlens.paths import PACKAGE

_FLAGS = frozenset("bBdEiIOPqRsSuv")  # what else python knows ends at once (-h, -V) or is about the script's text (-x)
_WITH_VALUE = frozenset("WX")
_LONG_WITH_VALUE = "--check-hash-based-pycs"

# `python -c` puts the current directory first on the path, and PYTHONPATH comes before the standard library: a file
# `signal.py` there would run before anything of ours. So nothing is imported until the path is in another order: the
# standard library, then PYTHONPATH and the installed packages, and the current directory last. `sys` is built in, `os`
# has been imported when python started. `path` is what the program is to find: its own order, less the first entry.
_START = """\
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


def command(code: str, *arguments: str) -> list[str]:
    """A command that runs `code` with `arguments`, by this interpreter, with the options that it was given itself.

    What `code` imports comes from the standard library, PYTHONPATH and the installed packages, `tensorlens` from where
    this one lies. It finds `first`, the names of the modules that python has imported, and `path`, `sys.path` as a
    program is given it, but for the program's own folder at its head.
    """
    start = _START.format(folder=str(PACKAGE.resolve().parent))
    return [sys.executable, *options(sys.orig_argv), "-c", start + code, *arguments]


def options(words: Sequence[str]) -> list[str]:
    """Python's own options in a command line: those before the script, `-m` or `-c`."""
    found: list[str] = []
    rest = list(words[1:])
    while rest and rest[0].startswith("-") and rest[0] not in ("-", "--"):
        word = rest.pop(0)
        if word.startswith("--"):
            if word == _LONG_WITH_VALUE and rest:
                found += [word, rest.pop(0)]
            continue
        for position, letter in enumerate(word[1:], 2):
            if letter in "cm":
                return found
            if letter in _WITH_VALUE:
                value = word[position:] or (rest.pop(0) if rest else "")
                found += [f"-{letter}{value}"] if value else []
                break
            if letter in _FLAGS:
                found.append(f"-{letter}")
    return found
