"""Finds optimizers of the program whose `step()` takes the learning rate from elsewhere than its groups."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import method_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Span

_GROUPS, _DEFAULTS, _RATE = "param_groups", "defaults", "lr"
_PASSING = frozenset(("enumerate", "zip", "len", "reversed", "iter", "list"))
_MAKING = frozenset(("__init__", "__setstate__", "__repr__", "__str__"))
_SHOWING = frozenset("print info debug log write append add_scalar set_postfix set_description".split())
_SIMPLE = (ast.FunctionDef, ast.Expr, ast.Assign, ast.AnnAssign)


@dataclass(frozen=True, slots=True)
class RateElsewhere:
    """A place where a class reads its learning rate, while no method reads that of a group."""

    span: Span
    code: str  # `self.defaults["lr"]`


def rate_elsewhere(facts: TraceIndex, name: str) -> RateElsewhere | None:
    """Returns where the class of an optimizer reads its learning rate; None if a method may read it of a group."""
    found = _class_without_rate(facts, name)
    if found is None:
        return None
    file, holder, methods = found
    kept = _kept_rates(facts, holder)
    reads = [node for method in methods for node in ast.walk(method) if _is_default(node) or _is_kept(node, kept)]
    if not reads or _writes_defaults(facts):
        return None
    return RateElsewhere(facts.span_of(reads[0], file), facts.code_of(reads[0], file))


def steps_inner(facts: TraceIndex, name: str) -> bool:
    """Returns whether the class of an optimizer calls `step()` of one of its attributes, and no method of it reads the
    learning rate of a group."""
    found = _class_without_rate(facts, name)
    if found is None or _reads_outside(facts, found[1]):
        return False
    calls = [node for method in found[2] for node in ast.walk(method) if isinstance(node, ast.Call)]
    inner = (call.func.value for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "step")
    return any(isinstance(each, ast.Attribute) and _last(each.value) == "self" for each in inner)


def _reads_outside(facts: TraceIndex, holder: ast.ClassDef) -> bool:
    """Returns whether a line outside the class reads the rate of a group for more than to show or to change it."""
    own = {*ast.walk(holder)}
    groups = {name for _, tree in facts.trees() for name in _group_names(tree)}
    for statement in (node for _, tree in facts.trees() for node in ast.walk(tree) if isinstance(node, ast.stmt)):
        if statement in own or hasattr(statement, "body"):
            continue
        parts = list(ast.walk(statement))
        rates = [node for node in parts if isinstance(node, ast.Subscript) and _is_rate(node)]
        rates = [node for node in rates if _mentions(node, _GROUPS) or _last(node.value) in groups]
        is_shown = any(isinstance(node, ast.Call) and _last(node.func) in _SHOWING for node in parts)
        if rates and not is_shown and all(isinstance(node.ctx, ast.Load) for node in rates):
            return True
    return False


def _class_without_rate(facts: TraceIndex, name: str) -> tuple[str, ast.ClassDef, list[ast.FunctionDef]] | None:
    """Returns the class of an optimizer, with its file and the methods that run after its constructor, if none of them
    may read the rate of a group."""
    found = [
        (file, node)
        for file, tree in facts.trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name in (name, "Optimizer")
    ]
    if len(found) != 1 or found[0][1].name != name:
        return None
    file, holder = found[0]
    methods = [each for each in holder.body if isinstance(each, ast.FunctionDef) and each.name not in _MAKING]
    others = (each for each in holder.body if not isinstance(each, _SIMPLE))
    is_own = len(holder.bases) == 1 and _last(holder.bases[0]) == "Optimizer" and method_of(holder, "step") is not None
    kept, given = _kept_rates(facts, holder), _given_groups(methods)
    if not is_own or any(others) or any(_may_read_groups(each, given, kept) for each in methods):
        return None
    return file, holder, methods


def _given_groups(methods: list[ast.FunctionDef]) -> dict[str, set[str]]:
    """Maps methods to those of their arguments that other methods give a group, as in `self._move(p, group)`."""
    known = {each.name: each for each in methods if not (each.args.vararg or each.args.kwarg or each.decorator_list)}
    given: dict[str, set[str]] = {each.name: set() for each in methods}
    size = -1
    while size != sum(map(len, given.values())):
        size = sum(map(len, given.values()))
        for method in methods:
            groups = {*_group_names(method), *given[method.name]}
            for call in (node for node in ast.walk(method) if isinstance(node, ast.Call)):
                called = known.get(_own_method(call))
                if called is not None:
                    given[called.name] |= {name for name, value in _arguments(call, called) if _last(value) in groups}
    return given


def _own_method(call: ast.Call) -> str:
    is_own = isinstance(call.func, ast.Attribute) and _last(call.func.value) == "self"
    return _last(call.func) if is_own else ""


def _arguments(call: ast.Call, called: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    """Yields the arguments of a method that a call gives by variables, with their names there."""
    names = [each.arg for each in called.args.args][1:]
    pairs = [*zip(names, call.args, strict=False), *((each.arg or "", each.value) for each in call.keywords)]
    return ((name, value) for name, value in pairs if isinstance(value, ast.Name))


def _may_read_groups(method: ast.FunctionDef, given: dict[str, set[str]], kept: dict[str, bool]) -> bool:
    """Returns whether a method may read the rate of a group: by its name, by a variable, or in another function."""
    parents = {child: node for node in ast.walk(method) for child in ast.iter_child_nodes(node)}
    groups = {*_group_names(method), *given.get(method.name, ())}
    for node in ast.walk(method):
        parent = parents.get(node)
        if isinstance(node, ast.Constant) and node.value == _RATE:
            if parent is None or not (_is_default(parent) or _is_kept(parent, kept)):
                return True
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in groups:
            if not _is_other_option(node, parent, parents) and not _is_given(parent, given):
                return True
        elif isinstance(node, ast.Name) and node.id in ("self", "super", "vars", "getattr", "locals"):
            if node.id != "self" or not isinstance(parent, ast.Attribute):
                return True
        elif isinstance(node, ast.Attribute) and node.attr in (_GROUPS, _DEFAULTS) and not _is_plain(node, parent):
            return True
    return False


def _group_names(method: ast.AST) -> Iterator[str]:
    """Yields the variables of a method that may be a group: those of loops over the groups, and those set to one."""
    for node in ast.walk(method):
        if isinstance(node, ast.For | ast.comprehension):
            source, targets = node.iter, [node.target]
        elif isinstance(node, ast.Assign):
            source, targets = node.value, node.targets
        else:
            continue
        is_params = isinstance(source, ast.Subscript) and isinstance(source.slice, ast.Constant)
        if not (is_params and source.slice.value == "params") and _has_groups(source):  # type: ignore[attr-defined]
            yield from (each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name))


def _has_groups(node: ast.AST) -> bool:
    """Returns whether an expression has groups, or values of them. A list of what parameters give has none, although it
    goes through the groups to get to these."""
    if not isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp):
        is_own = isinstance(node, ast.Attribute) and node.attr == _GROUPS
        return is_own or any(_has_groups(each) for each in ast.iter_child_nodes(node))
    targets = (inner.target for inner in node.generators if _mentions(inner.iter, _GROUPS))
    names = {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
    return _has_groups(node.elt) or any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(node.elt))


def _is_other_option(node: ast.Name, parent: ast.AST | None, parents: dict[ast.AST, ast.AST]) -> bool:
    """Returns whether a group is only asked for an option by a text, which is not the rate, or for its parameters."""
    if isinstance(parent, ast.Subscript) and parent.value is node:
        return isinstance(parent.slice, ast.Constant)
    call = parents.get(parent) if isinstance(parent, ast.Attribute) and parent.attr in ("get", "setdefault") else None
    return isinstance(call, ast.Call) and bool(call.args) and isinstance(call.args[0], ast.Constant)


def _is_given(call: ast.AST | None, given: dict[str, set[str]]) -> bool:
    """Returns whether a call gives a group to another method of the class, which is looked at as well."""
    return isinstance(call, ast.Call) and bool(given.get(_own_method(call)))


def _is_plain(node: ast.Attribute, parent: ast.AST | None) -> bool:
    """Returns whether `self.param_groups` is gone through or indexed, or `self.defaults` is read at a text."""
    if node.attr == _DEFAULTS:
        is_item = isinstance(parent, ast.Subscript) and isinstance(parent.slice, ast.Constant)
        return is_item or (isinstance(parent, ast.Attribute) and parent.attr == "get")
    if isinstance(parent, ast.Call):
        return _last(parent.func) in _PASSING
    return isinstance(parent, ast.For | ast.comprehension | ast.Subscript)


def _is_default(node: ast.AST) -> bool:
    """Returns whether a node is `self.defaults["lr"]` or `self.defaults.get("lr")`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
        held, key = node.func.value, node.args[0]
    elif isinstance(node, ast.Subscript):
        held, key = node.value, node.slice
    else:
        return False
    return _last(held) == _DEFAULTS and isinstance(key, ast.Constant) and key.value == _RATE


