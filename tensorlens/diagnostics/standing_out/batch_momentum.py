"""Names batch norm whose running statistics are those of the last batch: a `momentum` as other libraries count it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.written_numbers import written_number
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut

_LEAST = 0.9  # PyTorch's own is 0.1
_MIN_BATCHES = 3


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them if a layer has updated its statistics, and another call uses such statistics.

    A momentum of 1 takes over the last statistics: nobody writes it for an average.
    """
    facts = training.facts
    nodes = ((node, file) for file, tree in facts.trees() for node in ast.walk(tree))
    layers = [(node, file) for node, file in nodes if isinstance(node, ast.Call) and _is_layer(node)]
    if not layers or training.training.is_hidden:
        return
    updates, uses = _batch_norms(facts)
    for node, file in layers:
        given = next(keyword.value for keyword in node.keywords if keyword.arg == "momentum")
        momentum = written_number(facts, given)
        span = facts.span_of(node, file)
        if momentum is None or not _LEAST <= momentum < 1 or updates < _MIN_BATCHES or not uses:
            continue
        yield stands_out(
            f"`{facts.code_of(node, file)}` makes its running statistics {momentum:.4g} times those of the last batch, "
            f"plus {1 - momentum:.4g} times what they were: in PyTorch, `momentum` is the weight of the new batch",
            Label("observed_here", span, "the layer is made here"),
        )


def _is_layer(node: ast.Call) -> bool:
    """Returns whether a call makes batch norm, or a function that does, with a momentum."""
    if not any(keyword.arg == "momentum" for keyword in node.keywords):
        return False
    return any("BatchNorm" in name for name in map(_named, (node.func, *node.args[:1])))


def _named(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _batch_norms(facts: TraceIndex) -> tuple[int, int]:
    """Returns how many calls of batch norm follow the count of a batch, and how many do not."""
    counted = uncounted = 0
    for call in facts.calls:
        if op_name(call) == "batch_norm" and len(call.inputs) > 2:
            before = facts.call(call.index - 1)
            is_count = before is not None and before.op == "Tensor.add_" and before.site == call.site
            counted, uncounted = counted + is_count, uncounted + (not is_count)
    return counted, uncounted
