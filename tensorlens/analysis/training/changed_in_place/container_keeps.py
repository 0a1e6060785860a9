"""Finds tensors that a function keeps in a list or dict, and that a layer then changes in place before they are read.

The run shows that an item of the list or dict had other values after the change, and that nothing else in the function
had the tensor when it went on: a read of it outside the function is one of the item.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import function_around, loop_around_line, parent_of
from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.changed_arguments import ACTIVATIONS, meets_graph, says_so
from tensorlens.analysis.training.changed_in_place.changed_outputs import reads_values
from tensorlens.analysis.training.changed_in_place.hook_keeps import (
    FORWARD_HOOK,
    is_same,
    keeping,
    own_nodes,
    same_names,
)
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.records.kept_tensors import KeptThenChanged
from tensorlens.records.model import Call, Span

_ADDING = frozenset("append appendleft insert".split())
_TAKING = frozenset("pop popleft popitem get values items".split())
_AROUND = frozenset("reversed list tuple sorted iter next".split())
_JOINING = frozenset("cat concat concatenate stack hstack vstack".split())
_MOST_CALLS = 4096  # after the change, until the reader is found
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class KeptItem:
    """A line that keeps a tensor, the call that changes it in place, and a later one that reads it."""

    kept: Span
    value: Span  # in it: what is kept
    change: Call
    reader: Call


def kept_items(facts: TraceIndex) -> Iterator[KeptItem]:
    """Yields these lines, each once. A program with forward hooks may read what a hook keeps: it has none."""
    found = facts.trace.inspection.kept_tensors
    if not found or any(each.kind == FORWARD_HOOK for each in facts.trace.callbacks.registrations):
        return
    seen = set[Span]()
    for fact in found:
        each = _item(facts, fact)
        if each is not None and each.kept not in seen:
            seen.add(each.kept)
            yield each


def _item(facts: TraceIndex, fact: KeptThenChanged) -> KeptItem | None:
    span = facts.span(fact.site)
    function = None if span is None else function_around(facts, span.file, span.line)
    change = _change(facts, fact)
    if span is None or function is None or change is None:
        return None
    led = facts.site_in(facts.scope(fact.site), change.site)
    at = facts.span(led)
    if at is None or (led == change.site and says_so(facts.node_at(led))):
        return None
    adding = _adding(function, fact, at)
    if adding is None or not _is_alone(facts, function, fact, at):
        return None
    reader = _reader(facts, function, fact, change)
    if reader is None:
        return None
    return KeptItem(facts.span_of(adding[0], span.file), facts.span_of(adding[1], span.file), change, reader)


def _change(facts: TraceIndex, fact: KeptThenChanged) -> Call | None:
    """Returns the activation that first changed what is kept, which must be a result that the function has computed."""
    made = facts.creator(fact.changed)
    if made is None or facts.site_in(facts.scope(fact.site), made.site) is None:
        return None
    for event, write in facts.writes(facts.tensor(fact.changed).counter):
        if isinstance(event, Call) and write.tensor == fact.changed and event.index < fact.index:
            if op_name(event) in ACTIVATIONS and not event.within:
                return event
    return None


def _adding(function: _Function, fact: KeptThenChanged, at: Span) -> tuple[ast.stmt, ast.expr] | None:
    """Returns the only statement that may have put the item there, and the expression that it keeps."""
    found = [each for each in _additions(function, fact.name) if _fits(each[0], fact.key)]
    if len(found) > 1:
        is_in_order = not any(_is_repeated(function, each[0]) for each in found)
        starts = [node for node in own_nodes(function) if isinstance(node, ast.Assign) and _sets(node, fact.name)]
        is_empty = [isinstance(node.value, ast.List) and not node.value.elts for node in starts] == [True]
        found.sort(key=lambda each: each[0].lineno)
        place = int(fact.key) if fact.key.isdigit() else len(found)
        found = found[place : place + 1] if is_in_order and is_empty else []
    if len(found) != 1 or (isinstance(found[0][1], ast.Call) and called_name(found[0][1]) in ("clone", "copy")):
        return None
    is_before = found[0][0].lineno < at.line or _is_repeated(function, found[0][0])
    return found[0] if is_before else None


def _additions(function: _Function, name: str) -> Iterator[tuple[ast.stmt, ast.expr]]:
    """Yields the statements of a function that put a value into the list or dict of a variable."""
    for node in own_nodes(function):
        if isinstance(node, ast.Assign):
            if any(isinstance(each, ast.Subscript) and _is(each.value, name) for each in node.targets):
                yield node, node.value
            elif _sets(node, name) and isinstance(node.value, ast.List | ast.Dict):
                items = node.value.elts if isinstance(node.value, ast.List) else node.value.values
                yield from ((node, each) for each in items)
        elif isinstance(node, ast.AugAssign) and _is(node.target, name) and isinstance(node.value, ast.List):
            yield from ((node, each) for each in node.value.elts)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and node.value.args:
            call = node.value
            if called_name(call) in _ADDING and isinstance(call.func, ast.Attribute) and _is(call.func.value, name):
                yield node, call.args[-1]


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _sets(node: ast.Assign, name: str) -> bool:
    return any(_is(each, name) for each in node.targets)


def _fits(statement: ast.stmt, key: str) -> bool:
    """Returns whether an assignment to an item may be one to that of a key."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    places = [each.slice for each in targets if isinstance(each, ast.Subscript)]
    return all(not isinstance(place, ast.Constant) or repr(place.value) == key for place in places)


