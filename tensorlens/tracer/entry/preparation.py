"""Prepares a new process of `multiprocessing`, so that it is traced."""

from __future__ import annotations

from collections.abc import Callable

from tensorlens.paths import PACKAGE

_PREPARE = """\
import sys
sys.path.insert(0, {package!r})
try:
    from tensorlens.tracer.entry.child_start import multiprocessing_started
finally:
    sys.path.remove({package!r})
multiprocessing_started({settings!r})
"""


class Preparation:
    """Makes the process that unpickles it a followed one. An error of that does not reach the process."""

    def __init__(self, settings: str) -> None:
        self._code = _PREPARE.format(package=str(PACKAGE.resolve().parent), settings=settings)

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        indented = "".join(f"    {line}\n" for line in self._code.splitlines())
        return exec, (f"try:\n{indented}except Exception:\n    pass\n", {})
