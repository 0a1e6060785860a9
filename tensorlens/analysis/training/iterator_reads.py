"""Finds the expressions of a program that read all items of an iterator, or give it to a function that does."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tensorlens.analysis.naming.syntax import called_name, plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.given_arguments import argument_of, arguments_of
from tensorlens.analysis.training.run_counts import Parents, scope_of, way_up

MODULE_METHODS = frozenset(
    "parameters named_parameters modules named_modules children named_children buffers named_buffers".split()
)
_PASS_ON = ("zip", "enumerate", "map", "filter")  # an argument of these is read as far as their result is
_READ_ALL = ("sum", "list", "tuple", "dict", "max", "min", "sorted", "set", "clip_grad_norm_", "clip_grad_value_")
LEAVING = ast.Break | ast.Continue | ast.Return | ast.Raise | ast.Yield
_STORED = ast.Name | ast.Attribute | ast.Subscript


@dataclass(frozen=True, slots=True)
class Read:
    node: ast.expr  # the iterator, as it is read or given to a function
    items: tuple[ast.AST, ...]  # that run for each of its items
    beside: tuple[ast.expr, ...] = ()  # that `zip` reads too: it ends with the shortest
    is_callee: bool = False  # the items are in a function that is given the iterator


def reads_of(facts: TraceIndex, file: str, parents: Parents, made: ast.Assign, name: str) -> Iterator[Read]:
    """Yields the expressions that read all items of an iterator, or give it to a function that does."""
    tree, holder = facts.tree(file), _class_around(parents, made)
    loaded = (n for n in ast.walk(tree) if isinstance(n, _STORED) and isinstance(n.ctx, ast.Load))
    part = name.removeprefix("self.")
    is_attribute = part != name and part.isidentifier()
    if is_attribute:
        nodes: list[ast.expr] = [
            node
            for node in loaded
            if isinstance(node, ast.Attribute) and node.attr == part and _is_of(tree, parents, node.value, holder)
        ]
    else:
        nodes = [node for node in loaded if plain_name(node) == name]
    yield from _direct_reads(parents, nodes)
    for node in nodes:
        yield from _reads_by_callee(facts, file, parents, node)


def _class_around(parents: Parents, node: ast.AST) -> ast.ClassDef | None:
    at: ast.AST | None = node
    while at is not None and not isinstance(at, ast.ClassDef):
        at = parents.get(at)
    return at


def _is_of(tree: ast.Module, parents: Parents, owner: ast.expr, holder: ast.ClassDef | None) -> bool:
    """Returns whether an expression is an object of a class: its own `self`, or a variable that the file sets once."""
    if not isinstance(owner, ast.Name) or holder is None:
        return False
    if owner.id == "self":
        return _class_around(parents, owner) is holder
    nodes = list(ast.walk(tree))
    stored = [each for each in nodes if isinstance(each, ast.Name) and each.id == owner.id]
    stored = [each for each in stored if not isinstance(each.ctx, ast.Load)]
    if len(stored) != 1 or any(isinstance(each, ast.arg) and each.arg == owner.id for each in nodes):
        return False
    made = parents[stored[0]]
    return isinstance(made, ast.Assign) and isinstance(made.value, ast.Call) and called_name(made.value) == holder.name


def _direct_reads(parents: Parents, nodes: Iterable[ast.expr]) -> Iterator[Read]:
    """Yields the expressions that read all items: each is what a `for` runs over, or an argument."""
    for node in nodes:
        at, beside = node, list[ast.expr]()
        while isinstance(call := parents[at], ast.Call) and at in call.args and called_name(call) in _PASS_ON:
            others = [each for each in call.args if each is not at]
            beside += [each for each in others if called_name(call) == "zip" and not _is_as_long(each)]
            at = call
        above, whole = parents[at], parents.get(parents[at])
        if isinstance(above, ast.For) and above.iter is at and not _may_stop(above):
            yield Read(node, tuple(above.body), tuple(beside))
        elif isinstance(above, ast.comprehension) and above.iter is at and _has_first(parents, whole, above):
            yield Read(node, _each_item(whole), tuple(beside))
        elif isinstance(above, ast.Call) and at in above.args[:1] and called_name(above) in _READ_ALL:
            yield Read(node, (), tuple(beside))


def _each_item(whole: ast.AST | None) -> tuple[ast.AST, ...]:
    """Returns the parts of a comprehension that run for each item."""
    if isinstance(whole, ast.DictComp):
        return (whole.key, whole.value)
    return (whole.elt,) if isinstance(whole, ast.ListComp | ast.SetComp | ast.GeneratorExp) else ()


def _reads_by_callee(facts: TraceIndex, file: str, parents: Parents, node: ast.expr) -> Iterator[Read]:
    """Yields the expression as a read if it is an argument of a function or method of the file that reads all of its
    items each time."""
    call = parents[node]
    call = parents[call] if isinstance(call, ast.keyword) else call
    function = _called(facts.tree(file), parents, call) if isinstance(call, ast.Call) else None
    if function is None or not isinstance(call, ast.Call):
        return
    given = [name for name in arguments_of(function) if argument_of(facts, file, function, call, name) is node]
    for name in given:
        own = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == name]
        if any(not isinstance(each.ctx, ast.Load) for each in own) or _leaves_early(function, own):
            return
        for read in _direct_reads(parents, own):
            statement, loops = way_up(parents, read.node)
            if scope_of(parents, read.node) is function and statement is not None and not loops:
                yield Read(node, read.items, read.beside, is_callee=True)
                return


def _called(tree: ast.Module, parents: Parents, call: ast.Call) -> ast.FunctionDef | None:
    """Returns the only function of the file that a call can call: by its name, or as a method of `self`, or of the
    object that the file makes of its class."""
    name = called_name(call)
    found = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name == name]
    if len(found) != 1:
        return None
    holder = parents[found[0]]
    if isinstance(call.func, ast.Name):
        return found[0] if isinstance(holder, ast.Module) else None
    owner = plain_name(call.func.value) if isinstance(call.func, ast.Attribute) else None
    if not isinstance(holder, ast.ClassDef) or owner is None:
        return None
    is_own = owner == "self" and call in ast.walk(holder)
    stored = [each for each in ast.walk(tree) if isinstance(each, ast.Assign) and len(each.targets) == 1]
    values = [each.value for each in stored if plain_name(each.targets[0]) == owner]
    return found[0] if is_own or (values and all(called_name(each) == holder.name for each in values)) else None


def _leaves_early(function: ast.FunctionDef, reads: list[ast.Name]) -> bool:
    """Returns whether a function may end before it reads an argument."""
    last = max((node.lineno for node in reads), default=0)
    return any(isinstance(node, LEAVING) and node.lineno < last for node in ast.walk(function))


def _is_as_long(other: ast.expr) -> bool:
    """Returns whether an argument of `zip` is of a module or an attribute, as what an average keeps for each parameter:
    other collections may have fewer items than the iterator."""
    return isinstance(other, ast.Attribute) or called_name(other) in MODULE_METHODS


def _has_first(parents: Parents, whole: ast.AST | None, part: ast.comprehension) -> bool:
    """Returns whether a comprehension reads all items of what it runs over first, as `next(...)` of one does not."""
    if isinstance(whole, ast.GeneratorExp):
        call = parents[whole]
        return isinstance(call, ast.Call) and called_name(call) in _READ_ALL and whole.generators[0] is part
    return isinstance(whole, ast.ListComp | ast.SetComp | ast.DictComp) and whole.generators[0] is part


def _may_stop(loop: ast.For) -> bool:
    return any(isinstance(node, ast.Break | ast.Return | ast.Raise | ast.Yield) for node in ast.walk(loop))