def _is_repeated(function: _Function, statement: ast.AST) -> bool:
    loops = (node for node in own_nodes(function) if isinstance(node, ast.For | ast.AsyncFor | ast.While))
    return any(each is statement for loop in loops for each in ast.walk(loop))


def _is_alone(facts: TraceIndex, function: _Function, fact: KeptThenChanged, at: Span) -> bool:
    """Returns whether nothing but the list or dict gives what was changed to the code outside the function."""
    additions = list(keeping(function, _variables(function), views=True))
    if any(not _is_into(node, fact.name) for node in additions):
        return False
    if fact.alone or fact.tensor != fact.changed:
        return True
    loop = loop_around_line(facts, at.file, at.line)
    inside = set() if loop is None else {id(node) for node in ast.walk(loop)}
    if any(each.lineno >= at.line or id(each) in inside for each in additions):
        return False
    node = facts.names.syntax.node(at)
    around = None if node is None else parent_of(facts, at.file, node)
    if not isinstance(around, ast.Assign) or not all(isinstance(each, ast.Name) for each in around.targets):
        return False
    names = {last_name(each) for each in around.targets}
    if _is_set_after(function, names, around.lineno):
        return True
    returned = (each.value for each in own_nodes(function) if isinstance(each, ast.Return))
    return not any(is_same(each, same_names(function, names), views=True) for each in returned)


def _is_into(node: ast.expr | ast.stmt, name: str) -> bool:
    """Returns whether a part of a function puts a value into the list or dict of a variable, or makes it."""
    if isinstance(node, ast.Assign):
        return all(isinstance(each, ast.Subscript) and isinstance(each.value, ast.Name) for each in node.targets)
    if isinstance(node, ast.AugAssign):
        return _is(node.target, name)
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)


def _is_set_after(function: _Function, names: set[str], line: int) -> bool:
    """Returns whether a statement at the level of the function gives a variable the result of a call after a line."""
    for node in function.body:
        if isinstance(node, ast.Assign) and node.lineno > line and isinstance(node.value, ast.Call):
            if names <= {last_name(each) for each in node.targets} and not is_same(node.value, names, views=True):
                return True
    return False


