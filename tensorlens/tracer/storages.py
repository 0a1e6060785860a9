"""Writes to storages, which move no version and are no call of torch's.

`PATCHES` goes with the table in `patches.py`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch

from tensorlens.tracer.recorder import Recorder

Wrap = Callable[[Recorder, Any], Any]


def _writes(recorder: Recorder, original: Any) -> Any:
    """A method of a storage that writes to it: what has changed before is another line's."""

    @functools.wraps(original)
    def write(self: Any, *args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        if recorder.paused or not recorder.sites.is_user(frame.f_code.co_filename):
            return original(self, *args, **kwargs)
        recorder.untracked.look(frame)
        result = original(self, *args, **kwargs)
        recorder.untracked.stored(frame)
        return result

    return write


PATCHES: tuple[tuple[Any, str, Wrap], ...] = tuple(
    (torch.UntypedStorage, name, _writes) for name in ("fill_", "copy_", "__setitem__")
)
