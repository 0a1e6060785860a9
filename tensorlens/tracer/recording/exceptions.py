"""Writes the rows of exceptions that reach the user: those of torch calls, and the one that ends the run."""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType

import torch.utils.checkpoint

from tensorlens.journal.rows import ArgumentsRow, FailureRow, ValuesRow
from tensorlens.tracer.frames.failing_call import failing_call, named_arguments
from tensorlens.tracer.frames.frame_values import plain_values, tensors_read
from tensorlens.tracer.isolation.guard import Function, safe_text
from tensorlens.tracer.recording import ops
from tensorlens.tracer.recording.tensor_states import TensorStates
from tensorlens.tracer.recording.tensor_text import token_of

MAX_FAILURES = 200
_STOP = torch.utils.checkpoint._StopRecomputationError  # ends a recomputation early; not a failure


class ExceptionRows(TensorStates):
    """Writes each exception once. `failures` counts the FAILURE rows."""

    def __init__(self, own_files: tuple[str, ...] = ()) -> None:
        super().__init__(own_files)
        self.failures = 0
        self.last_failure: tuple[int, object] = (0, None)  # (id, token) of the last exception

    def fail(
        self,
        error: BaseException,
        called: Function | str,
        inputs: Sequence[int],
        frame: FrameType | None,
        saved: tuple[tuple[object, ...], ...] = (),
    ) -> None:
        """Writes a FAILURE row for an exception, once. `called` is the function that raised it, or its name."""
        try:
            if not self._has_noted(error) and self.failures < MAX_FAILURES and not isinstance(error, _STOP):
                op = called if isinstance(called, str) else ops.name_of(called)
                self._write_failure(error, op, tuple(inputs), frame, saved)
        except Exception as error:  # ours, never the user's
            self.internal_error("an exception", error, frame)

    def _write_failure(
        self,
        error: BaseException,
        op: str,
        inputs: tuple[int, ...],
        frame: FrameType | None,
        saved: tuple[tuple[object, ...], ...],
    ) -> None:
        stack = self.sites.stack(frame)
        inside = self.sites.traceback_stack(error.__traceback__)  # user code that the call ran, as a hook
        site = stack[-1] if stack else None
        self.rows.write(
            FailureRow, type(error).__name__, safe_text(error), op or None, inputs, saved, (*stack, *inside), site
        )
        self.failures += 1
        self.last_failure = (id(error), token_of(error))

    def note_ending(self, error: BaseException) -> int:
        """Returns the number of the FAILURE row of the exception that ends the run. Writes it if no call raised it."""
        if not self._has_noted(error):
            stack = self.sites.traceback_stack(error.__traceback__)
            if isinstance(error, SyntaxError) and error.filename and self.sites.is_user(error.filename):
                stack = (*stack, self.sites.of_syntax_error(error))
            site = stack[-1] if stack else None
            op, tensors = failing_call(self.sites, error.__traceback__)
            if not tensors and type(error) is RuntimeError:
                tensors = tensors_read(self.sites, error.__traceback__)
            inputs = tuple(self.accesses(tensors))
            self.rows.write(FailureRow, type(error).__name__, safe_text(error), op or None, inputs, (), stack, site)
            self.last_failure = (id(error), token_of(error))
            self.failures += 1
        arguments = [(name, self.tensor_ids.id_of(t)) for name, t in named_arguments(self.sites, error.__traceback__)]
        if arguments:
            self.rows.write(ArgumentsRow, self.failures - 1, tuple(arguments))
        values = plain_values(self.sites, error.__traceback__)
        if values:
            self.rows.write(ValuesRow, self.failures - 1, values)
        return self.failures - 1

    def _has_noted(self, error: BaseException) -> bool:
        return id(error) == self.last_failure[0] and token_of(error) is self.last_failure[1]
