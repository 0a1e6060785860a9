"""Finds the places that may load the state of something other than a module, as of an optimizer."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex

_MODULE = "Module.load_state_dict"
_OTHERS = ("opt", "sch")  # parts of the names of optimizers and schedulers


def other_loads(facts: TraceIndex) -> Iterator[ast.Attribute]:
    """Yields the `load_state_dict` of each call that the trace does not show to be one of a module only."""
    modules = {facts.span(site.id) for site in facts.trace.sites if site.through == _MODULE}
    for file, tree in facts.trees():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr != "load_state_dict":
                continue
            if facts.span_of(node, file) not in modules:
                yield node.func
            elif _is_for_several(node.func.value, tree):
                yield from _written_out(node.func, tree) or [node.func]


def _written_out(method: ast.Attribute, tree: ast.AST) -> list[ast.Attribute]:
    """Returns the loads of `for part in ("net", "opt"): getattr(job, part).load_state_dict(...)`, one for each name but
    that of the module; none if it is not sure which one that is."""
    receiver = method.value
    if not isinstance(receiver, ast.Call) or last_name(receiver.func) != "getattr" or len(receiver.args) != 2:
        return []
    name = last_name(receiver.args[1])
    loops = [each for each in ast.walk(tree) if isinstance(each, ast.For) and last_name(each.target) == name]
    loops = [each for each in loops if any(node is method for node in ast.walk(each))]
    values = loops[0].iter.elts if len(loops) == 1 and isinstance(loops[0].iter, ast.Tuple | ast.List) else []
    names = [each.value for each in values if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    others = [each for each in names if any(part in each.lower() for part in _OTHERS)]
    if len(names) != len(values) or len(others) != len(names) - 1 or not others:
        return []
    return [ast.Attribute(ast.Name(each, ast.Load()), method.attr, ast.Load()) for each in others]


def _is_for_several(receiver: ast.expr, tree: ast.AST) -> bool:
    """Returns whether one line loads several objects in turn, of which one may be no module."""
    if isinstance(receiver, ast.Call):  # as `getattr(self, name)`
        return True
    if isinstance(receiver, ast.Subscript):
        return not isinstance(receiver.slice, ast.Constant)
    return isinstance(receiver, ast.Name) and any(_gives_several(node, receiver.id, tree) for node in ast.walk(tree))


def _gives_several(node: ast.AST, name: str, tree: ast.AST) -> bool:
    """Returns whether a loop sets a name, or a function has an argument of the name for which calls give others."""
    if isinstance(node, ast.For | ast.comprehension):
        return any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node.target))
    if not isinstance(node, ast.FunctionDef):
        return False
    arguments = [each.arg for each in [*node.args.posonlyargs, *node.args.args]]
    calls = (each for each in ast.walk(tree) if isinstance(each, ast.Call) and last_name(each.func) == node.name)
    given = [value for call in calls for value in _values_for(name, arguments, call)]
    return any(part in last_name(value).lower() for value in given for part in _OTHERS)


def _values_for(name: str, arguments: list[str], call: ast.Call) -> Iterator[ast.expr]:
    """Yields the value that a call gives to an argument of a function or method with these `arguments`."""
    is_method = arguments[:1] == ["self"]
    yield from (value for each, value in zip(arguments[is_method:], call.args, strict=False) if each == name)
    yield from (each.value for each in call.keywords if each.arg == name)
