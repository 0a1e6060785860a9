"""Makes events of backward passes: only of those that a trace has, because the gradients are written as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tensorlens.journal import rows
from tensorlens.journal.rows import optional
from tensorlens.records import model
from tensorlens.records.model import Access, Gradient, Write
from tensorlens.records.record_code import maker

_gradient: Callable[..., Gradient] = maker(Gradient)


class EndedPass(NamedTuple):
    """A backward pass as it is in the journal, and the index of its first event."""

    row: rows.BackwardRow
    started: int

    def event(self, index: int) -> model.Backward:
        """Returns the event. `index` is that of its end."""
        row = self.row
        return model.Backward(
            index=index,
            op=row.op,
            site=row.site,
            roots=accesses(row.roots),
            gradients=tuple(
                _gradient(tensor, _text(before), _text(after), Write(*write) if write else None, held)
                for tensor, before, after, write, held in row.gradients
            ),
            started=self.started,
            retain_graph=row.retain_graph,
            create_graph=row.create_graph,
            failed=row.failed,
            inputs=row.inputs,
        )


def ended_pass(row: rows.BackwardRow, started: int) -> EndedPass:
    """Returns the pass of a row.

    Raises:
        ValueError: a tensor whose gradient was requested has no number.
    """
    if any(number < 0 for number in row.inputs):
        raise ValueError("a tensor has no number")
    return EndedPass(row, started)


def accesses(flat: rows.AccessRun) -> tuple[Access, ...]:
    """Returns the accesses of a run of ints."""
    pairs = zip(flat[::2], flat[1::2], strict=True)
    return tuple(Access(tensor, optional(version)) for tensor, version in pairs)


def _text(values: Any) -> str | None:
    return None if values is None else rows.values_text(values)
