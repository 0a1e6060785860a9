"""Finds two names of one object's attributes, or of one line's variables, that are one tensor which the script changes.

The names of parameters that a script ties, as `self.head.weight = self.embed.weight`, belong to two objects.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from tensorlens.analysis.code_around import statement_around
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.one_memory import origin
from tensorlens.records.model import Call

_LAST = re.compile(r"(?:\.\w+|\[[^\]]*\])$")
_FUNCTIONS = ("torch", "nn", "F", "init")
_PLAIN_ALIAS = ("detach", "view", "data")


@dataclass(frozen=True, slots=True)
class SharedAttributes:
    """Two names of one tensor. `written` changes it in place by the first name, `other` uses it by the second."""

    names: tuple[str, str]  # "model.mean", "model.mean_sq"
    tensor: int
    written: Call
    other: Call
    is_write: bool  # `other` changes it too


def shared_attributes(facts: TraceIndex) -> Iterator[SharedAttributes]:
    """Yields each pair of names once."""
    found: set[tuple[str, str]] = set()
    for owner, names, number in _candidates(facts):
        for pair in combinations(names, 2):
            if pair in found or (owner and _is_tie(facts, number, pair)):
                continue
            shared = _used(facts, owner, pair, number)
            if shared is not None:
                found.add(pair)
                yield shared


def _candidates(facts: TraceIndex) -> Iterator[tuple[str, tuple[str, ...], int]]:
    """Yields (object, last parts of several names that are one tensor, the tensor): ("model", (".mean", ".mean_sq"),
    26). For variables that one line assigns the object is ""."""
    snapshots = [[(each.name, each.tensor) for each in facts.trace.end.bindings]]
    snapshots += [list(zip(r.names, r.tensors, strict=True)) for r in facts.trace.inspection.reached]
    for snapshot in snapshots:
        groups: dict[tuple[object, ...], dict[str, int]] = defaultdict(dict)
        for path, number in snapshot:
            last = _LAST.search(path)
            if last is not None and last.start():
                key = path[: last.start()], origin(facts, number), facts.tensor(number).shape
                groups[key].setdefault(last.group(), number)
        for (owner, *_), names in groups.items():
            if len(names) > 1:
                yield str(owner), tuple(names), next(iter(names.values()))
    for made in {call.site: call for call in facts.calls if call.outputs}.values():
        owner, variables = _of_one_object(_assigned_together(facts, made))
        if len(variables) > 1:
            for each in (call for call in facts.calls if call.site == made.site and call.outputs):
                yield owner, variables, each.outputs[0].tensor


def _assigned_together(facts: TraceIndex, made: Call) -> tuple[str, ...]:
    """Returns the variables of `h = c = torch.zeros(3)`, or of `h, c = [torch.zeros(3)] * 2`, if the call is in it."""
    span = facts.span(made.site)
    statement = None if span is None else statement_around(facts, span)
    if not isinstance(statement, ast.Assign):
        return ()
    targets, value = statement.targets, statement.value
    repeated = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult) and isinstance(value.left, ast.List)
    if repeated and isinstance(targets[0], ast.Tuple):
        inner = value.left.elts  # type: ignore[attr-defined]
        targets, value = targets[0].elts, inner[0] if len(inner) == 1 else value
    if span is None or facts.span_of(value, span.file) != span:
        return ()
    return tuple(name for target in targets if (name := plain_name(target)) is not None)


def _of_one_object(names: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Returns the object and the last parts of names such as `state["a"]` and `state["b"]`, or "" and the names."""
    lasts = [_LAST.search(name) for name in names]
    owners = {name[: last.start()] if last is not None else "" for name, last in zip(names, lasts, strict=True)}
    parts = tuple(last.group() for last in lasts if last is not None)
    return (owners.pop(), parts) if len(owners) == 1 and len(parts) == len(names) > 1 else ("", names)


