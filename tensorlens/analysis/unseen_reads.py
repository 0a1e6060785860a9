"""Finds out whether the source may read a value where no call is recorded, as `print(mask)` and `torch.save()` do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from tensorlens.analysis.code_around import parent_of, scope_around
from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Call, Span

_SAME = frozenset("float to type bool int double half detach clone cpu contiguous view_as reshape logical_not".split())
_LEAVING = frozenset("numpy tolist tobytes __array__".split())
_PASSING = frozenset("list tuple reversed sorted".split())  # their result has the same items
_STORING = frozenset("append extend add insert setdefault update".split())
_ITEMS = frozenset("items values get pop".split())
_NAMING = frozenset(("register_buffer", "setattr"))
_MADE_OF = ast.List | ast.Dict | ast.ListComp | ast.DictComp | ast.GeneratorExp  # parents of what they hold
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_MOST = 200  # expressions


def may_be_read_unseen(
    facts: TraceIndex, call: Call, place: int | None = None, if_returned: bool = False, in_containers: bool = False
) -> bool:
    """Returns whether the source gives what a call makes, or the result at one place of it, to code whose reads are not
    recorded. `if_returned`: a function that returns it by a name counts as well.
    `in_containers`: a list or dict with it, as `{n: p.grad for n, p in ...}`, is followed, and counts otherwise."""
    span, node = facts.span(call.site), facts.node_at(call.site)
    if span is None or node is None:
        return False
    return _Search(facts, if_returned, in_containers).is_read(_Use(span.file, node, place))


@dataclass(frozen=True, slots=True)
class _Use:
    """An expression with the value, or with a tuple that has it at a place."""

    file: str
    node: ast.AST
    place: int | None = None


@dataclass(slots=True)
class _Search:
    """Follows a value through the names, items, functions and loops that get it."""

    facts: TraceIndex
    if_returned: bool
    in_containers: bool
    recorded: set[Span] = field(default_factory=set)  # the calls of the source that read tensors

    def is_read(self, use: _Use) -> bool:
        sites = {call.site for call in self.facts.calls if call.inputs}
        self.recorded = {span for site in sites if (span := self.facts.span(site)) is not None}
        waiting, seen = [use], {use.node}
        for count, each in enumerate(waiting):
            following = self._following(each)
            if following is None or count > _MOST:
                return True
            for other in following:
                if other.node not in seen:
                    seen.add(other.node)
                    waiting.append(other)
        return False

    def _following(self, use: _Use) -> list[_Use] | None:
        """Returns the expressions that have the value next; None if something may read it unseen."""
        parent = parent_of(self.facts, use.file, use.node)
        if isinstance(parent, ast.keyword | ast.Starred):
            parent = parent_of(self.facts, use.file, parent)
        if isinstance(parent, ast.Attribute):
            return self._of_attribute(use, parent)
        if isinstance(parent, ast.Call):
            return self._of_call(use, parent)
        if isinstance(parent, ast.Assign | ast.AnnAssign | ast.NamedExpr):
            return self._of_targets(use, parent.targets if isinstance(parent, ast.Assign) else [parent.target])
        if isinstance(parent, ast.For | ast.comprehension) and parent.iter is use.node:
            return self._of_targets(_Use(use.file, use.node), [parent.target])
        if isinstance(parent, ast.Tuple):
            return [_Use(use.file, parent, parent.elts.index(use.node) if use.node in parent.elts else None)]
        if isinstance(parent, _MADE_OF) and self.in_containers:
            return [_Use(use.file, parent)]
        if isinstance(parent, ast.Subscript) and parent.value is use.node:
            return self._of_item(use, parent)
        if isinstance(parent, ast.UnaryOp):
            return [_Use(use.file, parent)]
        if isinstance(parent, ast.Return):
            return self._of_return(use)
        is_seen = ast.Expr | ast.BinOp | ast.Compare | ast.Subscript | ast.Slice | ast.If | ast.While | ast.AugAssign
        return [] if isinstance(parent, is_seen) else None

    def _of_attribute(self, use: _Use, parent: ast.Attribute) -> list[_Use] | None:
        call = parent_of(self.facts, use.file, parent)
        is_called = isinstance(call, ast.Call) and call.func is parent
        if parent.attr in _LEAVING:
            return None
        return [_Use(use.file, call)] if call is not None and is_called and parent.attr in _SAME | _ITEMS else []

    def _of_item(self, use: _Use, item: ast.Subscript) -> list[_Use]:
        """Returns the item of a tuple if it may be the value."""
        index = item.slice.value if isinstance(item.slice, ast.Constant) else None
        is_other = use.place is not None and isinstance(index, int) and 0 <= index != use.place
        return [] if is_other or not isinstance(item.ctx, ast.Load) else [_Use(use.file, item)]

    def _of_call(self, use: _Use, call: ast.Call) -> list[_Use] | None:
        name, place = called_name(call), call.args.index(use.node) if use.node in call.args else None
        if isinstance(call.func, ast.Attribute) and name in _STORING:
            return self._loads(use.file, call.func.value)
        if name in _NAMING:
            texts = (each.value for each in call.args if isinstance(each, ast.Constant))
            return [load for text in texts if isinstance(text, str) for load in self._attributes(text)]
        if name in ("zip", "enumerate"):
            return self._of_pairs(use, call, place or 0, name)
        if name in _PASSING:
            return [_Use(use.file, call, use.place)]
        functions = [(file, node) for file, node in self._functions() if node.name == name]
        if functions and place is not None:
            return self._of_parameter(functions, place)
        return [] if not functions and self.facts.span_of(call, use.file) in self.recorded else None

    def _of_pairs(self, use: _Use, call: ast.Call, place: int, name: str) -> list[_Use] | None:
        loop = parent_of(self.facts, use.file, call)
        target = loop.target if isinstance(loop, ast.For | ast.comprehension) else None
        at = place + (name == "enumerate")
        if not isinstance(target, ast.Tuple) or at >= len(target.elts):
            return None
        return self._of_targets(_Use(use.file, use.node), [target.elts[at]])

    def _of_parameter(self, functions: list[tuple[str, _Function]], place: int) -> list[_Use] | None:
        found = list[_Use]()
        for file, function in functions:
            names = [each.arg for each in function.args.args if each.arg != "self"]
            if place >= len(names):
                return None
            found += self._reads(file, function, names[place])
        return found

    def _of_return(self, use: _Use) -> list[_Use] | None:
        """Returns the calls of the function that returns the value; None if it has none by its name."""
        named = use.node if not isinstance(use.node, ast.Tuple) else use.node.elts[use.place or 0]
        if self.if_returned and isinstance(named, ast.Name | ast.Attribute):
            return None
        own = scope_around(self.facts, use.file, getattr(use.node, "lineno", 1))
        name = own.name if isinstance(own, _Function) else ""
        nodes = ((file, node) for file, tree in self.facts.trees() for node in ast.walk(tree))
        return [_Use(file, node, use.place) for file, node in nodes if called_name(node) == name] or None

    def _of_targets(self, use: _Use, targets: list[ast.expr]) -> list[_Use] | None:
        found = list[_Use]()
        for target in targets:
            if isinstance(target, ast.Tuple | ast.List) and use.place is None:
                found += [load for each in target.elts for load in self._loads(use.file, each)]
            elif isinstance(target, ast.Tuple | ast.List):
                elts = target.elts
                if any(isinstance(each, ast.Starred) for each in elts) or (use.place or 0) >= len(elts):
                    return None
                found += self._loads(use.file, elts[use.place or 0])
            else:
                loads = self._loads(use.file, target)
                found += [_Use(each.file, each.node, use.place) for each in loads]
        return found

    def _loads(self, file: str, target: ast.AST) -> list[_Use]:
        """Returns where the source reads a name or an attribute; of an item, where it reads the container."""
        while isinstance(target, ast.Subscript):
            target = target.value
        if isinstance(target, ast.Attribute):
            return [] if target.attr in ("grad", "data") else self._attributes(target.attr)
        if not isinstance(target, ast.Name):
            return []
        scope = scope_around(self.facts, file, target.lineno)
        is_own = isinstance(scope, _Function) and _binds(scope, target.id)
        return self._reads(file, scope if is_own else self.facts.tree(file), target.id)

    def _attributes(self, name: str) -> list[_Use]:
        nodes = ((file, node) for file, tree in self.facts.trees() for node in ast.walk(tree))
        return [_Use(file, node) for file, node in nodes if isinstance(node, ast.Attribute) and _is_load(node, name)]

    def _reads(self, file: str, scope: ast.AST, name: str) -> list[_Use]:
        found = (node for node in _inside(scope, name) if isinstance(node, ast.Name) and _is_load(node, name))
        return [_Use(file, node) for node in found if not isinstance(parent_of(self.facts, file, node), ast.Delete)]

    def _functions(self) -> Iterator[tuple[str, _Function]]:
        nodes = ((file, node) for file, tree in self.facts.trees() for node in ast.walk(tree))
        return ((file, node) for file, node in nodes if isinstance(node, _Function))


def _is_load(node: ast.Name | ast.Attribute, name: str) -> bool:
    return isinstance(node.ctx, ast.Load) and last_name(node) == name


def _inside(scope: ast.AST, name: str) -> Iterator[ast.AST]:
    """Yields the parts of a scope, without the functions that have a variable of that name of their own."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, _Function) and _binds(node, name):
            continue
        yield node
        yield from _inside(node, name)


def _binds(function: _Function, name: str) -> bool:
    nodes = list(ast.walk(function))
    is_outer = any(isinstance(node, ast.Global | ast.Nonlocal) and name in node.names for node in nodes)
    stored = (node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return not is_outer and (name in stored or any(isinstance(node, ast.arg) and node.arg == name for node in nodes))
