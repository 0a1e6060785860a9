"""Makes warnings name the user's line, and makes the `traceback` module skip this package's frames.

While the recorder is active, its frames are between the user's line and PyTorch. Python would attribute a warning of
PyTorch to such a frame and filter it by that frame's line. A traceback would show the frame.

The patches of this module are no `observe` patches: one more frame would change what they count. They guard themselves.
"""

from __future__ import annotations

import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import cast

from tensorlens.journal.rows import NoticeRow, ValuesRow, optional
from tensorlens.tracer.frames.frame_values import values_read
from tensorlens.tracer.isolation.guard import ErrorGuard, Function
from tensorlens.tracer.isolation.hidden_frames import OVERRIDES, is_ours, visible_frames
from tensorlens.tracer.isolation.patch import Patch, existing, patched
from tensorlens.tracer.recording.recorder import Recorder

_FILTER = ("always", None, Warning, re.compile(r"tensorlens\.(tracer\.|session)"), 0)


@contextmanager
def warnings_and_tracebacks_cleaned(recorder: Recorder) -> Iterator[None]:
    """While this lasts, warnings name the user's line and tracebacks leave this package's frames out."""
    warn = warnings.warn
    with patched(PATCHES, recorder), _known_to_torchscript(warnings.warn, warn):
        _put_filter_first()
        try:
            yield
        finally:
            _remove_filter()
            warnings._filters_mutated()  # type: ignore[attr-defined]


@contextmanager
def _known_to_torchscript(replacement: Function, original: Function) -> Iterator[None]:
    """Makes TorchScript compile a replacement as the operator of the original. It recognizes functions by identity."""
    from torch.jit import _builtins

    op = next((op for function, op in _builtins._builtin_ops if function is original), None)
    if op is None:
        yield
        return
    pair = (replacement, op)
    _builtins._builtin_ops.append(pair)  # the table is built from these when it is first used
    if _builtins._builtin_table is not None:
        _builtins._builtin_table[id(replacement)] = op
    try:
        yield
    finally:
        _builtins._builtin_ops[:] = [known for known in _builtins._builtin_ops if known is not pair]
        if _builtins._builtin_table is not None:
            _builtins._builtin_table.pop(id(replacement), None)


# --- warnings -------------------------------------------------------------------------------------------------------


def _keep_filter_first(recorder: Recorder, change: Function) -> Function:
    """Patches a function that changes `warnings.filters`."""

    def changed(*args: object, **kwargs: object) -> object:
        result = change(*args, **kwargs)
        with ErrorGuard(recorder, "a change of `warnings.filters`"):
            _put_filter_first()
        return result

    return changed


def _put_filter_first() -> None:
    """Lets every warning at a line of this package reach `reattribute`, whatever filters the program sets."""
    filters = cast("list[object]", warnings.filters)
    if not filters or filters[0] is not _FILTER:
        _remove_filter()
        filters.insert(0, _FILTER)
        warnings._filters_mutated()  # type: ignore[attr-defined]


def _remove_filter() -> None:
    filters = cast("list[object]", warnings.filters)
    while _FILTER in filters:
        filters.remove(_FILTER)


def _reattribute(recorder: Recorder, show: Callable[[warnings.WarningMessage], None]) -> Function:
    """Patches `warnings._showwarnmsg`: a warning at a line of this package is issued again at the user's line."""
    reissued: list[warnings.WarningMessage] = []  # the warning that is being issued again and is noted already

    def reattribute(message: warnings.WarningMessage) -> None:
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


def _count_visible_frames(recorder: Recorder, warn: Function) -> Function:
    """Patches `warnings.warn`: `stacklevel` counts as it would without this package's frames."""

    def warn_(
        message: object, category: object = None, stacklevel: int = 1, source: object = None, **more: object
    ) -> None:
        level = stacklevel
        with ErrorGuard(recorder, "where a warning points"):
            level = _level(sys._getframe(1), stacklevel)
        warn(message, category, max(level, 1) + 1, source, **more)

    return warn_


