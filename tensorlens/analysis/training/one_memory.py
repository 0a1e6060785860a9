"""Finds tensors that are one memory: which elements they share, and by which names a line reads them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import scope_around
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.plain_values import takes_shape_only
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Call

_SAME_ELEMENTS = frozenset(
    "Tensor.detach torch.detach Tensor.data.__get__ Tensor.view Tensor.view_as Tensor.reshape torch.reshape "
    "Tensor.flatten torch.flatten Tensor.ravel Tensor.detach_ Tensor.requires_grad_ nn.Parameter".split()
)
_SUFFIXES = (".data", ".detach()")
_MAX_DEPTH = 20


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that a line reads, and the name by which it reads it."""

    name: str | None  # "p", "ema[k]"; without ".data"
    tensor: int


def origin(facts: TraceIndex, number: int) -> int:
    """Returns the first tensor of which a tensor is an alias with the same elements in the same order."""
    for _ in range(_MAX_DEPTH):
        made = facts.creator(number)
        if made is None or made.op not in _SAME_ELEMENTS or len(made.inputs) != 1:
            return number
        source = made.inputs[0].tensor
        if source == number or not _has_its_memory(facts, number, source, made):
            return number
        number = source
    return number


def _has_its_memory(facts: TraceIndex, number: int, source: int, made: Call) -> bool:
    storage = facts.tensor(number).storage
    return storage is not None and storage == facts.storage_of(source, made.index)


def is_one(facts: TraceIndex, one: int, other: int, at: int) -> bool:
    """Returns whether two tensors have the same elements in the same memory at event `at`."""
    if one == other:
        return True
    storage = facts.storage_of(one, at)
    if storage is None or storage != facts.storage_of(other, at) or _shape(facts, one) != _shape(facts, other):
        return False
    return origin(facts, one) == origin(facts, other) or _fill_it(facts, one, other, storage)


def _shape(facts: TraceIndex, number: int) -> tuple[int, ...]:
    return facts.tensor(number).shape


def _fill_it(facts: TraceIndex, one: int, other: int, storage: int) -> bool:
    """Returns whether two tensors that are no views have all of a storage: `.data = ...` has given one the memory of
    the other."""
    size = facts.trace.storages[storage].nbytes
    both = [facts.tensor(origin(facts, number)) for number in (one, other)]
    if both[0].shape != both[1].shape or both[0].dtype != both[1].dtype or any(t.base is not None for t in both):
        return False
    if "Parameter" not in {facts.tensor(one).type, facts.tensor(other).type}:
        return False
    return elements(both[0].shape) * item_size(both[0].dtype) == size


def elements(shape: tuple[int, ...]) -> int:
    count = 1
    for length in shape:
        count *= length
    return count


def item_size(dtype: str) -> int:
    """Returns the bytes of one element; 0 if the name of the dtype does not end with its bits."""
    digits = dtype[len(dtype.rstrip("0123456789")) :]
    return int(digits) // 8 if digits else {"bool": 1}.get(dtype, 0)


def operands(facts: TraceIndex, call: Call) -> list[Operand]:
    """Returns the inputs of a call with the names that its line reads them by, also through `.data` and `.detach()`."""
    known = _names(facts, call)
    names = [*known, *[None] * (len(call.inputs) - len(known))]
    return [_operand(facts, access.tensor, name, call) for access, name in zip(call.inputs, names, strict=False)]


def _names(facts: TraceIndex, call: Call) -> list[str | None]:
    """Returns the names by which a line reads the inputs of a call. An item is named as it is written: `ema[name]`, and
    `saved.pop(name)`."""
    known = list(facts.names.operands(call))
    node = facts.names.syntax.node(facts.trace.sites[call.site].span)
    for place, given in enumerate(node.args if isinstance(node, ast.Call) else (), 1):
        if place < len(known) and not known[place] and _takes_item(given):
            known[place] = ast.unparse(given)
    if known and known[0]:
        return known
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return known
    item = node.func.value
    is_method = call.op == f"Tensor.{node.func.attr}" and facts.names.syntax.is_direct(
        facts.trace.sites[call.site], call.op
    )
    if not is_method or not isinstance(item, ast.Subscript) or any(isinstance(n, ast.Call) for n in ast.walk(item)):
        return known
    return [ast.unparse(item), *known[1:]]


