"""Finds where the code reads a number that a line gives to a function: to `partial()`, as an argument or a default.

A function that a program calls in one place keeps the number as long as it runs, and so do a function in it, the
attribute that a constructor sets to it, and the field of a dataclass.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import function_around, method_of, parent_of
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.given_arguments import argument_of, arguments_of, calls_of
from tensorlens.analysis.written_call import is_of_library
from tensorlens.records.model import Call

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_SAME = frozenset("float min max abs round".split())  # of a number: another number
_MAX_DEPTH = 8
_PARTIAL = "partial"
HIDDEN = frozenset(
    ("setattr", "vars", "__dict__", "__setattr__", "globals", "exec")
)  # set variables without their name


@dataclass(frozen=True, slots=True)
class BoundNumber:
    """A name that stands for a number in a function, or an attribute that does."""

    made: Call
    name: str
    owner: str = ""  # of the attribute: "self"
    file: str = ""
    within: ast.AST | None = None  # the function or class; None: everywhere

    def is_read_by(self, file: str, node: ast.AST) -> bool:
        """Returns whether an expression reads the number."""
        if self.within is not None:
            first, last = getattr(self.within, "lineno", 0), getattr(self.within, "end_lineno", 0)
            if file != self.file or not first <= getattr(node, "lineno", -1) <= last:
                return False
        if self.owner:
            attributes = (each for each in ast.walk(node) if isinstance(each, ast.Attribute))
            return any(each.attr == self.name and last_name(each.value) == self.owner for each in attributes)
        return any(isinstance(each, ast.Name) and each.id == self.name for each in ast.walk(node))


def bound_numbers(facts: TraceIndex, made: Call) -> Iterator[BoundNumber]:
    """Yields the names that stand for the number of a call."""
    node, span = facts.node_at(made.site), facts.span(made.site)
    if not isinstance(node, ast.expr) or span is None:
        return
    for value in _values(facts, span.file, node):
        holder = parent_of(facts, span.file, value)
        if isinstance(holder, ast.arguments):
            yield from _by_default(facts, made, span.file, holder, value)
        call = parent_of(facts, span.file, holder) if isinstance(holder, ast.keyword) else holder
        if isinstance(call, ast.Call) and value is not call.func:
            yield from _by_call(facts, made, call, value)


def _values(facts: TraceIndex, file: str, node: ast.expr, depth: int = 0) -> Iterator[ast.expr]:
    """Yields the largest expression that computes with a number, or the places where a variable of it is read."""
    for _ in range(_MAX_DEPTH):
        above = parent_of(facts, file, node)
        is_function = isinstance(above, ast.Call) and last_name(above.func) in _SAME and node is not above.func
        if not isinstance(above, ast.expr) or not (is_function or isinstance(above, ast.BinOp | ast.UnaryOp)):
            break
        node = above
    above = parent_of(facts, file, node)
    if not isinstance(above, ast.Assign) or len(above.targets) != 1 or not isinstance(above.targets[0], ast.Name):
        yield node
        return
    name, scope = above.targets[0].id, function_around(facts, file, above.lineno) or facts.tree(file)
    uses = [each for each in ast.walk(scope) if isinstance(each, ast.Name) and each.id == name]
    if depth == 0 and sum(not isinstance(each.ctx, ast.Load) for each in uses) == 1:
        for each in uses:
            if isinstance(each.ctx, ast.Load):
                yield from _values(facts, file, each, depth + 1)


def _by_call(facts: TraceIndex, made: Call, call: ast.Call, value: ast.expr) -> Iterator[BoundNumber]:
    """Yields the argument of a function that a call, or `partial()`, gives a number to."""
    is_partial = last_name(call.func) == _PARTIAL and bool(call.args) and value is not call.args[0]
    called = call.args[0] if is_partial else call.func
    found = _definition(facts, last_name(called))
    if found is None or any(isinstance(each, ast.Starred) for each in call.args):
        return
    file, holder = found
    function = method_of(holder, "__init__") if isinstance(holder, ast.ClassDef) else holder
    if isinstance(holder, ast.ClassDef) and function is None:
        yield from _field(facts, made, file, holder, call, value)
        return
    if not isinstance(function, _Function):
        return
    if is_partial:
        whole = ast.copy_location(ast.Call(called, call.args[1:], call.keywords), call)
        is_only = _count(facts, last_name(called)) == 1 and not _has_attribute(facts, "keywords")
    else:
        whole, is_only = call, calls_of(facts, file, function) == [call]
    names = [each for each in arguments_of(function) if argument_of(facts, file, function, whole, each) is value]
    if is_only and names and not _is_given_elsewhere(facts, names[0], call):
        yield from _argument(facts, made, file, function, names[0])


def _argument(facts: TraceIndex, made: Call, file: str, function: ast.AST, name: str) -> Iterator[BoundNumber]:
    """Yields the argument, and the attribute that a constructor sets to it, if no line sets them otherwise."""
    parts = list(ast.walk(function))
    names = [each for each in parts if isinstance(each, ast.Name) and each.id == name]
    arguments = [each for each in parts if isinstance(each, ast.arg) and each.arg == name]
    if len(arguments) != 1 or not all(isinstance(each.ctx, ast.Load) for each in names):
        return
    yield BoundNumber(made, name, "", file, function)
    holder = parent_of(facts, file, function)
    for node in parts if isinstance(holder, ast.ClassDef) and getattr(function, "name", "") == "__init__" else ():
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and last_name(node.value) == name:
            target = node.targets[0]
            if (
                isinstance(target, ast.Attribute)
                and last_name(target.value) == "self"
                and _sets(facts, target.attr) == 1
            ):
                yield BoundNumber(made, target.attr, "self", file, holder)


def _field(
    facts: TraceIndex, made: Call, file: str, holder: ast.ClassDef, call: ast.Call, value: ast.expr
) -> Iterator[BoundNumber]:
    """Yields the field of a dataclass, or of a named tuple, that a call gives a number to."""
    lines = (each for each in holder.body if isinstance(each, ast.AnnAssign))
    fields = [last_name(each.target) for each in lines]
    given = dict(zip(fields, call.args, strict=False)) if len(call.args) <= len(fields) else {}
    given |= {each.arg: each.value for each in call.keywords if each.arg is not None}
    name = next((each for each in fields if given.get(each) is value), None)
    is_only = sum(last_name(each.func) == holder.name for each in _calls(facts)) == 1
    if name is None or not is_only or _sets(facts, name) or _is_given_elsewhere(facts, name, call):
        return
    yield BoundNumber(made, name, "self", file, holder)
    span = facts.span(made.site)
    target = None if span is None else parent_of(facts, span.file, call)
    if isinstance(target, ast.Assign) and len(target.targets) == 1 and last_name(target.targets[0]):
        yield BoundNumber(made, name, last_name(target.targets[0]))


def _by_default(
    facts: TraceIndex, made: Call, file: str, arguments: ast.arguments, value: ast.expr
) -> Iterator[BoundNumber]:
    """Yields the argument with a default, if the calls of the function leave it out."""
    function = parent_of(facts, file, arguments)
    placed = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
    pairs = [*zip(reversed(placed), reversed(arguments.defaults), strict=False)]
    pairs += [(each.arg, default) for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
              if default is not None]  # fmt: skip
    name = next((name for name, default in pairs if default is value), None)
    above = None if function is None else parent_of(facts, file, function)
    called = function.name if isinstance(function, _Function) else None
    if isinstance(function, ast.Lambda) and isinstance(above, ast.Assign) and len(above.targets) == 1:
        called = last_name(above.targets[0])
    if function is None or name is None or not called or isinstance(above, ast.ClassDef):
        return
    calls = [each for each in _calls(facts) if last_name(each.func) == called]
    most = placed.index(name) if name in placed else len(placed)
    is_left = all(len(each.args) <= most and not any(isinstance(a, ast.Starred) for a in each.args) for each in calls)
    if calls and _count(facts, called) == len(calls) and is_left and not _is_given_elsewhere(facts, name, None):
        yield from _argument(facts, made, file, function, name)


def _definition(facts: TraceIndex, name: str) -> tuple[str, _Function | ast.ClassDef] | None:
    """Returns the only function or class of a name, with its file."""
    found = [
        (file, node)
        for file, tree in facts.trees()
        for node in ast.walk(tree)
        if isinstance(node, _Function | ast.ClassDef) and node.name == name
    ]
    return found[0] if len(found) == 1 else None


def _calls(facts: TraceIndex) -> list[ast.Call]:
    return [node for _, tree in facts.trees() for node in ast.walk(tree) if isinstance(node, ast.Call)]


def _count(facts: TraceIndex, name: str) -> int:
    """Returns how often the program reads a name, or an attribute of it."""
    nodes = (node for _, tree in facts.trees() for node in ast.walk(tree))
    return sum(isinstance(each, ast.Name | ast.Attribute) and isinstance(each.ctx, ast.Load)
               and last_name(each) == name for each in nodes)  # fmt: skip


def _has_attribute(facts: TraceIndex, name: str) -> bool:
    nodes = (node for _, tree in facts.trees() for node in ast.walk(tree))
    return any(isinstance(each, ast.Attribute) and each.attr == name for each in nodes)


def _sets(facts: TraceIndex, attribute: str) -> int:
    """Returns how many lines set an attribute of a name; 2 if some of a file with this name may do so without it."""
    trees = (tree for file, tree in facts.trees() if attribute in facts.trace.sources[file])
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = [each for each in nodes if isinstance(each, ast.Name | ast.Attribute)]
    if any(last_name(each) in HIDDEN for each in names):
        return 2
    return sum(isinstance(each, ast.Attribute) and each.attr == attribute and not isinstance(each.ctx, ast.Load)
               for each in names)  # fmt: skip


def _is_given_elsewhere(facts: TraceIndex, name: str, own: ast.Call | None) -> bool:
    """Returns whether another call gives an argument of a name, or may give any, unless it is one of torch."""
    others = (each for each in _calls(facts) if each is not own and not is_of_library(facts, each.func))
    return any(keyword.arg in (name, None) for call in others for keyword in call.keywords)
