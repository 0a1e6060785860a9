"""Whether there is a file or a folder at a path that somebody typed, which may be no possible path at all.

`Path.is_file` and `Path.is_dir` raise where the system refuses the name (one of 3,000 characters, say).
"""

from __future__ import annotations

import os
from pathlib import Path

PACKAGE = Path(__file__).absolute().parent


def is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113


def is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112
