"""Reads which lines of a dataset's code write into an item that it keeps, also in the transforms that get the item."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_VIEWS = frozenset("reshape view squeeze transpose swapaxes ravel asarray asanyarray ascontiguousarray".split())
_GROWING = frozenset("append extend insert clear pop fill sort shuffle copyto put partition resize".split())
_REFILLS = frozenset(("copyto", "fill", "put"))
_SHARING = frozenset(("from_numpy", "as_tensor", "asarray"))
_DRAWS = re.compile(r"rand|rng|\b(normal|uniform|integers|choice|poisson|sample)\b")
_MAX_DEPTH = 3
_MOST_VALUES = 16
Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = Function | ast.Module


@dataclass(frozen=True, slots=True)
class ItemWrite:
    """A line that writes into an item. `adds_up`: it does so at random places, by random values, or divides.

    A random sign is as random the second time.
    """

    node: ast.stmt | ast.Call
    adds_up: bool
    refills: bool


class ItemCode:
    """The code that items of an attribute run through in a class, from `__getitem__` on."""

    def __init__(self, tree: ast.Module, holder: ast.ClassDef) -> None:
        self._tree, self._holder = tree, holder
        self._methods = _functions(holder)
        self._plain = _functions(tree)
        called = {id(each.func) for each in ast.walk(tree) if isinstance(each, ast.Call)}
        self._given = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name) and id(each) not in called}

    def stored(self, function: Function) -> dict[str, str]:
        """Returns the names in a method that hold an item of an attribute of `self`, or a view of one, with it."""
        names: dict[str, str] = {}
        copied = _copied(function)
        for _ in range(_MAX_DEPTH):
            for node in ast.walk(function):
                if isinstance(node, ast.Assign) and (kept := self.attribute(node.value, names, function)) is not None:
                    targets = (part for each in node.targets for part in _parts(each))
                    names |= {part.id: kept for part in targets if isinstance(part, ast.Name) and part.id not in copied}
        return names

    def attribute(self, node: ast.expr, names: dict[str, str], function: Function, depth: int = 0) -> str | None:
        """Returns the attribute whose item, or a view of it, an expression may be."""
        if isinstance(node, ast.Name):
            return names.get(node.id)
        if isinstance(node, ast.Subscript):
            attribute = _own(node.value)
            places = {each.id for each in ast.walk(node.slice) if isinstance(each, ast.Name)}
            if attribute is not None and places & {each.arg for each in function.args.args[1:]}:
                return attribute
        if isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr == "T"):
            return self.attribute(node.value, names, function, depth)
        if not isinstance(node, ast.Call) or depth > _MAX_DEPTH:
            return None
        for each in (self.attribute(argument, names, function, depth + 1) for argument in node.args):
            if each is not None and (_last(node.func) in _VIEWS or next(self._callees(node), None) is not None):
                return each
        if isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS:
            return self.attribute(node.func.value, names, function, depth + 1)
        loader = self._methods.get(_own(node.func) or "")
        returned = [] if loader is None or loader is function or not node.args else _returned(loader)
        if loader is None or not returned or depth:
            return None
        return self.attribute(returned[-1], self.stored(loader), loader, depth + 1)

    def readers(self, function: Function) -> dict[str, ast.expr]:
        """Returns the attributes of which a method reads an item, with an expression that does so."""
        reads = (each for each in ast.walk(function) if isinstance(each, ast.Subscript | ast.Call))
        return {kept: each for each in reads if (kept := self.attribute(each, {}, function)) is not None}

    def gives(self, function: Function, attribute: str, is_loaded: bool) -> bool:
        """Returns whether a method makes a tensor on the memory of an item, or returns it to a loader that does so."""
        names = self.stored(function)
        calls = (each for each in ast.walk(function) if isinstance(each, ast.Call) and each.args)
        given = [each.args[0] for each in calls if _last(each.func) in _SHARING]
        for value in _returned(function) if is_loaded else ():
            given += value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
            given += value.values if isinstance(value, ast.Dict) else []
        return any(self.attribute(each, names, function) == attribute for each in given)

    def item_writes(self, function: Function, attribute: str) -> list[ItemWrite]:
        """Returns the lines that write into an item that a method has read."""
        names = self.stored(function)
        found = self._writes(function, lambda node: self.attribute(node, names, function) == attribute)
        return list({id(each.node): each for each in found}.values())

    def _writes(self, function: Scope, holds: Callable[[ast.expr], bool], depth: int = 0) -> Iterator[ItemWrite]:
        """Yields the lines of a function that write into what some expressions hold, also in functions that get it."""
        for node in ast.walk(function):
            if isinstance(node, ast.AugAssign) and holds(node.target):
                adds_up = _draws(function, node) and not (isinstance(node.op, ast.Mult) and _is_sign(function, node))
                yield ItemWrite(node, adds_up or _divides(node), False)
            elif isinstance(node, ast.Assign):
                for each in node.targets:
                    if isinstance(each, ast.Subscript) and holds(each.value):
                        yield ItemWrite(node, _draws(function, node), _is_whole(each.slice))
            elif isinstance(node, ast.Call):
                yield from self._written(function, node, holds, depth)

    def _written(
        self, function: Scope, call: ast.Call, holds: Callable[[ast.expr], bool], depth: int
    ) -> Iterator[ItemWrite]:
        out = next((each.value for each in call.keywords if each.arg == "out"), None)
        if out is not None and holds(out):
            yield ItemWrite(call, _draws(function, call), not any(map(holds, call.args)))
        places = [place for place, each in enumerate(call.args) if holds(each)]
        name = _last(call.func)
        is_receiver = isinstance(call.func, ast.Attribute) and holds(call.func.value)
        if name in _REFILLS and (0 in places or is_receiver):
            yield ItemWrite(call, False, True)
        for callee in self._callees(call) if depth < _MAX_DEPTH and places else ():
            arguments = callee.args.args[1:] if _is_method(callee) else callee.args.args
            inner = {arguments[place].arg for place in places if place < len(arguments)}
            if inner:
                yield from self._writes(callee, _holding(inner | _same(callee, inner)), depth + 1)

    def _callees(self, call: ast.Call) -> Iterator[Function]:
        """Yields the functions of the file that a call may run; by a name without a definition any that is given."""
        name, own = _last(call.func), _own(call.func)
        if own is not None and own in self._methods:
            yield self._methods[own]
        elif isinstance(call.func, ast.Name) and call.func.id in self._plain:
            yield self._plain[call.func.id]
        elif isinstance(call.func, ast.Name | ast.Subscript) or own is not None:
            if name in _VIEWS or name in dir(builtins):
                return
            yield from (each for key, each in self._plain.items() if key in self._given)
            for each in self._tree.body:
                if isinstance(each, ast.ClassDef) and (runs := _functions(each).get("__call__")) is not None:
                    yield runs

    def is_written_elsewhere(self, attribute: str, function: Function) -> bool:
        """Returns whether another line than those of `__init__` may write items of an attribute anew."""
        start = self._methods.get("__init__")
        known = {id(each) for each in ast.walk(start)} if start is not None else set[int]()
        known |= {id(each) for each in _fillings(self._tree, attribute)}
        for node in ast.walk(self._tree):
            if id(node) in known or not isinstance(node, ast.Attribute | ast.Call | ast.Assign | ast.AugAssign):
                continue
            if isinstance(node, ast.Attribute):
                if node.attr == attribute and not isinstance(node.ctx, ast.Load):
                    return True
            elif isinstance(node, ast.Call):
                holders = [*node.args[:1], *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]
                if _last(node.func) in _GROWING and any(_mentions(each, attribute) for each in holders):
                    return True
            elif any(_mentions(each, attribute) for each in _targets(node)):
                is_own = any(node is each for each in ast.walk(function)) and isinstance(node, ast.AugAssign)
                if not is_own:
                    return True
        others = (each for each in ast.walk(self._tree) if isinstance(each, Function) and each not in (start, function))
        own = ast.Module([each for each in self._tree.body if not isinstance(each, Function | ast.ClassDef)], [])
        return any(self._writes_items(each, attribute) for each in (own, *others))

    def _writes_items(self, function: Scope, attribute: str) -> bool:
        names = set[str]()
        for node in ast.walk(function):
            value, targets = None, list[ast.expr]()
            if isinstance(node, ast.Assign):
                value, targets = node.value, node.targets
            elif isinstance(node, ast.For):
                value, targets = node.iter, [node.target]
            if value is not None and _mentions(value, attribute):
                names |= {each.id for target in targets for each in _parts(target) if isinstance(each, ast.Name)}
        return bool(names) and any(True for _ in self._writes(function, _holding(names)))


def _functions(holder: ast.Module | ast.ClassDef) -> dict[str, Function]:
    return {each.name: each for each in holder.body if isinstance(each, Function)}


def _copied(function: Function) -> set[str]:
    """Returns the names that a function gives to new values: `row = row.copy()`, `row = row * 2`."""
    found = set[str]()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            is_made = isinstance(node.value, ast.BinOp | ast.UnaryOp) or (
                isinstance(node.value, ast.Call)
                and isinstance(node.value.func, ast.Attribute)
                and _last(node.value.func) not in _VIEWS
                and _own(node.value.func) is None
            )
            found |= {each.id for each in node.targets if isinstance(each, ast.Name)} if is_made else set()
    return found


def _is_method(function: Function) -> bool:
    return bool(function.args.args) and function.args.args[0].arg == "self"


def _returned(function: Function) -> list[ast.expr]:
    return [each.value for each in ast.walk(function) if isinstance(each, ast.Return) and each.value is not None]


def _parts(target: ast.expr) -> list[ast.expr]:
    return [each for part in target.elts for each in _parts(part)] if isinstance(target, ast.Tuple) else [target]


def _own(node: ast.expr) -> str | None:
    """Returns `specs` of `self.specs`."""
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if is_own and isinstance(node, ast.Attribute) else None


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _root(node: ast.expr) -> str | None:
    """Returns the name that an expression takes items or a transposed view of."""
    while isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr == "T"):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _holding(names: set[str]) -> Callable[[ast.expr], bool]:
    return lambda node: _root(node) in names


def _mentions(node: ast.expr, attribute: str) -> bool:
    return any(isinstance(each, ast.Attribute) and each.attr == attribute for each in ast.walk(node))


def _targets(node: ast.Assign | ast.AugAssign) -> list[ast.expr]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [part for each in targets for part in _parts(each)]


def _fillings(tree: ast.AST, attribute: str) -> Iterator[ast.AST]:
    """Yields the code under `if i not in self.cache:` and the like, which fills an item once."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and _mentions(node.test, attribute) and isinstance(node.test, ast.Compare):
            if isinstance(node.test.ops[0], ast.NotIn | ast.Is):
                for each in node.body:
                    yield from ast.walk(each)


