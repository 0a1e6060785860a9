"""Finds the site of a running frame: the innermost line of the user's own code.

On the fast path a site is two dictionary look-ups (`code object -> offset -> id`). Text, columns and the names that
receive the value are read from the bytecode once, when a site is new.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from _thread import RLock, get_ident
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import TYPE_CHECKING

from tensorlens.journal.row_buffer import RowBuffer
from tensorlens.journal.rows import NONE, SiteRow, SourceRow, optional
from tensorlens.records.source import lines_of
from tensorlens.tracer.frames.assignment_targets import targets_of
from tensorlens.tracer.frames.bytecode import is_of_block
from tensorlens.tracer.frames.called_code import called_by
from tensorlens.tracer.frames.local_tensors import LocalTensors
from tensorlens.tracer.frames.positions import Position, extent, line_position, position_of
from tensorlens.tracer.frames.shared_sites import SharedSites
from tensorlens.tracer.frames.source_text import is_typed, source_text
from tensorlens.tracer.isolation.hidden_frames import is_ours

if TYPE_CHECKING:
    from tensorlens.tracer.frames.compiled_sites import CompiledSites
    from tensorlens.tracer.frames.edited_files import EditedFiles

NOWHERE = NONE
OUTSIDE = "<outside the script>"
DECORATOR = -2  # instead of an offset: the line of a function's decorator
DEFINITION = -3  # instead of an offset: the line of its `def`
CLASS = -4  # instead of an offset: the line of the class around it
_More = tuple[tuple[str, ...], int, str, bool]  # the fields of a `SiteRow` after its position


def _library_folders() -> tuple[str, ...]:
    import torch

    paths = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return tuple(sorted({str(Path(p).resolve()) for p in paths if p} | {str(Path(torch.__file__).resolve().parent)}))


def frame_at(depth: int) -> FrameType | None:
    """Returns the frame `depth` calls above the caller's; None if there is none: at exit, in a thread of PyTorch."""
    try:
        return sys._getframe(depth + 1)
    except ValueError:
        return None


Offsets = dict[int, int] | None
MAX_KEPT = 20_000  # code objects: a program may compile one in every round of a loop


