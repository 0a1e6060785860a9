"""Names output layers that begin as a copy of the table of their model, and are trained apart from it.

So it is where one is given `nn.Parameter(embedding.weight.clone())` in place of the embedding's parameter,
or loads it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_COPYING = frozenset(("clone", "detach", "get", "copy", "contiguous"))
_TABLE = frozenset(("embedding", "embedding_bag"))
_WEIGHT = frozenset(("linear", "matmul", "mm"))
_LOAD = "Module.load_state_dict"
_MAX_WRITES = 3  # an initialisation, and a load
_MAX_COPY = 4  # calls between a parameter and its copy


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden:
        return
    trained = {
        row.tensor: row for row in training.rows if row.is_stepped and row.passes and row.name.endswith("weight")
    }
    found = [(row, *copy) for row in trained.values() for copy in _copies(facts, row.tensor)]
    copies = Counter(number for _, _, number in found)
    for row, made, number in found:
        source = trained.get(number)
        # one that is copied to several begins them alike, and one that steps have trained gives what it has learned
        is_one = copies[number] == 1 and not _is_trained_before(training, number, made.index)
        if source is not None and is_one and _in_one_model(source, row):
            yield stands_out(
                f"`{row.name}` begins as a copy of `{source.name}`, by {as_written(facts, made)}, and the steps "
                "train both: they are two parameters",
                facts.label("leaf_made_here", made.site, "a parameter of its own", made.index),
            )


def _is_trained_before(training: MeasuredTraining, number: int, index: int) -> bool:
    earlier = (step for step in training.training.steps if step.index < index)
    return any(number in step.parameters for step in earlier)


def _copies(facts: TraceIndex, number: int) -> Iterator[tuple[Call, int]]:
    """Yields the call that makes a parameter, or loads it, from another one, with that one.

    A load of `{"weight": embedding.weight}`, a copy of the parameter by `deepcopy()` or one from the line above may be
    that of one layer into another of its kind, to begin alike: only a table and an output layer count.
    """
    made = facts.creator(number)
    if made is None or made.op != "nn.Parameter":
        return
    through = facts.trace.sites[made.site].through
    source = _copied(facts, made) if through in ("", "deepcopy") else None
    if source is not None and _is_tied(facts, source, number):
        yield made, source
    loads = [event for event, _ in facts.writes(facts.tensor(number).counter) if isinstance(event, Call)][:_MAX_WRITES]
    for call in loads:
        is_load = facts.trace.sites[call.site].through == _LOAD and call.op == "Tensor.copy_" and len(call.inputs) == 2
        given = call.inputs[1].tensor if is_load else number
        if is_load and facts.tensor(given).type.endswith("Parameter") and _is_tied(facts, given, number):
            yield call, given
            return


def _is_tied(facts: TraceIndex, source: int, number: int) -> bool:
    """Returns whether one parameter is the table of an embedding, and the other one the weight of a linear layer."""
    used: dict[int, set[str]] = {source: set(), number: set()}
    for call in facts.calls:
        for access in call.inputs:
            if access.tensor in used:
                used[access.tensor].add(op_name(call))
    return any(_TABLE & used[one] and _WEIGHT & used[other] for one, other in ((source, number), (number, source)))


def _copied(facts: TraceIndex, made: Call) -> int | None:
    """Returns the parameter whose values the statement that makes a new one copies, or the line above it."""
    last = facts.trace.sites[made.site].span.line
    for _, call in islice(ancestry(facts, made.inputs[0].tensor, made.index), _MAX_COPY) if made.inputs else ():
        line = facts.trace.sites[call.site].span.line
        if op_name(call) not in _COPYING or not call.inputs or line not in (last, last - 1):
            return None
        number, last = call.inputs[0].tensor, line
        if facts.tensor(number).type.endswith("Parameter"):
            return number
    return None


def _in_one_model(one: ParameterRow, other: ParameterRow) -> bool:
    return one.owner[:1] == other.owner[:1] and one.owner != other.owner
