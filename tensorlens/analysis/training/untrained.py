"""Finds the parameters that never had a gradient, and where the path of each to a loss ends."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Literal

from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.parameters_without_gradient import PathEnd, path_ends, unused_path_ends
from tensorlens.analysis.training.run_summary import had_gradient, is_complete
from tensorlens.analysis.training.timeline import DATA_SET, FLAG_SETS, GRAD_READ, GRAD_SET
from tensorlens.records.model import Backward, Call, Gap

_NO_USE = frozenset((GRAD_READ, GRAD_SET, DATA_SET, "Tensor.data.__get__", *FLAG_SETS, "nn.Parameter"))
_LIMITING = frozenset(("clamp", "clamp_min", "clamp_max", "clip"))


@dataclass(frozen=True, slots=True)
class Untrained:
    """A parameter that requires grad and never had a gradient.

    `kind` is that of the `PathEnd`, "unrecorded": the script used it only where gradients are off, "never": no recorded
    call uses it, or "": the trace does not establish why.
    """

    row: ParameterRow
    kind: Literal["cut", "late", "swallowed", "unused", "unasked", "unrecorded", "never", ""]
    call: Call | None  # at which the path ends
    end: PathEnd | None = None


@lru_cache(maxsize=1)
def untrained(training: MeasuredTraining) -> tuple[Untrained, ...]:
    """Finds these parameters; none if the run had no backward pass, ended with an error or is not recorded as a
    whole."""
    facts, timeline = training.facts, training.training
    passes = [each for each in facts.backwards if not each.failed and each.op != "autograd.grad"]
    hidden = timeline.is_hidden or facts.trace.inspection.switches
    if not passes or hidden or facts.trace.script.failure is not None:
        return ()
    asked = {number for each in facts.backwards for number in each.inputs}
    known = asked | had_gradient(timeline)
    rows = {row.tensor: row for row in training.rows if _has_none(row) and row.tensor not in known}
    rows = {number: row for number, row in rows.items() if not _is_set(training, row, passes)}
    ends = {end.number: end for end in path_ends(timeline, set(rows))}
    has_gap = any(isinstance(event, Gap) for event in facts.events)
    complete = is_complete(facts.trace) and not has_gap
    for end in unused_path_ends(timeline, set(rows) - set(ends)) if not has_gap else ():
        if complete or end.kind in (
            "cut",
            "unasked",
        ):  # in a long run, a call that is not kept any more may have used a result
            ends[end.number] = end
    uses = _uses(training, set(rows) - set(ends)) if complete else {}
    return tuple(_of(row, ends.get(number), uses.get(number)) for number, row in rows.items())


def _has_none(row: ParameterRow) -> bool:
    filled = row.statistics.filled if row.statistics is not None else 0
    return row.requires_grad and not filled and not row.passes


def _is_set(training: MeasuredTraining, row: ParameterRow, passes: list[Backward]) -> bool:
    """Returns whether the script gives a parameter values after the first pass; if an optimizer holds it, before the
    last one, since a script may load its best parameters at the end. To limit its own values gives it none."""
    end = inf if row.group is None else passes[-1].index
    written = training.writes(row.tensor, passes[0].index)
    return any(op_name(call) not in _LIMITING and call.index < end for call in written)


def _of(row: ParameterRow, end: PathEnd | None, uses: list[Call] | None) -> Untrained:
    if end is not None:
        return Untrained(row, end.kind, end.cut.call, end)
    if uses is None:
        return Untrained(row, "", None)
    if not uses:
        return Untrained(row, "never", None)
    is_off = all(call.mode != "grad" for call in uses)
    return Untrained(row, "unrecorded" if is_off else "", uses[0] if is_off else None)


def _uses(training: MeasuredTraining, numbers: set[int]) -> dict[int, list[Call]]:
    """Returns the calls that use each of some tensors, other than those that make, set or look at it."""
    uses: dict[int, list[Call]] = {number: [] for number in numbers}
    for call in training.facts.calls:
        if call.op in _NO_USE or call.op.startswith("optim.") or call.within:
            continue
        written = {write.tensor for write in call.writes}
        for number in ({access.tensor for access in call.inputs} & numbers) - written:
            uses[number].append(call)
    return uses
