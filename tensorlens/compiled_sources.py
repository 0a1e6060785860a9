"""Knows whether a compiled module was built from the C files that are here."""

from __future__ import annotations

import hashlib
from pathlib import Path


def is_built_from(source: Path, built: str) -> bool:
    """Returns whether a module was built from `source` as it is, and from the files in its folder (see hatch_build.py).

    `built` is the SHA-256 that the module carries. An installed package has no C files: its modules are current.
    """
    folder = source.with_name(f"{source.stem.removeprefix('_')}_c")
    files = (source, *sorted(folder.glob("*.h")))
    return not source.exists() or hashlib.sha256(b"".join(map(Path.read_bytes, files))).hexdigest() == built
