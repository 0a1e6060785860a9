"""Names snapshots of parameters that are no copies: later optimizer steps change them too."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from tensorlens.analysis.naming.bindings import root_of
from tensorlens.analysis.training.checkpoints_and_averages.kept_snapshots import Reader, is_load, snapshots
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.one_memory import origin
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.diagnostics.standing_out.changed_in_place import idle_restore, self_update
from tensorlens.diagnostics.standing_out.changed_in_place.self_update import found_already
from tensorlens.records.model import Call
from tensorlens.records.observations import Step
from tensorlens.records.report import StandingOut
from tensorlens.records.training import SavedToFile

_STATE = "Module.state_dict"
_MIN_ROUNDS = 3
_NEAR = 40  # events after a read


@dataclass(frozen=True, slots=True)
class _Alias:
    """A tensor that shares memory with a parameter, which steps changed after the alias was made."""

    tensor: int
    made: Call
    row: ParameterRow
    step: Step  # the first one after it was made
    name: str  # that it or its container has at the end of the run; "" if nothing names it
    read: Reader | None  # the last reader after the step


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds aliases that the script kept under a name, or that it saved or used after the steps."""
    search = _Search(training)
    reported = found_already(training.facts)
    said = (*self_update.find(training), *idle_restore.find(training))
    reported |= {label.site for each in said for label in each.labels if label.site is not None}
    groups: dict[object, list[_Alias]] = defaultdict(list)
    for alias in search.aliases():
        if alias.made.site not in reported and getattr(alias.read, "site", None) not in reported:
            groups[alias.name or alias.made.site].append(alias)
    for group in groups.values():
        yield _sentence(training, group)


