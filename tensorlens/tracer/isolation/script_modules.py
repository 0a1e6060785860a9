"""Modules of the program's own that go by the name of one of Python's: `secrets.py`, `queue.py`.

Plain Python finds those first that lie beside the program, or in a folder of PYTHONPATH. Here PyTorch has been imported
before, and with it much of the standard library: what the program's own would have taken the place of is forgotten
again, so that the program finds its own.
"""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Collection, Iterator
from importlib.machinery import FrozenImporter
from pathlib import Path

_KEPT = {"torch", "torchgen", "functorch", "numpy", "tensorlens"}  # what can't be loaded twice, and what we need
SHADOWED = "a module {} lies {}: where PyTorch imports one of that name, it has python's own"
BESIDE = "beside the program"


def unload_shadowed_modules(first: Collection[str]) -> list[tuple[str, str]]:
    """Forget what the program has a module of its own for, unless it is among `first`: what python itself imports
    before any program. Returns the names, and where each of those modules lies."""
    names: dict[str, str] = {}
    for folder, where in _before_pythons_own():
        imported = [name for name in sorted(_modules(folder)) if name in sys.modules and not _lies_in(folder, name)]
        forgotten = [n for n in imported if n not in first and n not in _KEPT and FrozenImporter.find_spec(n) is None]
        names |= {name: where for name in forgotten if name not in names}
    for loaded in list(sys.modules):
        if loaded.partition(".")[0] in names:
            del sys.modules[loaded]
    return list(names.items())


def _before_pythons_own() -> Iterator[tuple[str, str]]:
    """The folders in which python looks before it looks in its own, and how the report names them."""
    standard = os.path.dirname(os.__file__)
    ours = not sys.flags.safe_path or os.path.exists(f"{sys.path[0]}/__main__.py")
    for place, entry in enumerate(sys.path):
        if entry == standard:
            return
        yield os.path.realpath(entry), BESIDE if place == 0 and ours else f"in {entry}"


def _lies_in(folder: str, name: str) -> bool:
    """Whether what has been imported is the program's own already."""
    file = getattr(sys.modules[name], "__file__", None) or ""
    return os.path.realpath(file).startswith(folder + os.sep)


def _modules(folder: str) -> set[str]:
    """The modules that lie in a folder, or in a zip file."""
    try:
        if Path(folder).is_file():
            with zipfile.ZipFile(folder) as archive:
                paths = [name.split("/") for name in archive.namelist()]
            files = [path[0] for path in paths if len(path) == 1]
            packages = {path[0] for path in paths if path[1:] == ["__init__.py"]}
        else:
            with os.scandir(folder) as entries:
                found = [(entry.name, entry.is_dir()) for entry in entries]
            files = [name for name, is_folder in found if not is_folder]
            packages = {
                name for name, is_folder in found if is_folder and os.path.exists(f"{folder}/{name}/__init__.py")
            }
    except (OSError, zipfile.BadZipFile):
        return set()
    return packages | {name.removesuffix(".py") for name in files if name.endswith(".py")}
