"""Finds out whether a program leaves a group empty, or at a rate of zero, on purpose."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.records.training import OptimizerGroup

_RATE, _PARAMETERS = "lr", "params"
_ONCE = frozenset("parameters named_parameters filter map iter chain".split())  # what they return can be read once


def is_zero_written(training: MeasuredTraining, group: OptimizerGroup) -> bool:
    """Returns whether the rate of one group among others may be a zero that the source writes, or that it is given."""
    groups = [each for each in training.groups if each.optimizer == group.optimizer]
    if not any(each.rates[1] > 0 for each in groups):
        return False
    nodes = [node for _, tree in training.facts.trees() for node in ast.walk(tree)]
    zeros = {name for node in nodes for name in _zeros(node)}
    return any(_is_zero(value, zeros) for node in nodes for value in _values(node, _RATE))


def _zeros(node: ast.AST) -> Iterator[str]:
    """Yields the names that a node sets to zero."""
    if isinstance(node, ast.Assign) and _is_zero(node.value, set()):
        yield from map(last_name, node.targets)
    elif isinstance(node, ast.AnnAssign) and node.value is not None and _is_zero(node.value, set()):
        yield last_name(node.target)


def _is_zero(value: ast.expr, zeros: set[str]) -> bool:
    """Returns whether a value is 0, or what the program does not compute: an item, an attribute, a choice with 0."""
    if isinstance(value, ast.IfExp):
        return _is_zero(value.body, zeros) or _is_zero(value.orelse, zeros)
    if isinstance(value, ast.Name):
        return value.id in zeros
    is_item = isinstance(value, ast.Attribute | ast.Subscript)
    return is_item or (isinstance(value, ast.Constant) and value.value == 0 and value.value is not False)


def has_used_up(facts: TraceIndex) -> bool:
    """Returns whether the parameters of a group are an iterator that another line can have used up.

    A list that a filter leaves empty may be that of a part which this model does not have.
    """
    for _, tree in facts.trees():
        nodes = list(ast.walk(tree))
        reads = Counter(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
        given = {last_name(each) for node in nodes for each in _values(node, _PARAMETERS) if isinstance(each, ast.Name)}
        for node in nodes:
            if isinstance(node, ast.Assign) and _is_iterator(node.value):
                names = (target.id for target in node.targets if isinstance(target, ast.Name))
                if any(name in given and reads[name] > 1 for name in names):
                    return True
    return False


def _is_iterator(value: ast.expr) -> bool:
    is_call = isinstance(value, ast.Call) and last_name(value.func) in _ONCE
    return is_call or isinstance(value, ast.GeneratorExp)


def _values(node: ast.AST, key: str) -> Iterator[ast.expr]:
    """Yields the values that a node gives for a key: of a dict, by a keyword, or by `group[key] = ...`."""
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        yield from (value for name, value in pairs if isinstance(name, ast.Constant) and name.value == key)
    elif isinstance(node, ast.Call) and last_name(node.func) in ("dict", "update"):
        yield from (each.value for each in node.keywords if each.arg == key)
    elif isinstance(node, ast.Assign):
        keys = (each.slice for each in node.targets if isinstance(each, ast.Subscript))
        if any(isinstance(each, ast.Constant) and each.value == key for each in keys):
            yield node.value
