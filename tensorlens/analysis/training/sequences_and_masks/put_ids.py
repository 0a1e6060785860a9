"""Finds out whether a program itself puts the id of the padding between other ids, as for words that are dropped."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import statement_around
from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.literal_values import number_of
from tensorlens.analysis.naming.syntax import called_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

_CHOOSING = frozenset("where mul imul rmul masked_fill masked_fill index_fill masked_scatter".split())
_LOOKUPS = frozenset(("embedding", "embedding_bag"))
_RANDOM = frozenset("random rand uniform binomial random_sample bernoulli".split())
_CHOICES = _RANDOM | frozenset("integers randint randrange choice choices sample permutation".split())
_DEFAULTS = frozenset(("get", "where", "setdefault"))  # calls that choose between values
_ADDING = frozenset(("append", "insert"))
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_MAX_CALLS = 60  # above a look-up
_MAX_LOOKS = 20


def puts_in(facts: TraceIndex, weight: int, padding: int) -> bool:
    """Returns whether a call that made the ids of a look-up puts the padding into chosen places of them, or a line does
    so outside torch."""
    if any(_chooses(facts, file, tree, padding) for file, tree in facts.trees()):
        return True
    looks = [call for call in facts.calls if op_name(call) in _LOOKUPS and len(call.inputs) > 1]
    for look in [call for call in looks if call.inputs[1].tensor == weight][:_MAX_LOOKS]:
        for _, made in ancestry(facts, look.inputs[0].tensor, look.index, _MAX_CALLS):
            if op_name(made) in _CHOOSING or (op_name(made) == "setitem" and _sets(facts, made, padding)):
                return True
            if op_name(made) == "pad" and len(facts.tensor(made.inputs[0].tensor).shape) > 1:
                return True
    return False


def _sets(facts: TraceIndex, call: Call, padding: int) -> bool:
    """Returns whether an assignment sets items to the padding, or to a number that the source does not show."""
    span = facts.span(call.site)
    statement = None if span is None else statement_around(facts, span)
    number = written_number(facts, statement.value) if isinstance(statement, ast.Assign) else None
    is_of_tensors = len(call.inputs) > 1 and facts.tensor(call.inputs[-1].tensor).dtype != "bool"
    return number == padding or (number is None and not is_of_tensors)


def _chooses(facts: TraceIndex, file: str, tree: ast.Module, padding: int) -> bool:
    """Returns whether a line of lists or arrays chooses the padding for an item, or keeps items at random."""
    for node, is_random in _with_draws(tree, False):
        given: list[ast.expr] = []
        if isinstance(node, ast.IfExp):
            given = [node.body, node.orelse]
        elif isinstance(node, ast.Call) and called_name(node) in _DEFAULTS:
            given = node.args[1:]
        elif isinstance(node, ast.Assign) and _is_of_item(node.targets[0], is_random):
            given = [node.value]
        elif isinstance(node, ast.If) and _draws(node.test, _RANDOM):
            given = [each for line in (*node.body, *node.orelse) for part in ast.walk(line) for each in _items(part)]
        elif isinstance(node, ast.Compare) and _draws(node, _RANDOM):
            return True
        if any(_number(facts, file, each) == padding for each in given):
            return True
    return False


def _items(node: ast.AST) -> list[ast.expr]:
    """Returns what a statement or a call makes an item."""
    if isinstance(node, ast.Assign):
        return [node.value]
    return node.args if isinstance(node, ast.Call) and called_name(node) in _ADDING else []


def _with_draws(node: ast.AST, is_random: bool) -> Iterator[tuple[ast.AST, bool]]:
    """Yields the nodes below one, each with whether its function draws random numbers outside torch.

    The test of an `if` is left out, also that of an expression: it decides about other things, too.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(node, ast.If | ast.While | ast.IfExp) and child is node.test:
            continue
        inside = is_random or (isinstance(child, _Function) and _draws(child, _CHOICES))
        yield child, inside
        yield from _with_draws(child, inside)


def _draws(node: ast.AST, names: frozenset[str]) -> bool:
    return any(isinstance(each, ast.Call) and called_name(each) in names for each in ast.walk(node))


def _is_of_item(target: ast.expr, is_random: bool) -> bool:
    """Returns whether an assignment is to items that a condition or a draw has chosen: a slice may be padding."""
    if not isinstance(target, ast.Subscript):
        return False
    index = list(ast.walk(target.slice))
    if any(isinstance(each, ast.Slice) for each in index) or isinstance(target.slice, ast.Constant):
        return False
    return is_random or any(isinstance(each, ast.Compare) for each in index)


def _number(facts: TraceIndex, file: str, node: ast.expr) -> float | None:
    value = number_of(facts, file, node)
    return written_number(facts, node) if value is None else value