def _takes_item(node: ast.expr) -> bool:
    """Returns whether an expression takes an item out of a collection by a method."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("pop", "get")


def _operand(facts: TraceIndex, number: int, name: str | None, call: Call) -> Operand:
    for _ in range(_MAX_DEPTH):
        made = facts.creator(number)
        if made is None or made.op not in _SAME_ELEMENTS or len(made.inputs) != 1 or not _on_line(facts, made, call):
            break
        inner = _names(facts, made)
        number, name = made.inputs[0].tensor, inner[0] if inner else None
    return Operand(_bare(name or name_on_line(facts, number, call)), number)


def _bare(name: str | None) -> str | None:
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix) if name else name
    return name


def _on_line(facts: TraceIndex, made: Call, call: Call) -> bool:
    """Returns whether the run of a line that makes a call made another call before it, and nothing ran in between."""
    if not facts.same_line(made.site, call.site) or made.index > call.index:
        return False
    between = range(made.index, call.index)
    return len(between) <= 60 and all(
        facts.same_line(getattr(facts.event(index), "site", None), call.site) for index in between
    )


def name_on_line(facts: TraceIndex, number: int, call: Call) -> str | None:
    """Returns the name by which an earlier call on the same line reads a tensor: `a` in `a.mul_(2).add_(b)`."""
    for index in range(call.index - 1, max(call.index - 60, -1), -1):
        earlier = facts.call(index)
        if earlier is None or not facts.same_line(earlier.site, call.site):
            return None
        for access, name in zip(earlier.inputs, _names(facts, earlier), strict=False):
            if access.tensor == number and name:
                return name
    return None


def sources(facts: TraceIndex, number: int, call: Call) -> Iterator[Operand]:
    """Yields what the value of an operand is computed from on the line of a call: `p` and `q` for `0.1 * p + q`."""
    made = facts.creator(number)
    is_new = made is not None and takes_shape_only(made)  # `torch.zeros_like(p)` has no value of `p`
    if made is None or not _on_line(facts, made, call) or made.op in _SAME_ELEMENTS or is_new:
        yield _operand(facts, number, None, call)
        return
    for access, operand in zip(made.inputs, operands(facts, made), strict=True):
        inner = facts.creator(access.tensor)
        if inner is not None and _on_line(facts, inner, call) and inner.op not in _SAME_ELEMENTS:
            yield from sources(facts, access.tensor, call)
        else:
            yield operand


def are_two_things(facts: TraceIndex, call: Call, one: Operand, other: Operand) -> bool:
    """Returns whether a line reads two operands by names that do not show that they are one tensor.

    A variable that the same function has just given the other one, as in `w = layer.weight`, is only a shorter name.
    """
    if one.name is None or other.name is None or one.name == other.name:
        return False
    return not (_is_short_for(facts, call, one) or _is_short_for(facts, call, other))


def _is_short_for(facts: TraceIndex, call: Call, operand: Operand) -> bool:
    name, made = operand.name or "", facts.creator(operand.tensor)
    if not name.isidentifier():
        return False
    kept_since = any(made.index < backward.index < call.index for backward in facts.backwards) if made else False
    if kept_since and facts.tensor(operand.tensor).type != "Parameter":
        return False
    span = facts.trace.sites[call.site].span
    scope = scope_around(facts, span.file, span.line)
    return any(
        isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr)
        and any(plain_name(target) == name for target in _targets(node))
        for node in ast.walk(scope)
    )


def _targets(node: ast.Assign | ast.AnnAssign | ast.NamedExpr) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]
