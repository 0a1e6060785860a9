"""Reads the source text of the program's modules."""

from __future__ import annotations

import os
import sys
import tokenize
from contextlib import suppress
from importlib.util import decode_source
from zipimport import zipimporter


def source_text(filename: str) -> str:
    """Returns the source text of a module's file, which may be in a zip file; "" if it can't be read."""
    try:
        with tokenize.open(filename) as file:
            return file.read()
    except (OSError, SyntaxError, UnicodeDecodeError):
        return _archived(filename)


def _archived(filename: str) -> str:
    """Returns the source text of a module in a zip file that the program imports from; "" if there is none."""
    for folder, importer in list(sys.path_importer_cache.items()):
        if filename.startswith(f"{folder}{os.sep}") and isinstance(importer, zipimporter):
            with suppress(OSError, SyntaxError, UnicodeDecodeError):
                return decode_source(importer.get_data(filename))
    return ""
