"""Unloads library modules that a module of the program has the name of: `secrets.py`, `queue.py`.

Plain Python imports those in the program's folder, or in a folder of PYTHONPATH, first. Here PyTorch and much of the
standard library are imported before the program runs. What the program's own modules would have shadowed is removed
from `sys.modules`, so that the program imports its own.
"""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Collection, Iterator
from importlib.machinery import FrozenImporter
from pathlib import Path

_KEPT = {"torch", "torchgen", "functorch", "numpy", "tensorlens"}  # cannot be loaded twice, or is needed here
SHADOWED = "a module {} is {}: where PyTorch imports one of that name, it gets Python's own"
BESIDE = "beside the program"


def unload_shadowed_modules(first: Collection[str]) -> list[tuple[str, str]]:
    """Removes from `sys.modules` what a module of the program shadows. Returns each name, and where that module is.

    `first`: the modules that Python itself imports before any program. They stay.
    """
    names: dict[str, str] = {}
    for folder, where in _folders_before_standard_library():
        imported = [name for name in sorted(_modules(folder)) if name in sys.modules and not _is_from(folder, name)]
        unloaded = [n for n in imported if n not in first and n not in _KEPT and FrozenImporter.find_spec(n) is None]
        names |= {name: where for name in unloaded if name not in names}
    for loaded in list(sys.modules):
        if loaded.partition(".")[0] in names:
            del sys.modules[loaded]
    return list(names.items())


def _folders_before_standard_library() -> Iterator[tuple[str, str]]:
    """Finds the folders that Python searches before its standard library, and how the report names them."""
    standard = os.path.dirname(os.__file__)
    first_is_script = not sys.flags.safe_path or os.path.exists(f"{sys.path[0]}/__main__.py")
    for place, entry in enumerate(sys.path):
        if entry == standard:
            return
        yield os.path.realpath(entry), BESIDE if place == 0 and first_is_script else f"in {entry}"


def _is_from(folder: str, name: str) -> bool:
    """Returns whether the imported module is the program's own already."""
    file = getattr(sys.modules[name], "__file__", None) or ""
    return os.path.realpath(file).startswith(folder + os.sep)


def _modules(folder: str) -> set[str]:
    """Returns the names of the modules in a folder or in a zip file."""
    try:
        if Path(folder).is_file():
            with zipfile.ZipFile(folder) as archive:
                paths = [name.split("/") for name in archive.namelist()]
            files = [path[0] for path in paths if len(path) == 1]
            packages = {path[0] for path in paths if path[1:] == ["__init__.py"]}
        else:
            with os.scandir(folder) as entries:
                listed = [(entry.name, entry.is_dir()) for entry in entries]
            files = [name for name, is_folder in listed if not is_folder]
            packages = {
                name for name, is_folder in listed if is_folder and os.path.exists(f"{folder}/{name}/__init__.py")
            }
    except (OSError, zipfile.BadZipFile):
        return set()
    return packages | {name.removesuffix(".py") for name in files if name.endswith(".py")}