def _kept_rates(facts: TraceIndex, holder: ast.ClassDef) -> dict[str, bool]:
    """Maps the attributes that `__init__` sets to its argument `lr`, or to the `lr` of an argument, to True, and those
    that it sets to another argument, as `config`, to False. No other line of the program sets them."""
    making = method_of(holder, "__init__")
    nodes = [node for _, tree in facts.trees() for node in ast.walk(tree)]
    places = (each for each in nodes if isinstance(each, ast.Attribute | ast.Subscript))
    stored = [ast.unparse(each) for each in places if not isinstance(each.ctx, ast.Load)]
    ends = [name.rpartition(".")[2] for name in stored]
    arguments = {each.arg for each in (*making.args.args[1:], *making.args.kwonlyargs)} if making is not None else set()
    if _RATE in ends or any(name.endswith("['lr']") for name in stored) or _has_method(nodes, _RATE):
        arguments = set()  # an argument may get another rate
    kept = {
        target.attr: _is_rate(node.value)
        for node in (ast.walk(making) if making is not None else ())
        if isinstance(node, ast.Assign) and (_is_rate(node.value) or _named(node.value) in arguments)
        for target in node.targets
        if isinstance(target, ast.Attribute) and _last(target.value) == "self"
    }
    return {name: kind for name, kind in kept.items() if ends.count(name) == 1 and not _has_method(nodes, name)}


