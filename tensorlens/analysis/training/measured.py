"""Joins what a run with `--training` measured with what its trace says: one row for each parameter."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import hypot
from typing import Literal

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.module_rows import cut_lists, grouped, list_of, names_of_parameters, owner_of
from tensorlens.analysis.training.timeline import DATA_SET, Training, training_of
from tensorlens.records.model import Call
from tensorlens.records.training import OptimizerGroup, ParameterMovement, ParameterStatistics, TrainingMeasured

Cause = Literal["gradient", "decay", "write"]
"""A cause of movement: the gradients of a parameter, weight decay, or a write of the script."""


@dataclass(frozen=True, slots=True)
class ParameterRow:
    """One parameter, with what was measured of it. None: it is not known, or there is none."""

    tensor: int
    name: str
    owner: tuple[str, ...]  # the parts of the name of what holds it: ("model", ".layers", "[0]")
    requires_grad: bool  # as last recorded
    group: OptimizerGroup | None  # of the optimizer that holds it: the first that has stepped
    statistics: ParameterStatistics | None
    movement: ParameterMovement | None
    passes: tuple[int, ...]  # sites of the backward passes that gave it a gradient, each once
    causes: tuple[Cause, ...]  # of its movement

    @property
    def has_moved(self) -> bool:
        return self.movement is not None and self.movement.distance > 0

    @property
    def is_stepped(self) -> bool:
        return self.group is not None and self.group.steps > 0

    @property
    def is_zero(self) -> bool:
        """Returns whether it had gradients, and each of them consisted of zeros."""
        return self.statistics is not None and self.statistics.filled == self.statistics.zero > 0


@dataclass(frozen=True, slots=True)
class ModuleStatistics:
    """The parameters of a module, or of another object that holds some."""

    name: str
    rows: tuple[ParameterRow, ...]

    @property
    def norms(self) -> tuple[float, ...]:
        """The L2 norm of all gradients together, over the rounds, if all rows have equally many."""
        series = [row.statistics.norms for row in self.rows if row.statistics is not None and row.statistics.norms]
        if not series or len({len(each) for each in series}) > 1:
            return ()
        return tuple(hypot(*values) for values in zip(*series, strict=True))

    @property
    def moved(self) -> tuple[float, float] | None:
        """The L2 norm of the movement of all rows together, and that of their first values."""
        known = [row.movement for row in self.rows if row.movement is not None]
        if not known:
            return None
        return hypot(*(each.distance for each in known)), hypot(*(each.size for each in known))


class MeasuredTraining:
    """Answers questions about what a run with `--training` measured."""

    def __init__(self, facts: TraceIndex, measured: TrainingMeasured) -> None:
        self.facts = facts
        self.measured = measured
        inspection, number = facts.trace.inspection, measured.number
        self.groups = [group for group in inspection.groups if group.number == number]
        self.statistics = {each.tensor: each for each in inspection.statistics if each.number == number}
        self.movements = {each.tensor: each for each in inspection.moved if each.number == number}

    @cached_property
    def training(self) -> Training:
        return training_of(self.facts)

    @cached_property
    def rows(self) -> tuple[ParameterRow, ...]:
        """One row for each parameter that has a name, in the order in which the run met them."""
        named = names_of_parameters(self.facts.trace, self.facts.names)
        cut = cut_lists(named.values())
        measured = {number: named.get(number) or self.facts.name(number) for number in self.statistics}
        inputs = self._inputs(measured)
        measured = {number: name for number, name in measured.items() if number not in inputs}
        names = {number: name for number, name in (named | measured).items() if list_of(name) not in cut}
        return tuple(self._row(number, name) for number, name in sorted(names.items()))

    def _inputs(self, names: dict[int, str]) -> set[int]:
        """Returns the leaves that are no parameters: a variable names several in turn, and each got a gradient once, as
        the points at which a gradient penalty is computed."""
        held = {number for group in self.groups for number in group.parameters}
        turns = Counter(names.values())
        return {
            number
            for number, name in names.items()
            if number not in held
            and turns[name] > 1
            and self.statistics[number].filled <= 1
            and not self.facts.tensor(number).type.endswith("Parameter")
        }

    @cached_property
    def modules(self) -> tuple[ModuleStatistics, ...]:
        """The rows of each module; of one with many parameters, those of its parts."""
        rows = {row.tensor: row for row in self.rows}
        owners = {row.tensor: row.owner for row in self.rows}
        parts = grouped(owners)
        return tuple(ModuleStatistics("".join(name), tuple(map(rows.__getitem__, numbers))) for name, numbers in parts)

    def row(self, tensor: int) -> ParameterRow | None:
        return self._by_tensor.get(tensor)

    @cached_property
    def _by_tensor(self) -> dict[int, ParameterRow]:
        return {row.tensor: row for row in self.rows}

    def _row(self, number: int, name: str) -> ParameterRow:
        holding = [group for group in self.groups if number in group.parameters]
        group = next((each for each in holding if each.steps), holding[0] if holding else None)
        statistics, movement = self.statistics.get(number), self.movements.get(number)
        end = self.facts.events[-1].index if self.facts.events else 0
        return ParameterRow(
            number,
            name,
            owner_of(name),
            self.facts.requires_grad(number, end),
            group,
            statistics,
            movement,
            self._passes.get(number, ()),
            self._causes(number, group, statistics, movement),
        )

    @cached_property
    def _passes(self) -> dict[int, tuple[int, ...]]:
        sites: dict[int, dict[int, None]] = defaultdict(dict)
        for event in self.facts.backwards:
            for change in event.gradients:
                if change.after is not None:
                    sites[change.tensor][event.site] = None
        return {number: tuple(found) for number, found in sites.items()}

    def _causes(
        self,
        number: int,
        group: OptimizerGroup | None,
        statistics: ParameterStatistics | None,
        movement: ParameterMovement | None,
    ) -> tuple[Cause, ...]:
        """Says what moved a parameter. What moved elements without a gradient is named only if one cause is left."""
        if movement is None or not movement.distance:
            return ()
        causes: list[Cause] = []
        if statistics is not None and statistics.filled > statistics.zero and group is not None and group.steps:
            causes.append("gradient")
        if group is not None and group.steps and group.weight_decay and statistics is not None and statistics.filled:
            causes.append("decay")
        if self.writes(number):
            causes.append("write")
        return tuple(causes)

    def writes(self, number: int, since: int | None = None) -> list[Call]:
        """Returns the recorded calls outside optimizer steps that changed a parameter after its first round, also
        those that changed it through an alias, as `weight.data.mul_(0.9)`. Without a round, they count from `since`."""
        first = self._first_round.get(number, since)
        return [] if first is None else self.written_after(number, first)

    def written_after(self, number: int, index: int) -> list[Call]:
        """Returns these calls after an event, also those that initialise a parameter."""
        written = [call for storage in self.facts.storages_of(number) for call in self._writes.get(storage, ())]
        calls = {call.index: call for call in (*written, *self._data_sets.get(number, ())) if call.index > index}
        return [calls[index] for index in sorted(calls)]

    @cached_property
    def _writes(self) -> dict[int | None, list[Call]]:
        """Maps storages to the calls outside optimizer steps that write to them."""
        calls: dict[int | None, list[Call]] = defaultdict(list)
        for call in self.facts.calls:
            for storage in {self.facts.storage_of(write.tensor, call.index) for write in call.writes}:
                if not call.within:
                    calls[storage].append(call)
        return calls

    @cached_property
    def _data_sets(self) -> dict[int, list[Call]]:
        """Maps tensors to the assignments to their `.data` outside optimizer steps, but for those of `Module.to()` and
        its like, which keep the values."""
        calls: dict[int, list[Call]] = defaultdict(list)
        sites = self.facts.trace.sites
        for call in self.facts.calls:
            is_own = call.op == DATA_SET and call.inputs and not call.within
            if is_own and not sites[call.site].through.startswith("Module."):
                calls[call.inputs[0].tensor].append(call)
        return calls

    @cached_property
    def _first_round(self) -> dict[int, int]:
        """Maps each parameter to the index of its first optimizer step or, without one, of its first pass."""
        first: dict[int, int] = {}
        for step in self.facts.trace.inspection.steps:
            for number in step.parameters:
                first.setdefault(number, step.index)
        for event in self.facts.backwards:
            for change in event.gradients:
                first.setdefault(change.tensor, event.index)
        return first


@lru_cache(maxsize=1)
def measured_training(facts: TraceIndex) -> MeasuredTraining | None:
    """Returns what `--training` measured, so far as the run has got; None if the run was made without it."""
    measured = facts.trace.inspection.measured
    return MeasuredTraining(facts, measured[-1]) if measured else None
