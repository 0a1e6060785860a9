"""Checks a script, a directory or zip file with a `__main__`, a module, or standard input before it is run."""

from __future__ import annotations

import importlib.util
import os
import sys
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Literal

from tensorlens.errors import UsageError
from tensorlens.paths import is_folder


@dataclass(frozen=True, slots=True)
class Target:
    """The script to run: a file, a module (`-m`) or standard input (`-`), and its arguments."""

    kind: Literal["file", "module", "stdin"]
    name: str
    argv: tuple[str, ...] = ()


def check_target(target: Target) -> None:
    """Checks that the target exists and is Python source, without running any of it.

    Raises:
        UsageError: there is no such file or module, or it is not Python source.
    """
    if target.kind == "file":
        _check_file(Path(target.name))
    elif target.kind == "module":
        _check_module(target.name)


def _check_file(path: Path) -> None:
    if is_folder(path):
        if not _has_main(path):
            raise UsageError(f"{path} is a directory without a __main__.py, which python would run")
        return
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except FileNotFoundError:
        raise UsageError(f"no such file: {path}") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"can't read {path}: {getattr(error, 'strerror', None) or error}") from None
    if head.startswith(importlib.util.MAGIC_NUMBER) or _has_main(path):
        return
    if b"\0" in head:
        raise UsageError(f"{path} is not Python source (it holds null bytes)")


def _has_main(path: Path) -> bool:
    """Returns whether python would run the `__main__` module of a directory or a zip file."""
    try:
        return PathFinder.find_spec("__main__", [os.path.abspath(path)]) is not None
    except (ImportError, OSError, ValueError):
        return False


def _check_module(name: str) -> None:
    """Checks only the first part of a dotted name: a search for the rest would import, and so run, the package."""
    package = name.partition(".")[0]
    current_directory = [] if sys.flags.safe_path else [os.getcwd()]
    sys.path[:0] = current_directory
    try:
        exists = importlib.util.find_spec(package) is not None
    except ValueError:  # an impossible name, or a module in memory that has no spec
        exists = package in sys.modules
    finally:
        del sys.path[: len(current_directory)]
    if not exists:
        raise UsageError(f"no module named {package}")
