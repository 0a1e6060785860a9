"""Says which frames are ours: those of this package, which tracebacks and warnings leave out.

The bundled lessons are installed inside the package, and are programs like any other.
"""

from __future__ import annotations

import os
from pathlib import Path

from tensorlens.paths import PACKAGE


def folder_names(folder: Path) -> tuple[str, ...]:
    """A folder as code objects name it: as `sys.path` spells it, and without symbolic links."""
    return tuple({str(folder.absolute()) + os.sep, str(folder.resolve()) + os.sep})


_OURS = folder_names(PACKAGE)
_LESSONS = folder_names(PACKAGE / "scenarios")


def is_ours(filename: str) -> bool:
    return filename.startswith(_OURS) and not filename.startswith(_LESSONS)
