"""Finds what a running frame called."""

from __future__ import annotations

import sys
from types import CodeType, FrameType

from tensorlens.tracer.isolation.hidden_frames import is_ours


def called_by(frame: FrameType) -> CodeType | None:
    """Returns the user's or a library's code that a running frame called; None if it called PyTorch's C++ code."""
    inner: FrameType | None = sys._getframe(1)
    while inner is not None and inner.f_back is not frame:
        inner = inner.f_back
    return None if inner is None or is_ours(inner.f_code.co_filename) else inner.f_code
