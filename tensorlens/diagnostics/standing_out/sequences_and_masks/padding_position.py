"""Names embeddings of positions whose first position is the padding: `padding_idx=0`, looked up with `arange(n)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice
from math import prod

from tensorlens.analysis.naming.syntax import plain_name
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
_REPEATING = frozenset("expand expand_as repeat".split())
_KEEPING = frozenset("squeeze unsqueeze sigmoid tanh relu exp softplus view reshape dropout".split())
_ELEMENTWISE = frozenset("add radd iadd mul rmul imul sub rsub".split())
_PADDING_PLACE = 2  # of the arguments of `nn.Embedding`
_MAX_CALLS = 6
_MAX_LATER = 40


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, reported = training.facts, set[int]()
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            if op_name(call) != "embedding" or len(call.inputs) < 2 or call.site in reported:
                continue
            reported.add(call.site)
            made, row = facts.creator(call.inputs[1].tensor), training.row(call.inputs[1].tensor)
            positions = _positions(facts, call)
            if made is None or row is None or not row.is_stepped or positions is None or not _pads_first(facts, call):
                continue
            if not _is_of_positions(facts, call):
                continue
            labels = [
                facts.label("leaf_made_here", made.site, "0 is the padding", made.index),
                facts.label("value_made_here", call.site, "looked up here", call.index),
            ]
            if _function(facts, call) is not None:
                labels = [labels[1], facts.label("leaf_made_here", made.site, "made here", made.index)]
            yield stands_out(
                f"{as_written(facts, positions)} counts from 0, and row 0 of `{row.name}` is its `padding_idx`: the "
                f"first position gets no gradient in {as_written(facts, call)}",
                *labels,
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
            counter = facts.tensor(made.outputs[0].tensor).counter
            is_changed = any(event.index < call.index for event, _ in facts.writes(counter))
            return made if not is_changed and _counts_from_zero(facts, made) else None
        if op_name(made) not in _SAME_NUMBERS or len(made.inputs) != 1:
            return None
        number, before = made.inputs[0].tensor, made.index
    return None


def _counts_from_zero(facts: TraceIndex, made: Call) -> bool:
    node = facts.node_at(made.site)
    if not isinstance(node, ast.Call) or any(each.arg in (None, "start", "step", "out") for each in node.keywords):
        return False
    if any(isinstance(each, ast.Starred) for each in node.args):
        return False
    return len(node.args) == 1 or (len(node.args) == 2 and written_number(facts, node.args[0]) == 0)


def _is_of_positions(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a table is only looked up by such indices, and its rows are combined with those of a batch.

    A table of items or words whose row 0 is padding can be looked up as a whole, too.
    """
    weight, expanded = call.inputs[1].tensor, call.inputs[0].tensor
    for each in facts.calls:
        reads = any(access.tensor == weight for access in each.inputs) and each.nodes[1] > each.nodes[0]
        if not reads:
            continue
        if op_name(each) != "embedding" or _positions(facts, each) is None or not _pads_first(facts, each):
            return False
    made = facts.creator(expanded)
    if made is not None and op_name(made) in _REPEATING:
        return True
    number = call.outputs[0].tensor
    for used in islice(facts.calls_between(call.index + 1), _MAX_LATER):
        if not used.outputs or all(access.tensor != number for access in used.inputs):
            continue
        size, result = prod(facts.tensor(number).shape), prod(facts.tensor(used.outputs[0].tensor).shape)
        if len(used.inputs) > 1:
            return op_name(used) in _ELEMENTWISE and result > size
        if op_name(used) not in _KEEPING:
            return False
        number = used.outputs[0].tensor
    return False


def _pads_first(facts: TraceIndex, call: Call) -> bool:
    """Returns whether 0 is the `padding_idx` of a look-up, as the source writes it for the function or the module."""
    made, node = facts.creator(call.inputs[1].tensor), _function(facts, call)
    if node is None:
        span = None if made is None else facts.span(made.site)
        found = None if span is None else facts.names.syntax.node(span)
        node = found if isinstance(found, ast.Call) and ast.unparse(found.func).endswith("Embedding") else None
        if node is None or any(_sets_padding(each) for _, tree in facts.trees() for each in ast.walk(tree)):
            return False
    given = [each.value for each in node.keywords if each.arg == "padding_idx"] or node.args[_PADDING_PLACE:][:1]
    return bool(given) and written_number(facts, given[0]) == 0


def _function(facts: TraceIndex, call: Call) -> ast.Call | None:
    """Returns the call of `F.embedding()` that a look-up is, or the `partial()` that it calls; None: a module's."""
    node = facts.node_at(call.site)
    if not isinstance(node, ast.Call):
        return None
    name = _last(node.func)
    if name == "embedding" and len(node.args) + len(node.keywords) > 1:
        return node
    values = [
        each.value
        for _, tree in facts.trees()
        for each in ast.walk(tree)
        if isinstance(each, ast.Assign) and any(_last(target) == name for target in each.targets)
    ]
    partials = [each for each in values if isinstance(each, ast.Call) and _last(each.func) == "partial" and each.args]
    is_one = len(values) == len(partials) == 1 and _last(partials[0].args[0]) == "embedding"
    return partials[0] if is_one else None


def _last(node: ast.expr) -> str:
    return (plain_name(node) or "").rpartition(".")[2]


def _sets_padding(node: ast.AST) -> bool:
    is_set = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr == "padding_idx"
    return is_set or (isinstance(node, ast.Call) and ast.unparse(node.func).endswith("embedding"))
