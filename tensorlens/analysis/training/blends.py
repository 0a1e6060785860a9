"""Finds the tensors that a value is a weighted sum of, as the blend of two models that `load_state_dict()` is given."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from math import nan

from tensorlens.analysis.literal_values import number_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.records.model import Call

_COPYING = frozenset("detach clone get to cpu float double deepcopy contiguous requires_grad".split())
_SUMS = frozenset("add radd iadd sub rsub isub".split())
_PRODUCTS = frozenset("mul rmul imul div truediv".split())
_MAX_CALLS = 24  # of one value


def blend_of(facts: TraceIndex, number: int, before: int, target: int) -> dict[int, float] | None:
    """Returns the tensors that a value is a weighted sum of, each with its weight: NaN if the source says no number.

    These are parameters, `target`, and tensors that no call has made. None if anything else is in the value, or if
    PyTorch itself computes it, as an average whose weights change.
    """
    return _weights(facts, number, before, _Search(target))


@dataclass(slots=True)
class _Search:
    target: int
    visited: int = 0


def copied_tensor(facts: TraceIndex, number: int, before: int) -> int:
    """Returns the tensor whose values a value is, without the copies between."""
    for _ in range(_MAX_CALLS):
        made = _maker(facts, number, before)
        if made is None or op_name(made) not in _COPYING:
            break
        number, before = made.inputs[0].tensor, made.index
    return number


def _maker(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Returns the call that made the value of a tensor, if it is no parameter."""
    if facts.tensor(number).type.endswith("Parameter"):
        return None
    made = next(iter(facts.producers(number, before)), None)
    return made if made is not None and made.inputs else None


def _weights(facts: TraceIndex, number: int, before: int, search: _Search) -> dict[int, float] | None:
    made = None if number == search.target else _maker(facts, number, before)
    search.visited += 1
    if made is None:
        return {number: 1}
    if search.visited > _MAX_CALLS:
        return None
    name, parts = op_name(made), made.inputs[:1] if op_name(made) in _COPYING else made.inputs
    if name not in _COPYING and facts.trace.sites[made.site].through:
        return None
    inner = [_weights(facts, access.tensor, made.index, search) for access in parts]
    known = [each for each in inner if each is not None]
    if len(known) < len(inner):
        return None
    if name in _COPYING:
        return known[0]
    node = facts.names.syntax.node(facts.trace.sites[made.site].span)
    file = facts.trace.sites[made.site].span.file
    if name in _PRODUCTS and len(known) == 1:
        factor = _factor(facts, file, node)
        return _scaled(known[0], 1 / factor if name in ("div", "truediv") and factor else factor)
    if name in _SUMS and len(known) == 2:
        one, other = known[::-1] if name == "rsub" else known
        sign = -1 if "sub" in name else 1
        return _sum(one, _scaled(other, sign * _alpha(facts, file, node)))
    if name == "lerp" and len(known) == 2:
        share = _weight(facts, file, node)
        return _sum(_scaled(known[0], 1 - share), _scaled(known[1], share))
    return None


def _scaled(weights: dict[int, float], factor: float) -> dict[int, float]:
    return {number: weight * factor for number, weight in weights.items()}


def _sum(one: dict[int, float], other: dict[int, float]) -> dict[int, float]:
    return {number: one.get(number, 0) + other.get(number, 0) for number in {**one, **other}}


def _number(facts: TraceIndex, file: str, node: ast.expr | None) -> float:
    found = None if node is None else number_of(facts, file, node)
    return nan if found is None else found


def _factor(facts: TraceIndex, file: str, node: ast.AST | None) -> float:
    """Returns the number in `0.9 * a`, `a * 0.9` and `a.mul(0.9)`."""
    if isinstance(node, ast.BinOp):
        numbers = [_number(facts, file, each) for each in (node.left, node.right)]
        known = [number for number in numbers if number == number]
        return known[0] if len(known) == 1 else nan
    given = node.args[-1] if isinstance(node, ast.Call) and node.args else None
    return _number(facts, file, node.value if isinstance(node, ast.AugAssign) else given)


def _alpha(facts: TraceIndex, file: str, node: ast.AST | None) -> float:
    given = [each.value for each in node.keywords if each.arg == "alpha"] if isinstance(node, ast.Call) else []
    return _number(facts, file, given[0]) if given else 1


def _weight(facts: TraceIndex, file: str, node: ast.AST | None) -> float:
    """Returns the weight in `a.lerp(b, 0.1)` and `torch.lerp(a, b, 0.1)`."""
    if not isinstance(node, ast.Call):
        return nan
    given = [each.value for each in node.keywords if each.arg == "weight"] or node.args[-1:]
    return _number(facts, file, given[0]) if given else nan
