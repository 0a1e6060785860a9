"""Describes the program of a process that something else than this package has started."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from tensorlens.paths import is_file


def own_program() -> dict[str, Any]:
    """Describes the program of this process as one would start it."""
    main = sys.modules.get("__main__")
    name, argv = (sys.argv or [""])[0], list(sys.argv[1:])
    if "-m" in sys.orig_argv and name.endswith(".py") and name not in sys.orig_argv:
        spec = getattr(main, "__spec__", None)
        module = sys.orig_argv[sys.orig_argv.index("-m") + 1] if spec is None else spec.name.removesuffix(".__main__")
        return {"script": f"-m {module}", "argv": argv, "folder": os.getcwd(), "own_files": (name,)}
    path = os.path.abspath(name)
    if not is_file(Path(path)):
        return {"script": name or "-", "argv": argv, "folder": os.getcwd(), "own_files": ()}
    return {"script": name, "argv": argv, "folder": os.path.dirname(path), "own_files": (path,)}