def _level(frame: FrameType | None, stacklevel: int) -> int:
    """Returns how many frames, hidden ones included, lead from `frame` to the one that `stacklevel` means."""
    frames: list[tuple[FrameType, None]] = []
    while frame is not None:
        frames.append((frame, None))
        frame = frame.f_back
    visible = {id(shown) for shown, _ in visible_frames(frames[::-1])}
    level = wanted = 0
    for entry, _ in frames:
        level += 1
        wanted += id(entry) in visible
        if wanted >= stacklevel:
            break
    return level


def _reissue(message: warnings.WarningMessage, frame: FrameType) -> None:
    """Issues a warning again at the line that called PyTorch. The program's own filters apply."""
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
    """Returns the frame that called PyTorch: past the recorder's, past `handle_torch_function` and its function."""
    called: FrameType | None = None  # by this package
    while frame is not None and not _is_handler(frame):
        called, frame = frame, frame.f_back
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is not None and frame.f_code.co_filename == OVERRIDES:
        frame = frame.f_back
        frame = frame.f_back if frame is not None else None
    elif frame is not None and called is not None and frame.f_code is called.f_code:
        frame = frame.f_back  # a function of PyTorch that gave its call to the compiled mode
    return frame


def _is_handler(frame: FrameType) -> bool:
    """Returns whether a frame is this package's and not `warn_` or `reattribute`, which are in this file."""
    return is_ours(frame.f_code.co_filename) and frame.f_code.co_filename != __file__


def _note(recorder: Recorder, message: warnings.WarningMessage, frame: FrameType | None) -> None:
    """Writes the NOTICE row of a warning and, once per site, the plain values that the user's line read."""
    if not recorder.paused:
        recorder.last_warning = str(message.message)
        site = recorder.sites.site_of(frame)
        recorder.rows.write(NoticeRow, optional(site), message.category.__name__, recorder.last_warning, None)
        user = recorder.sites.user_frame(frame)
        if user is not None and site not in recorder.valued:
            recorder.valued.add(site)
            values = values_read(recorder.sites, user, user.f_lasti)
            if values:
                recorder.rows.write(ValuesRow, None, values)


# --- tracebacks -----------------------------------------------------------------------------------------------------

Entry = tuple[FrameType, object]


def _hide_frames(recorder: Recorder, walk: Callable[..., Iterator[Entry]]) -> Function:
    """Patches a function of `traceback` that walks frames, the outermost first."""

    def walked(*args: object) -> Iterator[Entry]:
        entries = list(walk(*args))
        with ErrorGuard(recorder, "a traceback"):
            return iter(visible_frames(entries))
        return iter(entries)

    return walked


def _hide_stack_frames(recorder: Recorder, walk: Callable[..., Iterator[Entry]]) -> Function:
    """Patches `traceback.walk_stack`, which walks the innermost frame first and looks for its caller if given None."""

    def walked(*args: object) -> Iterator[Entry]:
        if args and args[0] is None:
            args = (sys._getframe(1).f_back.f_back, *args[1:])  # type: ignore[union-attr]
        entries = list(walk(*args))
        with ErrorGuard(recorder, "a traceback"):
            return iter(visible_frames(entries[::-1])[::-1])
        return iter(entries)

    return walked


PATCHES: tuple[Patch[Recorder], ...] = existing(
    (
        Patch(warnings, "warn", _count_visible_frames),
        Patch(warnings, "_showwarnmsg", _reattribute),
        Patch(warnings, "filterwarnings", _keep_filter_first),
        Patch(warnings, "simplefilter", _keep_filter_first),
        Patch(warnings, "resetwarnings", _keep_filter_first),
        Patch(warnings.catch_warnings, "__enter__", _keep_filter_first),
        Patch(traceback, "walk_tb", _hide_frames),
        Patch(traceback, "_walk_tb_with_full_positions", _hide_frames),
        Patch(traceback, "walk_stack", _hide_stack_frames),
    )
)
