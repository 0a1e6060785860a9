"""Staying out of what the program itself can see: its warnings and its tracebacks.

With a mode active, a frame of ours stands between the user's line and torch. Warnings would be attributed to that frame
(and filtered by its line, not the user's), and tracebacks would show it. Both are put right here.
"""

from __future__ import annotations

import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType, TracebackType
from typing import Any

import torch.overrides

from tensorlens.journal.rows import NONE, NOTICE, VALUES
from tensorlens.tracer.frames.frame_values import values_read
from tensorlens.tracer.isolation.guard import ErrorGuard
from tensorlens.tracer.isolation.hidden_frames import is_ours
from tensorlens.tracer.recording.recorder import Recorder

_OVERRIDES = torch.overrides.__file__
_REACH = 4  # frames between a torch function and the handler that it leads to, at the most
_started_by: list[CodeType] = []  # what the process runs that we start: `python -c`, without a file of ours
_FILTER = ("always", None, Warning, re.compile(r"tensorlens\.(tracer\.|session)"), 0)


def hide(code: CodeType) -> None:
    """Count frames that run `code` as ours, too."""
    _started_by.append(code)


@contextmanager
def warnings_and_tracebacks_cleaned(recorder: Recorder) -> Iterator[None]:
    """While this lasts, warnings name the user's line and tracebacks leave our frames out."""
    with _warnings_reattributed(recorder), _frames_hidden(recorder):
        yield


# --- warnings -------------------------------------------------------------------------------------------------------


def _known_to_torchscript(replacement: Any, original: Any) -> Callable[[], None]:
    """Makes TorchScript take a replacement for the operator that the original function stands for: it goes by identity
    and would compile ours instead. Returns what undoes it."""
    from torch.jit import _builtins

    op = next((op for function, op in _builtins._builtin_ops if function is original), None)
    if op is None:
        return lambda: None
    pair = (replacement, op)
    _builtins._builtin_ops.append(pair)  # of these the table is built when it is first asked for
    if _builtins._builtin_table is not None:
        _builtins._builtin_table[id(replacement)] = op

    def undo() -> None:
        _builtins._builtin_ops[:] = [known for known in _builtins._builtin_ops if known is not pair]
        if _builtins._builtin_table is not None:
            _builtins._builtin_table.pop(id(replacement), None)

    return undo


@contextmanager
def _warnings_reattributed(recorder: Recorder) -> Iterator[None]:
    show = warnings._showwarnmsg  # type: ignore[attr-defined]
    changers = {name: getattr(warnings, name) for name in ("filterwarnings", "simplefilter", "resetwarnings")}
    enter = warnings.catch_warnings.__enter__
    leave = warnings.catch_warnings.__exit__

    def keeping_ours_first(change: Any) -> Any:
        def changed(*args: Any, **kwargs: Any) -> Any:
            result = change(*args, **kwargs)
            with ErrorGuard(recorder, "a change of `warnings.filters`"):
                _put_filter_first()
            return result

        return changed

    warn = warnings.warn
    warnings.warn = _counting_visible_frames(recorder, warn)
    scripted = _known_to_torchscript(warnings.warn, warn)
    warnings._showwarnmsg = _reattributing(recorder, show)  # type: ignore[attr-defined]
    for name, change in changers.items():
        setattr(warnings, name, keeping_ours_first(change))
    warnings.catch_warnings.__enter__ = keeping_ours_first(enter)  # type: ignore[method-assign]
    _put_filter_first()
    try:
        yield
    finally:
        warnings.warn = warn
        scripted()
        warnings._showwarnmsg = show  # type: ignore[attr-defined]
        for name, change in changers.items():
            setattr(warnings, name, change)
        warnings.catch_warnings.__enter__ = enter  # type: ignore[method-assign]
        warnings.catch_warnings.__exit__ = leave  # type: ignore[method-assign]
        while _FILTER in warnings.filters:
            warnings.filters.remove(_FILTER)  # type: ignore[attr-defined]
        warnings._filters_mutated()  # type: ignore[attr-defined]


def _reattributing(recorder: Recorder, show: Any) -> Any:
    """`warnings._showwarnmsg` that gives what was warned of at our own line again, at the line that called torch."""
    reissued: list[Any] = []  # the warning being given again, which is noted already

    def reattribute(message: Any) -> None:
        here = sys._getframe(1)
        frame: FrameType | None = here
        ours = is_ours(message.filename)
        with ErrorGuard(recorder, "where a warning is from"):
            frame = _calling_frame(here) if ours else here
        if frame is not None and (ours or not reissued):
            with ErrorGuard(recorder, "a warning"):
                _note(recorder, message, frame)
        if not ours or frame is here:
            show(message)
        elif frame is not None:
            reissued.append(message)
            try:
                _reissue(message, frame)
            finally:
                reissued.pop()

    return reattribute


def _counting_visible_frames(recorder: Recorder, warn: Any) -> Any:
    """`warnings.warn` whose `stacklevel` counts as it would without our frames."""

    def warn_(message: Any, category: Any = None, stacklevel: int = 1, source: Any = None, **more: Any) -> None:
        level = stacklevel
        with ErrorGuard(recorder, "where a warning points"):
            level = _level(sys._getframe(1), stacklevel)
        warn(message, category, max(level, 1) + 1, source, **more)

    return warn_


