"""Names batch norm whose running statistics are those of the last batch: a `momentum` as other libraries count it."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.written_numbers import written_number
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.model import Span
from tensorlens.records.report import Label, StandingOut

_LEAST = 0.9  # PyTorch's own is 0.1
_MIN_BATCHES = 3


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them if a layer of the line has updated its statistics, and used them.

    A momentum of 1 takes over the last statistics: nobody writes it for an average.
    """
    facts = training.facts
    nodes = [(node, file) for file, tree in facts.trees() for node in ast.walk(tree)]
    layers = [(node, file) for node, file in nodes if isinstance(node, ast.Call) and _is_layer(node)]
    if not layers or training.training.is_hidden or any(_sets_momentum(node) for node, _ in nodes):
        return
    averaging = _averaging(facts)
    for node, file in layers:
        momentum = written_number(facts, next(each.value for each in node.keywords if each.arg == "momentum"))
        span = facts.span_of(node, file)
        if momentum is None or not _LEAST <= momentum < 1 or span not in averaging:
            continue
        yield stands_out(
            f"`{facts.code_of(node, file)}` makes its running statistics {momentum:.4g} times those of the last batch, "
            f"plus {1 - momentum:.4g} times what they were: in PyTorch, `momentum` is the weight of the new batch",
            Label("observed_here", span, "the layer is made here"),
        )


def _is_layer(node: ast.Call) -> bool:
    """Returns whether a call makes batch norm with a momentum."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return "BatchNorm" in name and any(keyword.arg == "momentum" for keyword in node.keywords)


def _sets_momentum(node: ast.AST) -> bool:
    """Returns whether a statement sets an attribute `momentum`, as a schedule for it does."""
    return isinstance(node, ast.Attribute) and node.attr == "momentum" and isinstance(node.ctx, ast.Store)


def _averaging(facts: TraceIndex) -> set[Span | None]:
    """Returns the places that made running means which batches have updated and which calls have used."""
    updates, uses = Counter[int](), set[int]()
    for call in facts.calls:
        if op_name(call) == "batch_norm" and len(call.inputs) > 2:
            before, mean = facts.call(call.index - 1), call.inputs[1].tensor
            is_count = before is not None and before.op == "Tensor.add_" and before.site == call.site
            updates[mean] += is_count
            uses |= set() if is_count else {mean}
    made = (facts.creator(mean) for mean in uses if updates[mean] >= _MIN_BATCHES)
    return {facts.span(call.site) for call in made if call is not None}
