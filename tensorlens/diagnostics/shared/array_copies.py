"""Finds where the memory of a NumPy array became that of tensors that were kept, and copies it there."""

from __future__ import annotations

from collections.abc import Sequence

from tensorlens.analysis.saved_tensors import Save
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits.expressions import with_call
from tensorlens.diagnostics.shared.wording import fix
from tensorlens.records.model import Call
from tensorlens.records.report import Edit, Fix

ENTERING = frozenset({"from_numpy", "as_tensor", "asarray", "from_dlpack"})
"""Functions that make a tensor in the memory of an array."""


def entries(facts: TraceIndex, saves: Sequence[Save]) -> list[Call]:
    """Returns the calls that made the kept tensors in the memory of arrays, one of each line."""
    found: dict[int, Call] = {}
    for save in saves:
        made = None if save.tensor is None else _entry(facts, save.tensor)
        if made is not None:
            found.setdefault(made.site, made)
    return list(found.values())


def copies_at_entry(facts: TraceIndex, saves: Sequence[Save], writes: Sequence[int]) -> Fix | None:
    """Copies what each of these calls makes, if no call reads the memory after the write: it was written for itself.

    `writes` has, for each save, the event before which the memory was written.
    """
    last = _last_reads(facts)
    for save, written in zip(saves, writes, strict=True):
        if save.tensor is None or _entry(facts, save.tensor) is None:
            return None
        if last.get(facts.tensor(save.tensor).storage, -1) >= written:
            return None
    calls = entries(facts, saves)
    made = [with_call(facts, facts.trace.sites[call.site].span, "clone") for call in calls]
    edits: list[Edit] = [edit for edit in made if edit is not None]
    if not edits or len(edits) != len(made):
        return None
    lines = sorted(edit.span.line for edit in edits)
    where = f" (lines {', '.join(map(str, lines))})" if len(lines) > 1 else ""
    return fix(
        f"let autograd have a copy{where}: later writes then do not reach it", *edits, place=facts.span(calls[0].site)
    )


def _entry(facts: TraceIndex, number: int) -> Call | None:
    base = facts.tensor(number).base
    made = facts.creator(number if base is None else base)
    return made if made is not None and made.op.rpartition(".")[2] in ENTERING else None


def _last_reads(facts: TraceIndex) -> dict[int | None, int]:
    """Returns the last call that reads each storage."""
    return {facts.tensor(access.tensor).storage: call.index for call in facts.calls for access in call.inputs}
