"""Reads the source text of the program's code: of files, and of what a shell, a notebook or a doctest compiles."""

from __future__ import annotations

import linecache
import os
import sys
import tokenize
from contextlib import suppress
from importlib.util import decode_source
from zipimport import zipimporter

from tensorlens.tracer.isolation.guard import reraise_user_error

_TYPED = ("<stdin>", "<console>", "<python-input-", "<ipython-input-", "<doctest ")


def is_typed(filename: str) -> bool:
    """Returns whether a file name in `<>` is that of code that a person wrote at a prompt, in a cell or in a doctest.

    Other such names are of code that a library generates: `<string>`, `<attrs generated init Point>`.
    """
    return filename.startswith(_TYPED)


def source_text(filename: str) -> str:
    """Returns the source text of a file, which may be in a zip file or known only to `linecache`; "" if none is."""
    try:
        with tokenize.open(filename) as file:
            return file.read()
    except (OSError, SyntaxError, UnicodeDecodeError, ValueError):  # ValueError: a NUL in the name
        return _archived(filename) or _cached(filename)


def _archived(filename: str) -> str:
    """Returns the source text of a module in a zip file that the program imports from; "" if there is none."""
    for folder, importer in list(sys.path_importer_cache.items()):
        if filename.startswith(f"{folder}{os.sep}") and isinstance(importer, zipimporter):
            with suppress(OSError, SyntaxError, UnicodeDecodeError):
                return decode_source(importer.get_data(filename))
    return ""


def _cached(filename: str) -> str:
    """Returns the text that a notebook or a shell has put into `linecache`, or that doctest gives through it."""
    try:
        return "".join(linecache.getlines(filename))
    except Exception as error:  # doctest replaces `getlines`, and others may, too
        reraise_user_error(error)
        return ""
