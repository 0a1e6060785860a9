"""Reads the options that the source gives a loss: in the call of a function, or where the module of it is made."""

from __future__ import annotations

import ast

from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.per_trace import once_per_trace
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.written_numbers import only_value
from tensorlens.records.model import Call, Trace
from tensorlens.records.source import tree_of

_CLASSES = {
    "cross_entropy": "CrossEntropyLoss",
    "nll_loss": "NLLLoss",
    "binary_cross_entropy": "BCELoss",
    "binary_cross_entropy_with_logits": "BCEWithLogitsLoss",
}


def loss_options(facts: TraceIndex, loss: Call) -> dict[str, ast.expr] | None:
    """Returns the options that a loss has by name; None if the source does not show all of them."""
    node = facts.node_at(loss.site)
    if not isinstance(node, ast.Call):
        return None
    is_function, made = last_name(node.func) == op_name(loss), node
    if not is_function:
        held = node.func if isinstance(node.func, ast.Call) else only_value(facts, last_name(node.func))
        if not isinstance(held, ast.Call) or last_name(held.func) != _CLASSES.get(op_name(loss)):
            return None
        made = held
    is_starred = any(isinstance(each, ast.Starred) for each in made.args)
    if is_starred or len(made.args) > (3 if is_function else 1):
        return None
    options = dict(zip(["weight"], made.args[2 if is_function else 0 :], strict=False))
    for keyword in made.keywords:
        if keyword.arg is None:
            return None
        options[keyword.arg] = keyword.value
    return {name: value for name, value in options.items() if name not in ("input", "target")}


def reduces_by_mean(facts: TraceIndex, loss: Call) -> bool:
    """Returns whether the source shows that a loss has no other `reduction` than the mean.

    A loss of several rows that returned one number has taken their mean if the program writes nowhere that it sums up.
    """
    options = loss_options(facts, loss)
    if options is None and not facts.trace.sites[loss.site].through:
        rows, made = (facts.tensor(each[0].tensor).shape for each in (loss.inputs, loss.outputs))
        return len(rows) > 0 and made == () and not _may_sum(facts.trace)
    if options is None or {"reduce", "size_average"} & set(options):
        return False
    given = options.get("reduction")
    if isinstance(given, ast.Name):
        value = only_value(facts, given.id)
        return isinstance(value, ast.Constant) and value.value == "mean"
    return given is None or (isinstance(given, ast.Constant) and given.value == "mean")


@once_per_trace
def _may_sum(trace: Trace) -> bool:
    """Returns whether a program has the word for a sum, or one of the older options of losses."""
    nodes = [node for text in trace.sources.values() for node in ast.walk(tree_of(text) or ast.Module([], []))]
    words = {node.value for node in nodes if isinstance(node, ast.Constant)}
    options = {node.arg for node in nodes if isinstance(node, ast.keyword)}
    return "sum" in words or bool({"reduce", "size_average"} & options)