def _level(frame: FrameType | None, stacklevel: int) -> int:
    """How many frames, ours included, lead from `frame` to the one that is meant without ours."""
    frames: list[tuple[FrameType, None]] = []
    while frame is not None:
        frames.append((frame, None))
        frame = frame.f_back
    visible = {id(entry[0]) for entry in _without_ours(frames, reverse=True)}
    level = wanted = 0
    for entry, _ in frames:
        level += 1
        wanted += id(entry) in visible
        if wanted >= stacklevel:
            break
    return level


def _put_filter_first() -> None:
    """Warnings at our own frame must all reach `reattribute`, whatever filters the program sets."""
    filters: Any = warnings.filters
    if not filters or filters[0] is not _FILTER:
        while _FILTER in filters:
            filters.remove(_FILTER)
        filters.insert(0, _FILTER)
        warnings._filters_mutated()  # type: ignore[attr-defined]


def _reissue(message: Any, frame: FrameType) -> None:
    """Give the warning again, as if from the line that called torch; the program's own filters decide on it."""
    warnings.warn_explicit(
        message.message,
        message.category,
        frame.f_code.co_filename,
        frame.f_lineno,
        frame.f_globals.get("__name__") or "<unknown>",
        frame.f_globals.setdefault("__warningregistry__", {}),
        None,
        message.source,
    )


def _calling_frame(frame: FrameType | None) -> FrameType | None:
    """The frame that called torch: past ours, past `handle_torch_function` and the function that it stands for."""
    while frame is not None and not _is_handler(frame):
        frame = frame.f_back
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is not None and frame.f_code.co_filename == _OVERRIDES:
        frame = frame.f_back
        frame = frame.f_back if frame is not None else None
    return frame


def _is_handler(frame: FrameType) -> bool:
    return is_ours(frame.f_code.co_filename) and frame.f_code.co_filename != __file__


def _note(recorder: Recorder, message: Any, frame: FrameType | None) -> None:
    if not recorder.paused:
        recorder.last_warning = str(message.message)
        site = recorder.sites.site_of(frame)
        recorder.rows.append((NOTICE, site, message.category.__name__, recorder.last_warning, None))
        user = recorder.sites.user_frame(frame)
        if user is not None and site not in recorder.valued:
            recorder.valued.add(site)
            values = values_read(recorder.sites, user, user.f_lasti)
            if values:
                recorder.rows.append((VALUES, NONE, values))


# --- tracebacks -----------------------------------------------------------------------------------------------------


@contextmanager
def _frames_hidden(recorder: Recorder) -> Iterator[None]:
    """The traceback module walks over our frames without showing them (anomaly mode uses it for its own text)."""
    names = [name for name in ("walk_tb", "walk_stack", "_walk_tb_with_full_positions") if hasattr(traceback, name)]
    originals = {name: getattr(traceback, name) for name in names}

    def hiding(walk: Any) -> Any:
        def walked(*args: Any) -> Iterator[Any]:
            if args and args[0] is None and walk is originals.get("walk_stack"):
                args = (sys._getframe(1).f_back.f_back, *args[1:])  # type: ignore[union-attr]
            entries = list(walk(*args))
            with ErrorGuard(recorder, "a traceback"):
                return _without_ours(entries, reverse=walk is originals.get("walk_stack"))
            return iter(entries)

        return walked

    for name in names:
        setattr(traceback, name, hiding(originals[name]))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(traceback, name, original)


def _without_ours(entries: list[Any], reverse: bool) -> Iterator[Any]:
    """`entries` of (frame, position), the outermost first, less our frames and what torch adds to reach a mode: the
    first, interrupted run of the function that then runs again inside the handler."""
    if reverse:
        return iter(list(_without_ours(entries[::-1], False))[::-1])
    kept: list[Any] = []
    came_through = False
    for entry in entries:
        code = entry[0].f_code
        if code in _started_by:
            continue
        if is_ours(code.co_filename):
            came_through = came_through or code.co_name == "__torch_function__"
            continue
        if came_through:
            _drop_interrupted(kept, code)
        came_through = False
        kept.append(entry)
    if came_through:
        _drop_interrupted(kept, None)
    return iter(kept)


def _drop_interrupted(kept: list[Any], code: Any) -> None:
    """Take the frames that led to our handler off the end of `kept`; `code` is what runs inside it."""
    through_python = bool(kept) and kept[-1][0].f_code.co_filename == _OVERRIDES
    for distance in range(1, min(_REACH if through_python else 1, len(kept)) + 1):
        if kept[-distance][0].f_code is code:
            del kept[-distance:]
            return
    if through_python:
        del kept[-2:]


def strip(error: BaseException, seen: set[int] | None = None) -> None:
    """Take our frames out of an exception's traceback, and of those of its causes and contexts."""
    seen = set() if seen is None else seen
    if id(error) in seen:
        return
    seen.add(id(error))
    error.__traceback__ = strip_traceback(error.__traceback__)
    for other in (error.__cause__, error.__context__, *getattr(error, "exceptions", ())):
        if isinstance(other, BaseException):
            strip(other, seen)


def strip_traceback(traceback_: TracebackType | None) -> TracebackType | None:
    entries = []
    while traceback_ is not None:
        entries.append((traceback_.tb_frame, traceback_))
        traceback_ = traceback_.tb_next
    kept: list[TracebackType] = [entry[1] for entry in _without_ours(entries, False)]
    if not kept:
        return None
    for entry, following in zip(kept, [*kept[1:], None], strict=True):
        entry.tb_next = following
    return kept[0]
