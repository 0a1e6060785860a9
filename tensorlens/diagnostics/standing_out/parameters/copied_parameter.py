"""Names parameters of one model that begin as a copy of another one, and are trained apart from it.

So it is where an output layer is given `nn.Parameter(embedding.weight.clone())` in place of the embedding's parameter.
"""

from __future__ import annotations

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

_COPYING = frozenset(("clone", "detach", "get", "copy"))
_MAX_COPY = 4  # calls between a parameter and its copy


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden:
        return
    trained = {
        row.tensor: row for row in training.rows if row.is_stepped and row.passes and row.name.endswith("weight")
    }
    for row in trained.values():
        made = facts.creator(row.tensor)
        if made is None or made.op != "nn.Parameter" or facts.trace.sites[made.site].through:
            continue
        source = trained.get(_copied(facts, made) or -1)
        if source is not None and _in_one_model(source, row):
            yield stands_out(
                f"`{row.name}` begins as a copy of `{source.name}`, by {as_written(facts, made)}, and the steps train "
                "both: they are two parameters",
                facts.label("leaf_made_here", made.site, "a parameter of its own", made.index),
            )


def _copied(facts: TraceIndex, made: Call) -> int | None:
    """Returns the parameter whose values the expression of a new one copies."""
    line = facts.trace.sites[made.site].span.line
    for _, call in islice(ancestry(facts, made.inputs[0].tensor, made.index), _MAX_COPY) if made.inputs else ():
        if op_name(call) not in _COPYING or not call.inputs or facts.trace.sites[call.site].span.line != line:
            return None
        number = call.inputs[0].tensor
        if facts.tensor(number).type.endswith("Parameter"):
            return number
    return None


def _in_one_model(one: ParameterRow, other: ParameterRow) -> bool:
    return one.owner[:1] == other.owner[:1] and one.owner != other.owner
