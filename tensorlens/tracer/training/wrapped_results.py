"""Compares results of 8 bits with the exact ones: sums, differences and products of bytes wrap around."""

from __future__ import annotations

from typing import Any

import torch

from tensorlens.records.training_samples import WrappedAround
from tensorlens.tracer.isolation.guard import ErrorGuard
from tensorlens.tracer.isolation.muted_dispatch import MutedDispatch
from tensorlens.tracer.isolation.readable import is_measurable
from tensorlens.tracer.isolation.torch_originals import count_nonzero, not_equal, numel, to
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.recording.services import Called
from tensorlens.tracer.training.rare_looks import RareLooks

_MOST_ELEMENTS = 1 << 21
_SMALL = (torch.uint8, torch.int8)
_ARITHMETIC = frozenset("add radd sub rsub mul rmul pow square neg subtract multiply negative".split())


class WrappedResults:
    """Looks at such results: the first times that a line runs, the 8th time, the 16th and so on."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._looks = RareLooks()

    def begin(self) -> None:
        """Has the recorder give such calls here."""
        self._recorder.looks_at_small = self.is_small
        self._recorder.look_at_small = self.look

    def is_small(self, function: Any, result: torch.Tensor) -> bool:
        """Returns whether a call may wrap around."""
        return result.dtype in _SMALL and str(getattr(function, "__name__", "")).strip("_") in _ARITHMETIC

    def look(self, called: Called, result: object) -> None:
        """Writes a fact if the result of a call that has ended is not exact."""
        function, frame = called[0], called[2]
        arguments: tuple[tuple[object, ...], dict[str, object]] = called[5] or ((), {})
        args, kwargs = arguments
        if type(result) is not torch.Tensor or frame is None or kwargs.get("out") is not None:
            return
        with ErrorGuard(self._recorder, "a result", frame), torch._C.DisableTorchFunction(), MutedDispatch():
            is_plain = is_measurable(result) and 0 < numel(result) <= _MOST_ELEMENTS
            if not self.is_small(function, result) or not is_plain or not self._looks.is_due(frame):
                return
            with self._recorder.quiet(), torch.no_grad():
                exact = function(*map(_wide, args), **{name: _wide(value) for name, value in kwargs.items()})
                wrapped = int(count_nonzero(not_equal(exact, to(result, torch.int64))))
                if wrapped:
                    ends = int(exact.min()), int(exact.max())
                    self._recorder.rows.write_fact(WrappedAround, numel(result), wrapped, *ends)


def _wide(value: object) -> object:
    is_whole = isinstance(value, torch.Tensor) and not value.dtype.is_floating_point and not value.dtype.is_complex
    return to(value, torch.int64) if is_whole and isinstance(value, torch.Tensor) else value