def _is_tie(facts: TraceIndex, number: int, names: tuple[str, str]) -> bool:
    """Returns whether the script assigns one of two names to the other, as `self.decoder = self.encoder`."""
    return any(
        _last(target) in names and _source(node.value) in names
        for _, tree in facts.trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
    )


def _source(value: ast.expr) -> str | None:
    while isinstance(value, ast.Call | ast.Attribute):
        if isinstance(value, ast.Attribute) and value.attr not in _PLAIN_ALIAS:
            break
        value = value.func if isinstance(value, ast.Call) else value.value
    return _last(value)


def _last(node: ast.expr) -> str | None:
    """Returns the last part of a name: ".mean", "[0]"."""
    if isinstance(node, ast.Attribute):
        return f".{node.attr}"
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return f"[{node.slice.value!r}]"
    return node.id if isinstance(node, ast.Name) else None


def _used(facts: TraceIndex, owner: str, names: tuple[str, str], number: int) -> SharedAttributes | None:
    """Finds the lines that change a tensor by both names, or that change it by one and read it by the other later."""
    written: dict[str, Call] = {}
    for event, write in facts.writes(facts.tensor(number).counter):
        if isinstance(event, Call) and origin(facts, write.tensor) == origin(facts, number):
            name = _written_name(facts, event, names)
            if name is not None:
                written.setdefault(name, event)
    full = {name: owner + name for name in names}
    if len(written) == 2:
        first, second = sorted(written, key=lambda name: written[name].index)
        return SharedAttributes((full[first], full[second]), number, written[first], written[second], True)
    if not written or not owner or facts.tensor(number).type.endswith("Parameter"):
        return None
    ((first, call),) = written.items()
    second = next(name for name in names if name != first)
    if _is_second_name(facts, names, second):
        return None
    read = _read_later(facts, number, call, (first, second))
    return None if read is None else SharedAttributes((full[first], full[second]), number, call, read, False)


def _is_second_name(facts: TraceIndex, names: tuple[str, str], second: str) -> bool:
    """Returns whether one line gives a value two names, and no other sets the second: `log["a"] = log["b"] = x`."""
    targets = [
        {_last(target) for target in node.targets}
        for _, tree in facts.trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
    ]
    return any(set(names) <= each for each in targets) and sum(second in each for each in targets) == 1


def _read_later(facts: TraceIndex, number: int, written: Call, names: tuple[str, str]) -> Call | None:
    for call in facts.calls:
        if call.index > written.index and not call.within and not call.writes:
            operands = facts.names.operands(call)
            lasts = [_last_of(name) for name in operands]
            used = zip(lasts, (access.tensor for access in call.inputs), strict=False)
            is_known = len(operands) == len(call.inputs)
            if is_known and (names[1], number) in used and names[0] not in lasts:
                return call
    return None


def _last_of(name: str | None) -> str | None:
    return None if name is None else _last(ast.parse(name, mode="eval").body)


def _written_name(facts: TraceIndex, call: Call, names: tuple[str, str]) -> str | None:
    """Returns the one of two names by which a line changes a tensor in place: ".mean" for `self.mean.mul_(2).add_(x)`.

    Without a match it is the first argument of a function: `nn.init.zeros_(self.mean)`.
    """
    span = facts.span(call.site)
    node = None if span is None else facts.names.syntax.node(span) or statement_around(facts, span)
    if isinstance(node, ast.AugAssign | ast.Assign):
        node = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
    first = node
    if isinstance(node, ast.Call):
        node = next((each.value for each in node.keywords if each.arg == "out"), node)
    while isinstance(node, ast.expr):
        last = _last(node)
        if last in names:
            return last
        node = node.func if isinstance(node, ast.Call) else getattr(node, "value", None)
    is_function = isinstance(first, ast.Call) and ast.unparse(first.func).partition(".")[0] in _FUNCTIONS
    argument = first.args[0] if isinstance(first, ast.Call) and is_function and first.args else None
    last = None if argument is None else _last(argument)
    return last if last in names else None