def _is_whole(place: ast.expr) -> bool:
    parts = place.elts if isinstance(place, ast.Tuple) else [place]
    return all(
        (isinstance(each, ast.Slice) and each.lower is None and each.upper is None)
        or (isinstance(each, ast.Constant) and each.value is ...)
        for each in parts
    )


def _same(function: Function, names: set[str]) -> set[str]:
    """Returns the names that a function gives to what some of its names hold, as in `y = x` or `row = x[0]`."""
    return {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and not isinstance(node.value, ast.Call) and _root(node.value) in names
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _divides(node: ast.AugAssign) -> bool:
    """Returns whether a line divides by a plain number; by a norm of the item, it may change nothing later."""
    return isinstance(node.op, ast.Div) and isinstance(node.value, ast.Constant)


def _is_sign(function: Scope, node: ast.AugAssign) -> bool:
    """Returns whether a factor is drawn by a function that chooses, or has numbers with a minus sign beside it."""
    names = {part.id for part in ast.walk(node.value) if isinstance(part, ast.Name)}
    given = [each for each in ast.walk(function) if isinstance(each, ast.Assign)]
    values = [each.value for each in given if names & {_root(part) for part in _targets(each)}]
    drawn = {
        _last(each.func) for value in (node.value, *values) for each in ast.walk(value) if isinstance(each, ast.Call)
    }
    return not drawn & {"uniform", "normal", "standard_normal", "randn", "rand"} or "sign" in drawn


def _draws(function: Scope, node: ast.AST) -> bool:
    """Returns whether a line computes with random values, also those that its function has given a name."""
    waiting = [node]
    for each in waiting:
        if _DRAWS.search(ast.unparse(each)):
            return True
        names = {part.id for part in ast.walk(each) if isinstance(part, ast.Name)}
        for other in ast.walk(function) if len(waiting) < _MOST_VALUES else ():
            if isinstance(other, ast.Assign) and names & {_root(part) for part in _targets(other)}:
                waiting += [] if other in waiting else [other]
    return False