class _Search:
    def __init__(self, training: MeasuredTraining) -> None:
        self._training, self._facts = training, training.facts
        self._rows = {row.tensor: row for row in training.rows if row.is_stepped}

    def aliases(self) -> Iterator[_Alias]:
        for number in self._candidates:
            made = self._facts.creator(number)
            assert made is not None
            parameter = self._parameter(number)
            row = self._rows.get(parameter) if parameter is not None else None
            step = None if row is None else self._step_after(row.tensor, made.index)
            if row is None or step is None or self._is_written(number, made):
                continue
            if self._facts.storage_of(row.tensor, step.index) != self._facts.tensor(number).storage:
                continue  # `.data = ...` had given it another memory
            alias = self._alias(number, made, row, step)
            if alias is not None:
                yield alias

    def _alias(self, number: int, made: Call, row: ParameterRow, step: Step) -> _Alias | None:
        names = self._names.get(number, [])
        readers = self._readers.get(number, [])
        attribute = next((name for name in names if self._is_attribute(name)), None)
        if attribute is not None:
            return _Alias(number, made, row, step, attribute, None)
        kept_name = names[0].partition("[")[0] if names else ""
        if number in self._snapshots:
            return _Alias(number, made, row, step, kept_name, self._snapshots[number])
        if any(made.index < reader.index <= step.index for reader in readers):
            return None
        after = [reader for reader in readers if reader.index > step.index]
        if self._is_live(number, row.tensor, after):
            return None
        if names:
            return _Alias(number, made, row, step, kept_name, after[-1] if after else None)
        used = [each for each in after if not is_load(self._facts, each)]
        if not self._is_of_state(made):
            used = []
        elif self._facts.trace.sites[made.site].through != _STATE:
            used = [each for each in used if isinstance(each, SavedToFile)]
        return _Alias(number, made, row, step, "", used[-1]) if used else None

    def _is_of_state(self, made: Call) -> bool:
        """Returns whether `state_dict()` has made an alias, or the tensor that a line detaches again."""
        source = self._facts.creator(made.inputs[0].tensor)
        return any(each is not None and self._facts.trace.sites[each.site].through == _STATE for each in (made, source))

    def _is_live(self, number: int, parameter: int, readers: list[Reader]) -> bool:
        """Returns whether one line reads an alias again and again, with steps in between, and no line compares it with
        the parameter: then it is wanted as the parameter is at that time."""
        lines: dict[int | None, set[int]] = defaultdict(set)
        steps = [step.index for step in self._steps.get(parameter, ())]
        for reader in readers:
            if isinstance(reader, SavedToFile) or self._is_compared(number, parameter, reader):
                return False
            lines[reader.site].add(bisect_left(steps, reader.index))
        return any(len(rounds) >= _MIN_ROUNDS for rounds in lines.values())

    def _is_compared(self, number: int, parameter: int, reader: Call) -> bool:
        """Returns whether one of the next calls has an input from an alias and another one from its parameter."""
        facts, one, other = self._facts, {number}, set[int]()
        calls = (each for each in self._readers.get(number, ()) if isinstance(each, Call))
        one |= {access.tensor for each in calls for access in each.outputs}
        memory = facts.storages_of(parameter)
        for call in facts.calls_between(reader.index, reader.index + _NEAR):
            read = {access.tensor for access in call.inputs}
            is_other = any(facts.storage_of(each, call.index) in memory for each in read - one)
            is_one, is_other = not one.isdisjoint(read), is_other or not other.isdisjoint(read)
            if is_one and is_other:
                return True
            one |= {access.tensor for access in call.outputs} if is_one else set()
            other |= {access.tensor for access in call.outputs} if is_other else set()
        return False

    @cached_property
    def _snapshots(self) -> dict[int, Reader]:
        """The aliases that the script keeps as earlier values, each with its last reader."""
        pairs = [(number, self._parameter(number)) for number in self._candidates]
        aliases = [(number, parameter) for number, parameter in pairs if parameter in self._rows]
        steps = {number: [step.index for step in found] for number, found in self._steps.items()}
        return snapshots(self._facts, aliases, self._readers, steps)

    # --- what there is ------------------------------------------------------------------------------------------------

    @cached_property
    def _candidates(self) -> list[int]:
        """Returns the tensors that use the memory of a stepped parameter, and are made from it, in order."""
        known = {*self._names, *self._readers} - self._rows.keys() - self._training.training.stepped
        return [number for number in sorted(known) if self._is_made_from_memory(number)]

    def _is_made_from_memory(self, number: int) -> bool:
        made, tensor = self._facts.creator(number), self._facts.tensor(number)
        if made is None or made.within or not made.inputs or tensor.storage not in self._memory:
            return False
        source = made.inputs[0].tensor
        return source != number and self._facts.storage_of(source, made.index) == tensor.storage

    def _parameter(self, number: int) -> int | None:
        """Returns the parameter whose memory a tensor uses; of several in one storage, the one it is made from."""
        tensor = self._facts.tensor(number)
        assert tensor.storage is not None
        parameters = self._memory[tensor.storage]
        if self._facts.storage_of(number, self._end) != tensor.storage:
            return None
        if len(parameters) == 1:
            return parameters[0]
        first = origin(self._facts, number)
        return next((each for each in parameters if first in (each, origin(self._facts, each))), None)

    @cached_property
    def _end(self) -> int:
        return self._facts.events[-1].index + 1 if self._facts.events else 0

    @cached_property
    def _memory(self) -> dict[int, list[int]]:
        """The stepped parameters that use each storage at the end."""
        found: dict[int, list[int]] = defaultdict(list)
        for number in self._rows:
            storage = self._facts.storage_of(number, self._end)
            if storage is not None:
                found[storage].append(number)
        return found

    @cached_property
    def _names(self) -> dict[int, list[str]]:
        """The names at the end of the run, without the variables of loops."""
        loops = self._facts.names.syntax.loop_names()
        names: dict[int, list[str]] = defaultdict(list)
        for binding in self._facts.trace.end.bindings:
            if root_of(binding.name) not in loops and binding.name != "_":
                names[binding.tensor].append(binding.name)
        return names

    def _is_attribute(self, name: str) -> bool:
        """Returns whether a name leads to an attribute of an object that holds a stepped parameter, too."""
        owner, dot, attribute = name.rpartition(".")
        if not dot or "[" in attribute:
            return False
        held = (other for number in self._rows for other in self._names.get(number, ()))
        return any(other.startswith(f"{owner}.") for other in held)

    # --- what happened to it ------------------------------------------------------------------------------------------

    @cached_property
    def _readers(self) -> dict[int, list[Reader]]:
        """The calls and files that read each tensor, in order. A call that only returns it again does not count."""
        readers: dict[int, list[Reader]] = defaultdict(list)
        for call in self._facts.calls:
            outputs = {access.tensor for access in call.outputs}
            for number in {access.tensor for access in call.inputs} - outputs:
                readers[number].append(call)
        for file in self._facts.trace.inspection.saved_files:
            for number in file.tensors:
                readers[number].append(file)
        return {number: sorted(found, key=lambda each: each.index) for number, found in readers.items()}

    def _step_after(self, parameter: int, index: int) -> Step | None:
        """Returns the first step after an event that used a gradient of a parameter."""
        return next((step for step in self._steps.get(parameter, ()) if step.index > index), None)

    @cached_property
    def _steps(self) -> dict[int, list[Step]]:
        steps: dict[int, list[Step]] = defaultdict(list)
        for step in self._facts.trace.inspection.steps:
            for number, gradient in zip(step.parameters, step.gradients, strict=True):
                if gradient is not None:
                    steps[number].append(step)
        return steps

    def _is_written(self, number: int, made: Call) -> bool:
        """Returns whether the script itself wrote to the memory through the alias: then it wants one memory."""
        writes = self._facts.writes(self._facts.tensor(number).counter)
        return any(write.tensor == number and event.index > made.index for event, write in writes)


def _sentence(training: MeasuredTraining, group: list[_Alias]) -> StandingOut:
    facts, first = training.facts, group[0]
    rows: Iterable[ParameterRow] = {alias.row.tensor: alias.row for alias in group}.values()
    made = facts.label("shared_here", first.made.site, "made here, without a copy", first.made.index)
    step = facts.label("modified_here", first.step.site, "writes to both")
    what = f"`{first.name}`" if first.name else f"what {as_written(facts, first.made)} returns"
    name = first.step.op.removesuffix(".step")
    text = f"{what} shares memory with {listed(list(rows))}: later steps of `{name}` write to both"
    read = first.read
    used = None if read is None else facts.label("needed_here", read.site, "read here")
    return stands_out(text, made, step, used)
