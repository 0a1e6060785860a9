"""Checks paths that a user typed, and knows the folder of this package.

`Path.is_file` and `Path.is_dir` raise if the system rejects a name (one of 3,000 characters, say); these functions do
not.
"""

from __future__ import annotations

import os
from pathlib import Path

PACKAGE = Path(__file__).absolute().parent


def is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113


def is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112
