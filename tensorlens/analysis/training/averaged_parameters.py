"""Finds parameters that an optimizer steps and that a line makes an average of other parameters after the steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.blends import blend_of
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.module_loads import LOADS
from tensorlens.analysis.training.one_memory import sources
from tensorlens.records.model import Call

AVERAGING = frozenset("lerp add iadd copy set foreach_lerp foreach_add".split())  # "set": `p.data = ...`
AVERAGED = "AveragedModel.update_parameters"
_GIVEN = frozenset((LOADS, AVERAGED))  # they copy what the program has computed
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
            if len(writes) < _MIN_WRITES or len({source for _, source in writes}) > 1:
                continue
            if not _have_one_optimizer(row, trained[writes[0][1]]):
                continue  # members of a population, or an inner loop: one of its own steps each on purpose
            if _is_stepped_between(training, row, [call for call, _ in writes]):
                groups[site].append((row, trained[writes[0][1]], writes[0][0]))
    written = {row.tensor for group in groups.values() for row, _, _ in group}
    for group in groups.values():
        if not any(source.tensor in written for _, source, _ in group):
            yield AveragedParameters(group[0][2], tuple(row for row, *_ in group), tuple(s for _, s, _ in group))


def _have_one_optimizer(row: ParameterRow, source: ParameterRow) -> bool:
    return row.group is not None and source.group is not None and row.group.optimizer == source.group.optimizer


def _is_trained(row: ParameterRow) -> bool:
    return row.is_stepped and row.statistics is not None and row.statistics.filled > row.statistics.zero


def source_of_average(
    training: MeasuredTraining, call: Call, target: int, trained: dict[int, ParameterRow]
) -> int | None:
    """Returns the one trained parameter that a write reads besides its target. A copy that keeps nothing of the target
    is no average: an inner loop of meta-learning begins with one.

    A line that copies what other lines have computed counts if that is a weighted sum of the two.
    """
    facts = training.facts
    if op_name(call) not in AVERAGING or len(call.inputs) < 2:
        return None
    read, keeps = set[int](), False
    if not facts.trace.sites[call.site].through:
        for given in _given(facts, call, target):
            read |= {each.tensor for each in sources(facts, given, call)}
        keeps = target in read
        read -= {target}
    if op_name(call) in ("copy", "set") and (not keeps or read.isdisjoint(trained)):
        read = _blended(facts, call, target)
    shape = facts.tensor(target).shape
    read = {number for number in read if facts.tensor(number).shape}
    (number,) = read if len(read) == 1 else (None,)
    return number if number in trained and facts.tensor(number).shape == shape else None


def _given(facts: TraceIndex, call: Call, target: int) -> list[int]:
    """Returns the tensors that a call writes a target with: of `torch._foreach_lerp_(...)`, the one in its place."""
    count = len(call.writes)
    if not op_name(call).startswith("foreach_"):
        return [access.tensor for access in call.inputs[1:]]
    storages = facts.storages_of(target)
    places = [n for n in range(count) if facts.storage_of(call.inputs[n].tensor, call.index) in storages]
    return [call.inputs[count + n].tensor for n in places] if len(call.inputs) == 2 * count else []


def _blended(facts: TraceIndex, call: Call, target: int) -> set[int]:
    """Returns the other tensors of a weighted sum with a target that a call copies to it."""
    through = facts.trace.sites[call.site].through
    if through and through not in _GIVEN:
        return set()
    weights = blend_of(facts, call.inputs[-1].tensor, call.index, target)
    return set(weights) - {target} if weights is not None and target in weights else set()


def _is_stepped_between(training: MeasuredTraining, row: ParameterRow, writes: list[Call]) -> bool:
    steps = [
        step.index
        for step in training.training.steps
        if any(n == row.tensor and g is not None for n, g in zip(step.parameters, step.gradients, strict=True))
    ]
    return any(writes[0].index < step < writes[-1].index for step in steps)