def _variables(function: _Function) -> set[str]:
    given = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    stored = {node.id for node in own_nodes(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return ({each.arg for each in given} | stored) - {"self", "cls"}


def _reader(facts: TraceIndex, function: _Function, fact: KeptThenChanged, change: Call) -> Call | None:
    """Returns the first call after the change that computes with the item."""
    memory, known, reads = facts.storage_of(fact.tensor, change.index), {fact.tensor}, _Reads(facts, function, fact)
    first = bisect_right(facts.calls, change.index, key=lambda call: call.index)
    for call in facts.calls[first : first + _MOST_CALLS]:
        if all(access.tensor not in known for access in call.inputs):
            continue
        if not reads.is_of_item(call):
            if reads.may_keep(call):
                return None
            continue
        same = (facts.storage_of(each.tensor, call.index) == memory for each in call.outputs)
        if call.outputs and not call.writes and all(same):
            known |= {access.tensor for access in call.outputs}
        elif reads_values(facts, call, set()) and not _is_activated(facts, call) and meets_graph(facts, call):
            return call
    return None


class _Reads:
    """Distinguishes reads of an item from reads of the variable whose value was put there."""

    def __init__(self, facts: TraceIndex, function: _Function, fact: KeptThenChanged) -> None:
        self._facts, self._fact = facts, fact
        self._own = facts.scope(fact.site)
        self._callers = {facts.scope(site) for site in facts.call_chain(fact.site)[1:]} - {self._own}
        self._taken = _taken(function, fact.name)

    def is_of_item(self, call: Call) -> bool:
        """Returns whether a call that reads the tensor can have it only from the list or dict.

        The variable may still be the tensor if the facts do not exclude it. Then the function itself must name an item,
        or a line of one of its callers must read the tensor.
        """
        if self._fact.tensor != self._fact.changed:
            return True  # only the list or dict has this view
        if self._fact.alone:
            return call.index >= self._fact.index
        scope = self._facts.scope(call.site)
        return scope in self._callers or (scope == self._own and _names_any(self._facts, call.site, self._taken))

    def may_keep(self, call: Call) -> bool:
        """Returns whether a function that the line of another one called may keep what one of its calls reads."""
        for site in self._facts.call_chain(call.site):
            if self._facts.scope(site) == self._own:
                return False
            span = self._facts.span(site)
            function = None if span is None else function_around(self._facts, span.file, span.line)
            if function is not None and any(True for _ in keeping(function, _variables(function), views=True)):
                return True
        return False


def _names_any(facts: TraceIndex, site: int, names: set[str]) -> bool:
    node = facts.node_at(site)
    return node is not None and any(isinstance(each, ast.Name) and each.id in names for each in ast.walk(node))


def _is_activated(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call only joins tensors for an activation, whose result may be the same without the change."""
    if op_name(call) not in _JOINING or not call.outputs:
        return False
    first = bisect_right(facts.calls, call.index, key=lambda each: each.index)
    joined = {access.tensor for access in call.outputs}
    for each in facts.calls[first : first + 16]:
        if any(access.tensor in joined for access in each.inputs):
            return op_name(each) in ACTIVATIONS
    return False


def _taken(function: _Function, name: str) -> set[str]:
    """Returns the variable that is a list or dict, and those of a function that are items of it and nothing else."""
    names, nodes = {name}, list(own_nodes(function))
    for node in sorted((each for each in nodes if isinstance(each, ast.Assign)), key=lambda each: each.lineno):
        if _comes_from(node.value, names):
            names |= {each.id for each in node.targets if isinstance(each, ast.Name)}
    for each in nodes:
        if isinstance(each, ast.For | ast.comprehension):
            names |= _loop_items(each.target, each.iter, names)
    others = (node for node in nodes if isinstance(node, ast.Assign) and not _comes_from(node.value, names))
    return names - {each.id for node in others for each in node.targets if isinstance(each, ast.Name)} | {name}


def _loop_items(target: ast.expr, source: ast.expr, names: set[str]) -> set[str]:
    """Returns the variables of a loop that are items of a list or dict."""
    if isinstance(source, ast.Call) and called_name(source) in ("zip", "enumerate") and isinstance(target, ast.Tuple):
        given = source.args if called_name(source) == "zip" else [ast.Constant(0), *source.args[:1]]
        parts = list(zip(target.elts, given, strict=False))
    else:
        parts = [(target, source)]
    taken = (part for part, each in parts if _comes_from(each, names))
    return {each.id for part in taken for each in ast.walk(part) if isinstance(each, ast.Name)}


def _comes_from(node: ast.expr, names: set[str]) -> bool:
    """Returns whether an expression is the list or dict of a variable, a part of it or an item."""
    match node:
        case ast.Name():
            return node.id in names
        case ast.Subscript():
            return _comes_from(node.value, names)
        case ast.Call(func=ast.Attribute(value=inner, attr=attr)):
            return attr in _TAKING and _comes_from(inner, names)
        case ast.Call(func=ast.Name(id=name)):
            return name in _AROUND and any(_comes_from(each, names) for each in node.args)
    return False
