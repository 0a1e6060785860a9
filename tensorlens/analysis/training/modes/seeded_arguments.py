"""Finds out from the source whether a call of a function that sets its seed has the same arguments each time."""

from __future__ import annotations

import ast
from functools import lru_cache

from tensorlens.analysis.code_around import scope_around, statement_around
from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.records.model import Span

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_OF_TENSORS = frozenset("shape T mT dtype device ndim size".split())
_HOOKS = frozenset("__getattr__ __getattribute__ __get__".split())  # methods that make an attribute anew
_NUMBERS = frozenset("int hash abs sum len".split())


def is_same_again(facts: TraceIndex, file: str, call: ast.Call) -> bool:
    """Returns whether the arguments of a call mean the same each time, and each call of the function in the statement
    has these arguments."""
    statement = statement_around(facts, facts.span_of(call, file))
    if statement is None or isinstance(statement, ast.FunctionDef | ast.For | ast.ClassDef):
        return False
    code = ast.unparse(call)
    others = (node for node in ast.walk(statement) if isinstance(node, ast.Call))
    is_only = all(ast.unparse(node) == code for node in others if called_name(node) == called_name(call))
    given = [*call.args, *(word.value for word in call.keywords)]
    return is_only and all(_is_steady(facts, file, node) for each in given for node in ast.walk(each))


def is_closed(facts: TraceIndex, file: str, function: _Function) -> bool:
    """Returns whether a function reads attributes and items that stay as they are, and calls no method of the script
    on its arguments."""
    called = {node.func for node in ast.walk(function) if isinstance(node, ast.Call)}
    if any(isinstance(each, ast.Attribute) and each.attr in _defined(facts) for each in called):
        return False
    return all(_is_steady(facts, file, node) for stmt in function.body for node in ast.walk(stmt) if node not in called)


def _is_steady(facts: TraceIndex, file: str, node: ast.AST) -> bool:
    """Returns whether an attribute is one that the script sets, and no property, and an item is one of a tensor."""
    if isinstance(node, ast.Attribute):
        known = _OF_TENSORS | _stored(facts) | {"np", "random", "functional", "nn"}
        return node.attr in known - _defined(facts) and not _HOOKS & _defined(facts)
    if isinstance(node, ast.Subscript):
        is_shape = isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
        return is_shape or facts.span_of(node, file) in _items(facts)
    return True


@lru_cache(maxsize=2)
def _items(facts: TraceIndex) -> frozenset[Span]:
    """Returns the code that gets an item of a tensor."""
    sites = {call.site for call in facts.calls if op_name(call) == "getitem"}
    return frozenset(facts.trace.sites[site].span for site in sites)


@lru_cache(maxsize=2)
def _defined(facts: TraceIndex) -> frozenset[str]:
    """Returns the names of the script's functions, methods and properties."""
    nodes = [node for _, tree in facts.trees() for node in ast.walk(tree)]
    made = {node.name for node in nodes if isinstance(node, _Function)}
    of_classes = (each for node in nodes if isinstance(node, ast.ClassDef) for each in node.body)
    set_there = (each for each in of_classes if isinstance(each, ast.Assign) and isinstance(each.value, ast.Call))
    return frozenset(made | {last_name(target) for each in set_there for target in each.targets})


@lru_cache(maxsize=2)
def _stored(facts: TraceIndex) -> frozenset[str]:
    """Returns the attributes that the script sets, as `self.seed = seed`, also as the fields of a class."""
    nodes = [node for _, tree in facts.trees() for node in ast.walk(tree)]
    found = {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    return frozenset(found | {last_name(node.target) for node in nodes if isinstance(node, ast.AnnAssign)})


def has_number(facts: TraceIndex, span: Span, call: ast.Call, function: _Function, seeding: ast.Call) -> bool:
    """Returns whether the seed is a number for sure: other libraries take None for fresh numbers, and pass a generator
    through as it is."""
    seed = seeding.args[0]
    if called_name(seeding) == "manual_seed" or _is_computed(seed):
        return True
    if not isinstance(seed, ast.Name):
        return False
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    names = names[names[:1] in (["self"], ["cls"]) :]
    given = dict(zip(names[::-1], function.args.defaults[::-1], strict=False))
    given |= dict(zip(names, call.args, strict=False))
    value = (given | {word.arg: word.value for word in call.keywords if word.arg}).get(seed.id)
    return value is not None and (_is_computed(value) or _counts(facts, span, value))


def _is_computed(value: ast.expr) -> bool:
    is_number = isinstance(value, ast.Constant) and isinstance(value.value, int | str)
    return is_number or isinstance(value, ast.BinOp | ast.Tuple | ast.List) or called_name(value) in _NUMBERS


def _counts(facts: TraceIndex, span: Span, value: ast.expr) -> bool:
    """Returns whether a name is the variable of a loop through a range, or the number of an item to get."""
    if not isinstance(value, ast.Name):
        return False
    scope = scope_around(facts, span.file, span.line)
    stores = [node for node in ast.walk(scope) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    own = [node for node in stores if node.id == value.id]
    if isinstance(scope, _Function) and scope.name == "__getitem__" and not own:
        return value.id == scope.args.args[-1].arg
    loops = [node for node in ast.walk(scope) if isinstance(node, ast.For | ast.comprehension)]
    counting = [node.target for node in loops if called_name(node.iter) == "range"]
    numbered = [node.target for node in loops if called_name(node.iter) == "enumerate"]
    counting += [target.elts[0] for target in numbered if isinstance(target, ast.Tuple)]
    return bool(own) and all(each in counting for each in own)
