"""Names embeddings of positions whose first position is the padding: `padding_idx=0`, looked up with `arange(n)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.written_numbers import written_number
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_SAME_NUMBERS = frozenset("unsqueeze expand expand_as to long repeat view reshape".split())
_PADDING_PLACE = 2  # of the arguments of `nn.Embedding`
_MAX_CALLS = 6


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, reported = training.facts, set[int]()
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            if op_name(call) != "embedding" or len(call.inputs) < 2 or call.site in reported:
                continue
            reported.add(call.site)
            made, row = facts.creator(call.inputs[1].tensor), training.row(call.inputs[1].tensor)
            positions = _positions(facts, call)
            if made is None or row is None or not row.is_stepped or positions is None or not _pads_first(facts, made):
                continue
            yield stands_out(
                f"{as_written(facts, positions)} counts from 0, and row 0 of `{row.name}` is its `padding_idx`: the "
                f"first position gets no gradient in {as_written(facts, call)}",
                facts.label("leaf_made_here", made.site, "0 is the padding", made.index),
                facts.label("value_made_here", call.site, "looked up here", call.index),
                facts.label("observed_here", positions.site, "counts from 0", positions.index),
            )


def _positions(facts: TraceIndex, call: Call) -> Call | None:
    """Returns the `arange()` that made the indices of a look-up, if it counts from 0 and nothing has changed them."""
    number, before = call.inputs[0].tensor, call.index
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None:
            return None
        if op_name(made) == "arange":
            span = facts.span(made.site)
            node = None if span is None else facts.names.syntax.node(span)
            given = node.args if isinstance(node, ast.Call) and not _has_start(node) else []
            is_from_zero = len(given) == 1 or (len(given) == 2 and written_number(facts, given[0]) == 0)
            return made if is_from_zero else None
        if op_name(made) not in _SAME_NUMBERS or len(made.inputs) != 1:
            return None
        number, before = made.inputs[0].tensor, made.index
    return None


def _has_start(node: ast.Call) -> bool:
    return any(each.arg in ("start", "step", "out") for each in node.keywords)


def _pads_first(facts: TraceIndex, made: Call) -> bool:
    """Returns whether the constructor of an embedding, as the source writes it, has 0 as its `padding_idx`."""
    span = facts.span(made.site)
    node = None if span is None else facts.names.syntax.node(span)
    if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith("Embedding"):
        return False
    given = [each.value for each in node.keywords if each.arg == "padding_idx"] or node.args[_PADDING_PLACE:][:1]
    return bool(given) and written_number(facts, given[0]) == 0