class Sites:
    """Numbers the sites of a run. `rows` receives a SITE row for each new one, and a SOURCE row for each new file."""

    def __init__(self, rows: RowBuffer, own_files: tuple[str, ...] = ()) -> None:
        self._rows = rows
        self._own = set(own_files)
        self._libraries = _library_folders()
        self._codes: dict[tuple[str, CodeType], Offsets] = {}  # by file, too: equal code of two files compares equal
        self.by_id: dict[int, Offsets] = {}  # by the code's `id`, since its hash is slow
        self._kept: list[CodeType] = []  # so that no other code object gets one of these ids
        self.local_tensors = LocalTensors(rows)
        self.shared = SharedSites(rows)
        self._edited: EditedFiles | None = None  # in a notebook
        self.compiled: CompiledSites | None = None
        self.user_files: dict[str, bool] = {}  # by name: whether a file is the user's, as far as known
        self._sources: dict[str, str] = {}
        self._count = 0
        self.adding = RLock()  # two threads must not give one number to two sites
        self._stored_to: tuple[str, ...] = ()  # the targets of the newest site
        self.outside = NOWHERE  # the site of calls that no user code made

    def site_of(self, frame: FrameType | None) -> int:
        """Returns the site of the innermost user frame from `frame` outwards, or `NOWHERE`."""
        if self.compiled is not None and (known := self.compiled.site(frame)) is not None:
            return known
        codes, new, site = self.by_id, [], NOWHERE
        while frame is not None:
            code = frame.f_code
            offsets = codes[id(code)] if id(code) in codes else self.offsets(code)
            if offsets is not None:
                known = offsets.get(frame.f_lasti)
                if known is not None:
                    site = known
                    break
                new.append(frame)
            frame = frame.f_back
        return self._added(new, site) if new else site

    def _added(self, frames: list[FrameType], caller: int) -> int:
        """Adds the sites of frames, the innermost first, that run inside the site `caller`. Returns that of the first.

        It is no recursion: a program may be as deep as the stack allows.
        """
        for frame in reversed(frames):
            known = (self.offsets(frame.f_code) or {}).get(frame.f_lasti)  # the function may have called itself
            if known is None:
                inner = called_by(frame)
                known = self._new(frame.f_code, frame.f_lasti, caller, self._through(inner))
                self.local_tensors.reach(frame, inner, known, self._stored_to)
            caller = known
        return caller

    def offsets(self, code: CodeType) -> Offsets:
        """Returns the sites in the user's code object, `{offset: site}`; None for a library's. Adds it to `by_id`."""
        if id(code) in self.by_id:
            return self.by_id[id(code)]
        key = code.co_filename, code
        if key not in self._codes:
            self._codes[key] = {} if self.is_user(code.co_filename) else None
        if len(self._kept) < MAX_KEPT:
            self._kept.append(code)
            self.by_id[id(code)] = self._codes[key]
        return self._codes[key]

    def site_or_outside(self, frame: FrameType | None) -> int:
        """Returns the site of a frame, or one site for all calls that no user code made, as in a library's threads."""
        site = self.site_of(frame) if not (in_c := self.compiled) or (known := in_c.site(frame)) is None else known
        if site == NOWHERE:
            if self.outside == NOWHERE:
                self.outside = self._write(OUTSIDE, "<module>", (1, 1, 0, 0))
            self.shared.note_thread()
            return self.outside
        if (shared := self.shared).has_second or site not in shared.alone or get_ident() != shared.first:
            shared.note(site)
        return site

    def user_frame(self, frame: FrameType | None) -> FrameType | None:
        """Returns the innermost user frame from `frame` outwards."""
        known = self.user_files
        while frame is not None:
            name = frame.f_code.co_filename
            if known[name] if name in known else self.is_user(name):
                break
            frame = frame.f_back
        return frame

    def stack(self, frame: FrameType | None) -> tuple[int, ...]:
        """Returns the sites of all user frames, the outermost first."""
        sites = []
        while (frame := self.user_frame(frame)) is not None:
            sites.append(self.site_of(frame))
            frame = frame.f_back
        return tuple(reversed(sites))

    def traceback_stack(self, traceback: TracebackType | None) -> tuple[int, ...]:
        """Returns the sites of the user's frames in a traceback, the outermost first."""
        sites: list[int] = []
        while traceback is not None:
            code = traceback.tb_frame.f_code
            offsets = self.offsets(code)
            if offsets is not None:
                site = offsets.get(traceback.tb_lasti)
                caller = traceback.tb_frame.f_back
                sites.append(self._new(code, traceback.tb_lasti, self.site_of(caller)) if site is None else site)
            traceback = traceback.tb_next
        return tuple(sites)

    def decorator(self, code: CodeType, caller: FrameType | None) -> int:
        """Returns the site of the decorator line above a user function."""
        site = (self.offsets(code) or {}).get(DECORATOR)
        return self._new(code, DECORATOR, self.site_of(caller)) if site is None else site

    def at(self, code: CodeType, offset: int, caller: FrameType | None) -> int:
        """Returns the site of any instruction of a user's code object."""
        site = (self.offsets(code) or {}).get(offset)
        return self._new(code, offset, self.site_of(caller)) if site is None else site

    def definition(self, code: CodeType) -> int:
        """Returns the site of the `def` line of a user function, or of the body of a lambda."""
        if code.co_name == "<lambda>":
            return self._placed(code, DEFINITION, extent(code))
        lines = self._lines(code)
        number = code.co_firstlineno  # that of the first decorator
        while number < len(lines) and not lines[number - 1].lstrip().startswith(("def ", "async def ")):
            number += 1
        return self._placed(code, DEFINITION, line_position(lines, number))

    def class_above(self, method: CodeType, name: str) -> int:
        """Returns the site of the `class` line of the class that defines a method."""
        lines = self._lines(method)
        for number in range(min(method.co_firstlineno, len(lines)), 0, -1):
            if _CLASS.match(lines[number - 1]) and _CLASS.match(lines[number - 1])[1] == name:  # type: ignore[index]
                return self._placed(method, CLASS, line_position(lines, number))
        return self.definition(method)

    def returning(self, code: CodeType, offset: int) -> int:
        """Returns the site of an instruction that returns a value."""
        position = position_of(code, offset)
        return self._placed(code, offset, position if position[3] else extent(code))

    def _placed(self, code: CodeType, key: int, position: Position) -> int:
        """Returns the site of `position` in a user function, and remembers it by `key`."""
        offsets = self._writable(code)
        if key not in offsets:
            offsets[key] = self._write(self._remembered(code), code.co_qualname, position)
        return offsets[key]

    def _writable(self, code: CodeType) -> dict[int, int]:
        offsets = self.offsets(code)
        if offsets is None:  # a library's
            offsets = self._codes[code.co_filename, code] = self.by_id[id(code)] = {}
            self._kept.append(code)
            if self.compiled is not None:
                self.compiled.forget_libraries()
        return offsets

    def _lines(self, code: CodeType) -> tuple[str, ...]:
        return lines_of(self.source(self._remembered(code)))

    def of_syntax_error(self, error: SyntaxError) -> int:
        """Returns a site for the text that the parser rejected."""
        line, column = error.lineno or 1, max((error.offset or 1) - 1, 0)
        end_line, end_column = error.end_lineno or line, max((error.end_offset or 0) - 1, column + 1)
        self.remember(str(error.filename))
        return self._write(str(error.filename), "<module>", (line, end_line, column, end_column))

    def is_user(self, filename: str) -> bool:
        """Returns whether a file is the user's, not of Python, of an installed package, or ours."""
        known = self.user_files.get(filename)
        if known is None:
            known = self.user_files[filename] = self._is_of_user(filename)
        return known

    def _is_of_user(self, filename: str) -> bool:
        if filename in self._own:
            return True
        if filename.startswith("<"):
            return is_typed(filename)
        if any(folder in filename for folder in _PACKAGES):
            return False
        return not (is_ours(filename) or filename.startswith(self._libraries))

    def _through(self, inner: CodeType | None) -> str:
        """Returns the name of the Python function through which a line calls torch, or "".

        It is "" for a method of `Tensor`, for a module that is called, and for a function of PyTorch outside a class:
        the op of the recorded call names these already.
        """
        name = "" if inner is None else inner.co_qualname
        if inner is None or name.startswith("Tensor.") or name == "Module._wrapped_call_impl":
            return ""
        is_torchs = f"{os.sep}torch{os.sep}" in inner.co_filename and not self.is_user(inner.co_filename)
        return "" if is_torchs and "." not in name.replace(".<locals>.", "") else name

    def _new(self, code: CodeType, offset: int, caller: int, through: str = "") -> int:
        file = self._remembered(code)
        is_line = offset == DECORATOR
        position = self.first_line(code) if is_line else position_of(code, offset)
        targets = () if is_line else targets_of(code, offset)
        more = targets, caller, through, offset >= 0 and is_of_block(code, offset)
        with self.adding:
            offsets = self._writable(code)
            if offset not in offsets:  # else another thread has added it
                offsets[offset] = self._write(file, code.co_qualname, position, more)
        self._stored_to = targets
        return offsets[offset]

    def _write(self, file: str, function: str, position: Position, more: _More = ((), NOWHERE, "", False)) -> int:
        """Adds a site. Its row is written before any other row can name it, even if Ctrl-C interrupts."""
        targets, caller, through, of_block = more
        with self.adding:
            site = self._count
            self._rows.write(SiteRow, site, file, function, position, targets, optional(caller), through, of_block)
            self._count = site + 1
        return site

    def remember(self, filename: str, text: str | None = None) -> None:
        """Keeps the source text of a file as it is now: it may change while the program runs."""
        if filename not in self._sources:
            if text is None:
                text = source_text(filename)
            self._rows.write(SourceRow, filename, text)
            self._sources[filename] = text

    def _remembered(self, code: CodeType) -> str:
        """Keeps the source text of a code object, and returns the name of the text: that of the file, unless edited."""
        name = code.co_filename if self._edited is None else self._edited.name_of(code)
        self.remember(name, None if self._edited is None else self._edited.text_of(name))
        return name

    def follow_edits(self) -> None:
        """Reads the files that were edited since: code that is compiled from now on has their new text."""
        for file, before, text in self._edits().changed(self._sources):
            self.remember(self._edits().renew(file, before, text), text)

    def name_text(self, file: str, name: str, text: str) -> None:
        """Gives a name to the text that is compiled next as `file`, and to its code; "": such code is a library's."""
        self.user_files[file] = bool(name)
        if name:
            self.remember(self._edits().name(file, name, text), text)

    def _edits(self) -> EditedFiles:
        from tensorlens.tracer.frames.edited_files import EditedFiles  # not above: a script has none

        if self._edited is None:
            self._edited = EditedFiles(self._kept, self._codes)
        return self._edited

    def source(self, filename: str) -> str:
        """Returns the source text of a file, "" if there is none."""
        self.remember(filename)
        return self._sources[filename]

    def first_line(self, code: CodeType) -> Position:
        """Returns the position of the first line of a function: that of its decorator, if it has one."""
        return line_position(self._lines(code), code.co_firstlineno)


_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_CLASS = re.compile(r"\s*class\s+(\w+)")