def _has_method(nodes: list[ast.AST], name: str) -> bool:
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in nodes)


def _named(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _is_rate(node: ast.expr) -> bool:
    """Returns whether an expression is `lr`, `config.lr` or `config["lr"]`."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value == _RATE
    return _last(node) == _RATE


def _is_kept(node: ast.AST, kept: dict[str, bool]) -> bool:
    """Returns whether a node is `self.rate`, `self.config.lr` or `self.config["lr"]`."""
    held = node.value if isinstance(node, ast.Attribute | ast.Subscript) else None
    if isinstance(held, ast.Attribute) and isinstance(node, ast.expr) and _is_rate(node):
        return kept.get(held.attr) is False and _last(held.value) == "self"
    return isinstance(node, ast.Attribute) and kept.get(node.attr) is True and _last(node.value) == "self"


def _writes_defaults(facts: TraceIndex) -> bool:
    """Returns whether a line of the program may change the defaults of an optimizer."""
    for node in (node for _, tree in facts.trees() for node in ast.walk(tree)):
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load) and _last(node.value) == _DEFAULTS:
            return True
        if isinstance(node, ast.Attribute) and node.attr == "update" and _last(node.value) == _DEFAULTS:
            return True
    return False


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(each, ast.Attribute) and each.attr == name for each in ast.walk(node))


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
