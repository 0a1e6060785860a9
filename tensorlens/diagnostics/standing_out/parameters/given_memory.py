"""Names tensors that `.data = ...`, or `nn.Parameter(...)`, puts into the memory of another one: steps change both."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from operator import attrgetter

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.one_memory import elements, is_one, item_size
from tensorlens.analysis.training.parameters.read_sources import ReadSource, read_sources
from tensorlens.analysis.training.timeline import DATA_SET
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.observations import Step
from tensorlens.records.report import StandingOut

_MAX_STEPS = 20


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds assignments after which two parameters share their memory, while an optimizer steps one of them.

    Also finds parameters that are made from the memory of another one, as by `nn.Parameter(other.weight.data)`, or of
    a part of a tensor that no optimizer holds and that the loss is computed from.
    """
    parameters = _Parameters(training)
    found: dict[int, list[tuple[Call, int, ParameterRow, Step]]] = defaultdict(list)
    seen: set[int] = set()
    for call in training.facts.calls:
        if call.op == DATA_SET and not call.within and len(call.inputs) == 2:
            given, is_made = call.inputs[0].tensor, False
        elif call.op == "nn.Parameter" and call.outputs and call.outputs[0].tensor in parameters.rows:
            given, is_made = call.outputs[0].tensor, True
        else:
            continue
        shared = None if given in seen else parameters.sharing(call, given)
        if shared is not None and (not is_made or _is_made_from(training.facts, given, *shared)):
            seen.add(given)
            found[call.site].append((call, given, *shared))
    for group in found.values():
        yield _sentence(training, group)
    by_site: dict[int, list[ReadSource]] = defaultdict(list)
    for each in read_sources(training):
        if each.parameter not in seen:
            by_site[each.made.site].append(each)
    for sources in by_site.values():
        yield _read_sentence(training, sources)


def _is_made_from(facts: TraceIndex, given: int, row: ParameterRow, step: Step) -> bool:
    """Returns whether a parameter has the same elements as one that was made before it."""
    return row.tensor < given and is_one(facts, row.tensor, given, step.index)


class _Parameters:
    """The parameters that optimizers step, and the memory that they have at each step."""

    def __init__(self, training: MeasuredTraining) -> None:
        self._facts = training.facts
        self._steps = training.facts.trace.inspection.steps
        self._by_memory: dict[int, dict[int | None, list[int]]] = {}  # place of a step -> memory -> parameters
        self.rows = {row.tensor: row for row in training.rows if row.is_stepped}

    def sharing(self, call: Call, given: int) -> tuple[ParameterRow, Step] | None:
        """Returns the parameter whose memory a tensor gets, and a later step that finds both in that memory."""
        facts, memory = self._facts, self._facts.storage_of(given, call.index)
        if memory is None:
            return None
        first = bisect_right(self._steps, call.index, key=attrgetter("index"))
        for place, step in enumerate(self._steps[first : first + _MAX_STEPS], first):
            if facts.storage_of(given, step.index) == memory:
                for number in self._in_memory(place, memory):
                    is_other = number != given and not self._is_part(given, number)
                    if is_other and self._overlap(number, given, memory):
                        return self.rows[number], step
        return None

    def _is_part(self, given: int, stepped: int) -> bool:
        """Returns whether a tensor that no optimizer steps is a part of one that is stepped, as of one flat vector."""
        sizes = [elements(self._facts.tensor(number).shape) for number in (given, stepped)]
        return given not in self.rows and sizes[0] < sizes[1]

    def _overlap(self, one: int, other: int, memory: int) -> bool:
        """Returns whether two tensors are too large for parts of their memory without a common element, such as the
        parts of one vector."""
        tensors = [self._facts.tensor(number) for number in (one, other)]
        size = sum(elements(each.shape) * item_size(each.dtype) for each in tensors)
        return size > self._facts.trace.storages[memory].nbytes

    def _in_memory(self, place: int, memory: int) -> list[int]:
        """Returns the parameters with this memory to which a step gives new values."""
        found, step = self._by_memory.get(place), self._steps[place]
        if found is None:
            found = self._by_memory[place] = {}
            for number, gradient in zip(step.parameters, step.gradients, strict=True):
                if number in self.rows and gradient is not None:
                    found.setdefault(self._facts.storage_of(number, step.index), []).append(number)
        return found.get(memory, [])


def _sentence(training: MeasuredTraining, group: list[tuple[Call, int, ParameterRow, Step]]) -> StandingOut:
    facts, (call, _, _, step) = training.facts, group[0]
    rows = list({row.tensor: row for _, _, row, _ in group}.values())
    given = [number for _, number, _, _ in group]
    names = " and ".join(f"`{facts.name(number)}`" for number in given[:2]) + (" and more" if len(given) > 2 else "")
    verb = "shares" if len(given) == 1 else "share"
    name = step.op.removesuffix(".step")
    text = f"{names} {verb} memory with {listed(rows)} after {as_written(facts, call)}"
    text += f": later steps of `{name}` write to both"
    return stands_out(
        text,
        facts.label("shared_here", call.site, "they share their memory from here on", call.index),
        facts.label("modified_here", step.site, "writes to both"),
    )


def _read_sentence(training: MeasuredTraining, group: list[ReadSource]) -> StandingOut:
    facts, first, name = training.facts, group[0], group[0].step.op.removesuffix(".step")
    rows = [row for each in group if (row := training.row(each.parameter)) is not None]
    sources = list(dict.fromkeys(f"`{facts.name(each.source)}`" for each in group))
    others = " and ".join(sources[:2]) + (" and more" if len(sources) > 2 else "")
    text = f"{listed(rows)} {'shares' if len(rows) == 1 else 'share'} memory with {others} after "
    text += f"{as_written(facts, first.made)}: steps of `{name}` write to both, and a later loss reads both"
    return stands_out(
        text,
        facts.label("shared_here", first.made.site, "they share their memory from here on", first.made.index),
        facts.label("modified_here", first.step.site, "writes to both"),
        facts.label("needed_here", first.read.site, f"reads {sources[0]} after a step", first.read.index),
    )
