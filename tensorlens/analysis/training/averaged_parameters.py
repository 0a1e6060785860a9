"""Finds parameters that an optimizer steps and that a line makes an average of other parameters after the steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.one_memory import sources
from tensorlens.records.model import Call

_AVERAGING = frozenset(("lerp", "add", "iadd", "copy", "set"))  # "set": `p.data = ...`
_MIN_WRITES = 2


@dataclass(frozen=True, slots=True)
class AveragedParameters:
    """Parameters that one line writes from those of another module, while steps use their gradients, too."""

    write: Call
    rows: tuple[ParameterRow, ...]
    sources: tuple[ParameterRow, ...]


def averaged_parameters(training: MeasuredTraining) -> Iterator[AveragedParameters]:
    """Yields these parameters, together if one line writes them.

    They had gradients other than zero, and a step comes between two of the writes. The source had gradients, too, and
    is no average itself.
    """
    trained = {row.tensor: row for row in training.rows if _is_trained(row)}
    groups: dict[int, list[tuple[ParameterRow, ParameterRow, Call]]] = defaultdict(list)
    for row in trained.values():
        by_site: dict[int, list[tuple[Call, int]]] = defaultdict(list)
        for call in training.writes(row.tensor):
            source = source_of_average(training, call, row.tensor, trained)
            if source is not None:
                by_site[call.site].append((call, source))
        for site, writes in by_site.items():
            if len(writes) >= _MIN_WRITES and len({source for _, source in writes}) == 1 and _is_stepped_between(
                training, row, [call for call, _ in writes]
            ):  # fmt: skip
                groups[site].append((row, trained[writes[0][1]], writes[0][0]))
    written = {row.tensor for group in groups.values() for row, _, _ in group}
    for group in groups.values():
        if not any(source.tensor in written for _, source, _ in group):
            yield AveragedParameters(group[0][2], tuple(row for row, *_ in group), tuple(s for _, s, _ in group))


def _is_trained(row: ParameterRow) -> bool:
    return row.is_stepped and row.statistics is not None and row.statistics.filled > row.statistics.zero


def source_of_average(
    training: MeasuredTraining, call: Call, target: int, trained: dict[int, ParameterRow]
) -> int | None:
    """Returns the one trained parameter that a write reads besides its target."""
    facts = training.facts
    if op_name(call) not in _AVERAGING or len(call.inputs) < 2 or facts.trace.sites[call.site].through:
        return None
    read: set[int] = set()
    for access in call.inputs[1:]:
        read |= {each.tensor for each in sources(facts, access.tensor, call)}
    read -= {target}
    shape = facts.tensor(target).shape
    read = {number for number in read if facts.tensor(number).shape}
    (number,) = read if len(read) == 1 else (None,)
    return number if number in trained and facts.tensor(number).shape == shape else None


def _is_stepped_between(training: MeasuredTraining, row: ParameterRow, writes: list[Call]) -> bool:
    steps = [
        step.index
        for step in training.training.steps
        if any(n == row.tensor and g is not None for n, g in zip(step.parameters, step.gradients, strict=True))
    ]
    return any(writes[0].index < step < writes[-1].index for step in steps)
