"""Modules of the program's own that go by the name of one of Python's: `secrets.py`, `queue.py`.

Plain Python finds those first that lie beside the program. Here PyTorch has been imported before, and with it much of
the standard library: what the program's own would have taken the place of is forgotten again, so that the program finds
its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from importlib.machinery import FrozenImporter

_KEPT = {"torch", "torchgen", "functorch", "numpy", "tensorlens"}  # what can't be loaded twice, and what we need
SHADOWED = "a module {} lies beside the program: where PyTorch imports one of that name, it has python's own"


def make_way(first: Collection[str]) -> list[str]:
    """Forget what the program has a module of its own for, unless it is among `first`: what python itself imports
    before any program. Returns the names."""
    folder = os.path.realpath(sys.path[0])
    imported = [name for name in sorted(_beside(folder)) if name in sys.modules and not _lies_in(folder, name)]
    names = [n for n in imported if n not in first and n not in _KEPT and FrozenImporter.find_spec(n) is None]
    for loaded in list(sys.modules):
        if loaded.partition(".")[0] in names:
            del sys.modules[loaded]
    return names


def _lies_in(folder: str, name: str) -> bool:
    """Whether what has been imported is the program's own already."""
    file = getattr(sys.modules[name], "__file__", None) or ""
    return os.path.realpath(file).startswith(folder + os.sep)


def _beside(folder: str) -> set[str]:
    """The modules that lie in a folder."""
    try:
        with os.scandir(folder) as entries:
            found = [(entry.name, entry.is_dir()) for entry in entries]
    except OSError:
        return set()
    files = {name.removesuffix(".py") for name, is_folder in found if name.endswith(".py") and not is_folder}
    packages = {name for name, is_folder in found if is_folder and os.path.exists(f"{folder}/{name}/__init__.py")}
    return files | packages
