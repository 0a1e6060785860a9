"""Notes which arrays are at hand where answers (n, 1) leave torch: those of one dimension with n elements."""

from __future__ import annotations

from types import FrameType

import torch

from tensorlens.records.training_arrays import ArraysBeside
from tensorlens.tracer.frames.local_tensors import names_in
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.training.rare_looks import RareLooks

_MOST_NAMES = 16


class AnswersLeaving:
    """Looks at the names of a frame: the first times that a line makes such an array, the 8th time and so on."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._looks = RareLooks()

    def look(self, answers: object, frame: FrameType | None) -> None:
        """Writes a fact about the call that has ended, if there are such arrays."""
        if frame is None or type(answers) is not torch.Tensor or answers.dim() != 2:
            return
        rows, width = answers.shape
        if width != 1 or rows < 2 or not self._looks.is_due(frame):
            return
        with names_in(frame) as space:
            names = {name: value for name, value in (space or {}).items() if _is_row(value, rows)}
        for name in frame.f_code.co_names:
            if _is_row(frame.f_globals.get(name), rows):
                names.setdefault(name, None)
        if names:
            self._recorder.rows.write_fact(ArraysBeside, rows, tuple(list(names)[:_MOST_NAMES]))


def _is_row(value: object, rows: int) -> bool:
    return (type(value).__module__, type(value).__name__) == ("numpy", "ndarray") and value.shape == (rows,)  # type: ignore[attr-defined]
