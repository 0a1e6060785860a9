"""Recognizes the frames of this package, and takes them out of tracebacks.

The bundled lessons are installed inside the package. Their frames are a program's like any other.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import TypeVar

import torch.overrides

from tensorlens.paths import PACKAGE

OVERRIDES = torch.overrides.__file__
_REACH = 4  # frames, at most, between a torch function and the recorder's `__torch_function__`
_started_by: list[CodeType] = []  # code that the process runs before any file of this package: `python -c`
Place = TypeVar("Place")


def folder_names(folder: Path) -> tuple[str, ...]:
    """Returns a folder as code objects name it: as `sys.path` spells it, and without symbolic links."""
    return tuple({str(folder.absolute()) + os.sep, str(folder.resolve()) + os.sep})


_OURS = folder_names(PACKAGE)
_LESSONS = folder_names(PACKAGE / "scenarios")


def is_ours(filename: str) -> bool:
    """Returns whether a file belongs to this package."""
    return filename.startswith(_OURS) and not filename.startswith(_LESSONS)


def hide(code: CodeType) -> None:
    """Hides the frames that run `code`, like those of this package."""
    _started_by.append(code)


def strip(error: BaseException, seen: set[int] | None = None) -> None:
    """Removes this package's frames from the traceback of an exception, of its causes and of its contexts.

    A context that the package raised for itself goes, too: Ctrl-C can arrive while the package handles it.
    """
    seen = set() if seen is None else seen
    if id(error) in seen:
        return
    seen.add(id(error))
    error.__traceback__ = strip_traceback(error.__traceback__)
    while (context := error.__context__) is not None and context is not error.__cause__ and _is_internal(context):
        error.__context__ = context.__context__
    for other in (error.__cause__, error.__context__, *getattr(error, "exceptions", ())):
        if isinstance(other, BaseException):
            strip(other, seen)


def _is_internal(error: BaseException) -> bool:
    """Returns whether an exception passed through frames of this package only."""
    entry = error.__traceback__
    files = []
    while entry is not None:
        files.append(entry.tb_frame.f_code.co_filename)
        entry = entry.tb_next
    return bool(files) and all(map(is_ours, files))


def strip_traceback(traceback: TracebackType | None) -> TracebackType | None:
    """Links the entries of a traceback that are not this package's, and returns the first."""
    entries = []
    while traceback is not None:
        entries.append((traceback.tb_frame, traceback))
        traceback = traceback.tb_next
    visible = [entry for _, entry in visible_frames(entries)]
    if not visible:
        return None
    for entry, following in zip(visible, [*visible[1:], None], strict=True):
        entry.tb_next = following
    return visible[0]


def visible_frames(entries: Iterable[tuple[FrameType, Place]]) -> list[tuple[FrameType, Place]]:
    """Keeps the (frame, position) pairs that a program without the lens would have, the outermost first.

    A Python function of PyTorch first calls the mode, and the mode calls the same function again. The frames of the
    first call are dropped, too.
    """
    kept: list[tuple[FrameType, Place]] = []
    through_mode = False
    for entry in entries:
        code = entry[0].f_code
        if code in _started_by:
            continue
        if is_ours(code.co_filename):
            through_mode = through_mode or code.co_name == "__torch_function__"
            continue
        if through_mode:
            _drop_interrupted(kept, code)
        through_mode = False
        kept.append(entry)
    if through_mode:
        _drop_interrupted(kept, None)
    return kept


def _drop_interrupted(kept: list[tuple[FrameType, Place]], code: CodeType | None) -> None:
    """Drops from the end of `kept` the frames through which PyTorch called the mode. `code` is what the mode called."""
    through_python = bool(kept) and kept[-1][0].f_code.co_filename == OVERRIDES
    for distance in range(1, min(_REACH if through_python else 1, len(kept)) + 1):
        if kept[-distance][0].f_code is code:
            del kept[-distance:]
            return
    if through_python:
        del kept[-2:]
