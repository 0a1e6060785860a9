"""The fixture `lens`: asks what autograd did in the running test, and makes assertions about it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
import torch

from tensorlens.diagnostics import report_on
from tensorlens.records.error_messages import entry
from tensorlens.records.model import Trace
from tensorlens.records.report import Diagnostic, Report
from tensorlens.testing.compared_functions import differing_gradients
from tensorlens.testing.item_recording import RECORDING, ItemRecording
from tensorlens.testing.shared_storage import shared_pairs
from tensorlens.testing.trained_parameters import untrained_parameters


class Lens:
    """Answers what autograd has done in a test so far, from the setup of its fixtures on."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item

    def report(self) -> Report:
        """Returns the report of the test so far."""
        return report_on(self._trace(sys._getframe(1)))

    @property
    def findings(self) -> tuple[Diagnostic, ...]:
        """The findings so far: errors first, then warnings and notes."""
        found = report_on(self._trace(sys._getframe(1))).diagnostics
        return tuple(each for each in found if entry(each.code) is not None)

    def assert_all_trained(self, model: torch.nn.Module) -> None:
        """Asserts that each parameter that requires grad has got a gradient that is finite and not all zero, in one
        backward pass of this test at least. If an optimizer has made a step, one holds the parameter, and has moved it.

        Raises:
            AssertionError: the message names each other parameter, and the line that is the reason.
        """
        __tracebackhide__ = True
        trace = self._trace(sys._getframe(1))
        problems = untrained_parameters(trace, self._recording, model)
        if problems:
            count = sum(parameter.requires_grad for parameter in model.parameters())
            raise AssertionError(_listed(f"{len(problems)} of {count} parameters are not trained", problems))

    def assert_same_gradients(
        self, first: Callable[[], torch.Tensor], second: Callable[[], torch.Tensor], rtol: float | None = None
    ) -> None:
        """Asserts that the losses that two functions return have the same gradients. Both functions run, from the same
        random state, with backward. Each leaf that either loss is computed from counts; a missing gradient is zero.

        `rtol` is the relative difference that is allowed, of the largest value of a gradient; without it, what rounding
        explains in the leaf's dtype. `.grad` is as before afterwards.

        Raises:
            AssertionError: the message has the leaves whose gradients differ, with both values.
        """
        __tracebackhide__ = True
        frame = sys._getframe(1)
        problems = differing_gradients(first, second, rtol, self._recording, lambda: self._trace(frame))
        if problems:
            raise AssertionError(_listed("the gradients of the two functions differ", problems))

    def assert_no_shared_storage(self, one: object, other: object) -> None:
        """Asserts that no tensor of `one` shares storage with a tensor of `other`. Each is a tensor, a module, an
        optimizer with its state, or a dict, list or tuple of these.

        Raises:
            AssertionError: the message names both tensors, and the line from which they share.
        """
        __tracebackhide__ = True
        problems = shared_pairs(one, other, self._recording, self._trace(sys._getframe(1)))
        if problems:
            raise AssertionError(_listed("storage is shared", problems))

    @property
    def _recording(self) -> ItemRecording:
        recording = self._item.stash.get(RECORDING, None)
        if recording is None or not recording.is_running:
            raise RuntimeError("tensorlens does not record this test: the fixture `lens` works while a test runs")
        return recording

    def _trace(self, frame: FrameType) -> Trace:
        """Returns what is recorded so far, with the names at a frame."""
        names: dict[str, Any] = {**getattr(self._item, "funcargs", {}), **frame.f_locals}
        return self._recording.snapshot({name: value for name, value in names.items() if value is not self})


_SHOWN = 10


def _listed(head: str, problems: list[str]) -> str:
    more = [f"and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
    return "\n  ".join([f"{head}:", *problems[:_SHOWN], *more])
