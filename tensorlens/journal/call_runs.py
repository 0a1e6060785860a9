"""Compact calls in a row as bytes, and what reads a call in either form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from tensorlens.journal import compact_calls
from tensorlens.journal.compact_calls import INT
from tensorlens.journal.rows import CallRow

CompactCall = tuple[int, ...]  # see `CallTemplateRow`
Call = CompactCall | CallRow
Item = tuple[int, Any, str]  # index, a call or another event, the optimizer step that was running

_TAIL = compact_calls.TAIL
_tensor_of = itemgetter(0)  # of a state


@dataclass(slots=True)
class CallRun:
    """Compact calls in a row, from number `start` of the run on."""

    index: int  # of the call with number 0
    calls: bytes
    ends: bytes  # where each call ends: see `compact_calls`
    within: str
    start: int = 0

    @property
    def stop(self) -> int:
        return len(self.ends) // 4

    @property
    def size(self) -> int:
        """The bytes of the whole calls."""
        ends = memoryview(self.ends).cast("I")
        return INT * ends[-1] if ends else 0

    def templates(self) -> list[int]:
        """Returns the template of each call."""
        numbers = memoryview(self.calls[: self.size]).cast("q")
        return [numbers[first] for first in compact_calls.starts(self.ends, self.start, self.stop)]

    def items(self) -> Iterator[Item]:
        numbers = memoryview(self.calls[: self.size]).cast("q").tolist()
        ends = memoryview(self.ends).cast("I").tolist()
        first = ends[self.start - 1] if self.start else 0
        for index, end in enumerate(ends[self.start :], self.index + self.start):
            yield index, tuple(numbers[first:end]), self.within
            first = end


def tensors_of(call: Call) -> tuple[int, ...]:
    """Returns every tensor that a call names; NONE may be among them."""
    if isinstance(call, CallRow):
        return (*call.inputs[::2], *results_of(call))
    return (*call[1 : 1 - _TAIL : 2], call[1 - _TAIL])


def results_of(call: CallRow) -> tuple[int, ...]:
    """Returns the tensors that a call made, returned or changed."""
    _, _, _, outputs, writes, states, *_ = call
    return (*outputs[::2], *writes[::3], *map(_tensor_of, states))
