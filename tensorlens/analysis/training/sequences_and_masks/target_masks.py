"""Finds the masks that compare targets with an id, and the calls that set those targets to a number by such a mask."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from tensorlens.analysis.code_around import statement_around
from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.triangles import NOT
from tensorlens.analysis.training.value_ranges import RESHAPING
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

_SAME = RESHAPING - {"expand", "expand_as", "repeat"} | frozenset("ravel cpu cuda byte to_dense".split())
_BOTH, _EITHER = frozenset(("and", "logical_and")), frozenset(("or", "logical_or"))
_FILLS = frozenset(("masked_fill", "setitem"))
_JOINS = frozenset(("stack", "cat"))
_PADDING_ROWS = frozenset(("pad_sequence",))
_ONE_NUMBER = frozenset("tensor full full_like new_full new_tensor".split())
_WITH_CHOICE = 3  # arguments of `where`
_MAX_CALLS, _MAX_PARTS, _MAX_FILLS = 12, 64, 1_000
Use = tuple[int, int]  # a tensor, and the event that uses it
Is = Callable[[ast.expr], bool]


@dataclass(frozen=True, slots=True)
class HiddenId:
    """An id by its names in the program, and its number if the source says it."""

    names: frozenset[str]
    number: int | None

    def is_it(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Subscript):
            node = node.slice
        if isinstance(node, ast.Constant):
            is_number = type(node.value) is int and node.value == self.number
            return is_number or (isinstance(node.value, str) and node.value.strip("<>[]|") in self.names)
        return last_name(node) in self.names


def comparison_of(facts: TraceIndex, mask: Use, targets: int, hidden: HiddenId, at_id: bool) -> Call | None:
    """Returns the comparison by which a mask is True where targets equal an id, or False with `at_id=False`."""
    number, before = mask
    parts: list[str] = []
    for _ in range(_MAX_FILLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return None
        if _sets_part(facts, made, partial(_is_value, facts, at_id)):
            before = made.index
            continue
        name, others = op_name(made), [access.tensor for access in made.inputs]
        if name in (_EITHER if at_id else _BOTH):
            found = (comparison_of(facts, (each, made.index), targets, hidden, at_id) for each in others if not parts)
            return next((each for each in found if each is not None), None)
        if len(others) > 1:
            return None
        other = _other_side(facts, made) if name in ("eq", "ne") else None
        if other is not None and hidden.is_it(other):
            if _origin(facts, others[0], parts) == _origin(facts, targets, ()):
                return made if (name == "eq") == at_id else None
        value = None if other is None else written_number(facts, other)
        if name in NOT or (value is not None and value == (name == "ne")):
            at_id = not at_id
        elif name not in _SAME and value not in (0, 1):
            return None
        parts += _part(facts, made)
        number, before = others[0], made.index
    return None


def _is_value(facts: TraceIndex, value: bool, node: ast.expr) -> bool:
    written = node.value if isinstance(node, ast.Constant) else written_number(facts, node)
    return written == value


def _other_side(facts: TraceIndex, comparison: Call) -> ast.expr | None:
    node = facts.node_at(comparison.site)
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        is_first = isinstance(node.left, ast.Constant)
        return sides[0 if is_first else -1] if len(sides) == 2 else None
    return node.args[-1] if isinstance(node, ast.Call) and node.args else None


def _origin(facts: TraceIndex, number: int, parts: Iterable[str]) -> tuple[int, list[str]]:
    """Returns the ids that a tensor has its values from, and the parts of them that it has, the last one first."""
    found = list(parts)
    for _ in range(_MAX_CALLS):
        made = facts.creator(number)
        if made is None or len(made.inputs) != 1 or op_name(made) not in _SAME:
            break
        found += _part(facts, made)
        number = made.inputs[0].tensor
    return number, found


def _part(facts: TraceIndex, call: Call) -> list[str]:
    """Returns the index of a call that takes a part of a tensor, without new dimensions."""
    if op_name(call) != "getitem":
        return []
    node = facts.node_at(call.site)
    if not isinstance(node, ast.Subscript):
        return [f"call {call.index}"]
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return [", ".join(ast.unparse(each) for each in indices if ast.unparse(each) != "None")]


def filled_by_mask(facts: TraceIndex, targets: Use, hidden: HiddenId, is_ignored: Is) -> Call | None:
    """Returns the comparison by which the targets that equal an id were set to a number that a loss ignores, if nothing
    but such fills has changed them from there on."""
    number, before = targets
    for _ in range(_MAX_FILLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return None
        name = op_name(made)
        if name in _JOINS or name in _PADDING_ROWS:
            return None if name in _PADDING_ROWS and not _pads(facts, made, is_ignored) else _of_all(
                facts, made, hidden, is_ignored)  # fmt: skip
        before = made.index
        if _sets_part(facts, made, is_ignored):
            continue
        if name in _FILLS or name == "where":
            fill = _fill(facts, made, is_ignored)
            if fill is None:
                return None
            mask, at_id, base = fill
            compared = comparison_of(facts, (mask, made.index), base, hidden, at_id)
            if compared is not None:
                return compared if _is_kept(facts, base, compared, made, is_ignored) else None
            number = base
        elif name in _SAME and len(made.inputs) == 1:
            number = made.inputs[0].tensor
        else:
            return None
    return None


def _sets_part(facts: TraceIndex, made: Call, is_such: Is) -> bool:
    """Returns whether a call sets a part, which no tensor gives, to a number."""
    span = facts.span(made.site)
    statement = statement_around(facts, span) if span is not None and op_name(made) == "setitem" else None
    if len(made.inputs) != 1 or not isinstance(statement, ast.Assign) or not _is_number(statement.value, is_such):
        return False
    places = [each.slice for each in statement.targets if isinstance(each, ast.Subscript)]
    parts = [each.elts[-1] if isinstance(each, ast.Tuple) and each.elts else each for each in places]
    return bool(parts) and all(isinstance(each, ast.Slice) for each in parts)


def _of_all(facts: TraceIndex, made: Call, hidden: HiddenId, is_ignored: Is) -> Call | None:
    parts = [access.tensor for access in made.inputs][:_MAX_PARTS]
    found = [filled_by_mask(facts, (each, made.index), hidden, is_ignored) for each in dict.fromkeys(parts)]
    return found[0] if None not in found else None


def _pads(facts: TraceIndex, made: Call, is_ignored: Is) -> bool:
    node = facts.node_at(made.site)
    given = [each.value for each in node.keywords if each.arg == "padding_value"] if isinstance(node, ast.Call) else []
    return any(is_ignored(each) for each in given)


def _fill(facts: TraceIndex, fill: Call, is_ignored: Is) -> tuple[int, bool, int] | None:
    """Returns the mask of a call that sets targets to an ignored number, whether it sets those where it is True, and
    the targets."""
    masks = [access.tensor for access in fill.inputs if facts.tensor(access.tensor).dtype == "bool"]
    others = [access.tensor for access in fill.inputs if access.tensor not in masks]
    span, node = facts.span(fill.site), facts.node_at(fill.site)
    if len(masks) != 1 or not others or span is None:
        return None
    if op_name(fill) == "setitem":
        statement = statement_around(facts, span)
        is_set = isinstance(statement, ast.Assign) and _is_number(statement.value, is_ignored)
        return (masks[0], True, others[0]) if is_set and len(fill.inputs) == len(masks) + 1 else None
    if not isinstance(node, ast.Call):
        return None
    given = [*node.args, *(each.value for each in node.keywords)]
    if op_name(fill) == "masked_fill":
        return (masks[0], True, others[0]) if given and _is_number(given[-1], is_ignored) else None
    if len(given) + fill.op.startswith("Tensor.") != _WITH_CHOICE:
        return None
    is_last = _is_number(given[-1], is_ignored)
    is_first = called_name(node) == "where" and not fill.op.startswith("Tensor.") and _is_number(given[1], is_ignored)
    return (masks[0], is_first, others[-1 if is_first else 0]) if is_first != is_last else None


def _is_number(node: ast.expr, is_ignored: Is) -> bool:
    if isinstance(node, ast.Call) and called_name(node) in _ONE_NUMBER and node.args:
        node = node.args[0 if "tensor" in called_name(node) else -1]
    return is_ignored(node)


def _is_kept(facts: TraceIndex, targets: int, compared: Call, fill: Call, is_ignored: Is) -> bool:
    """Returns whether only fills with the ignored number come between the comparison and the fill."""
    for event, _ in facts.writes(facts.tensor(targets).counter):
        is_between = compared.index < event.index < fill.index
        if is_between and not (isinstance(event, Call) and _is_fill(facts, event, is_ignored)):
            return False
    return True


def _is_fill(facts: TraceIndex, call: Call, is_ignored: Is) -> bool:
    return _sets_part(facts, call, is_ignored) or _fill(facts, call, is_ignored) is not None
