"""Reads the options that the source gives a loss: in the call of a function, or where the module of it is made."""

from __future__ import annotations

import ast

from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.written_numbers import only_value
from tensorlens.records.model import Call

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
    """Returns whether the source shows that a loss has no other `reduction` than the mean."""
    options = loss_options(facts, loss)
    if options is None or {"reduce", "size_average"} & set(options):
        return False
    given = options.get("reduction")
    if isinstance(given, ast.Name):
        value = only_value(facts, given.id)
        return isinstance(value, ast.Constant) and value.value == "mean"
    return given is None or (isinstance(given, ast.Constant) and given.value == "mean")
