"""Finds losses that are subtracted although a layer before them turns the sign of their gradient, too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import method_of
from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.factor_signs import factor_sign
from tensorlens.analysis.training.falling_weights import may_maximize
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_from
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Backward, Call

_ADDING = frozenset("add radd iadd mean sum view reshape squeeze float stack cat div truediv".split())
_LOSSES = frozenset("cross_entropy binary_cross_entropy binary_cross_entropy_with_logits kl_div".split())
_MAX_CALLS = 200
_MAX_TARGET = 8  # calls behind a target


@dataclass(frozen=True, slots=True)
class TurnedSign:
    """A loss that is subtracted, the call that subtracts it, and the custom Function that turns its gradient."""

    loss: Call
    subtracted: Call
    reversal: Call


def turned_signs(facts: TraceIndex) -> Iterator[TurnedSign]:
    """Yields these losses, one for each line that subtracts."""
    reversing = set(_reversing_functions(facts))
    reported: set[int] = set()
    for backward in examined_passes(facts) if reversing and not may_maximize(facts) else ():
        found = list(_losses(facts, backward))
        added = {loss.index for loss, turned in found if turned is None}
        for loss, subtracted in found:
            if subtracted is None or loss.index in added or _is_entropy(facts, loss):
                continue
            above = recorded_from(facts, [(access.tensor, loss.index) for access in loss.inputs])
            reversal = next((call for call in above if call.op.removesuffix(".apply") in reversing), None)
            if reversal is not None and subtracted.site not in reported:
                reported.add(subtracted.site)
                yield TurnedSign(loss, subtracted, reversal)


def _is_entropy(facts: TraceIndex, loss: Call) -> bool:
    """Returns whether the target of a loss is computed from its own scores, so that the loss is their entropy: this
    is raised by the last layer and lowered by those before, as a minimax of entropy asks for."""
    scores, *targets = (access.tensor for access in loss.inputs[:2])
    above = (made for target in targets for _, made in ancestry(facts, target, loss.index, _MAX_TARGET))
    return any(access.tensor == scores for made in above for access in made.inputs)


def _reversing_functions(facts: TraceIndex) -> Iterator[str]:
    """Yields the classes whose `backward` returns the gradient that it is given with the other sign."""
    for _, tree in facts.trees():
        for node in ast.walk(tree):
            method = method_of(node, "backward") if isinstance(node, ast.ClassDef) else None
            if isinstance(node, ast.ClassDef) and method is not None and _turns(method):
                yield node.name


def _turns(method: ast.FunctionDef) -> bool:
    """Returns whether a function returns one of its arguments with the other sign, also by a name of its own."""
    given = {argument.arg for argument in method.args.args} - {"self", "ctx"}
    values: dict[str, list[ast.expr]] = {}
    for node in ast.walk(method):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            values.setdefault(node.targets[0].id, []).append(node.value)
    turned = {name for name, each in values.items() if len(each) == 1 and _is_negative(each[0], given)}
    returned = [each.value for each in ast.walk(method) if isinstance(each, ast.Return)]
    first = [each.elts[0] if isinstance(each, ast.Tuple) and each.elts else each for each in returned]
    return any(_is_negative(each, given) or (isinstance(each, ast.Name) and each.id in turned) for each in first)


def _is_negative(value: ast.expr | None, given: set[str]) -> bool:
    """Returns whether an expression is a negative number of times a gradient."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        name, parts = value.func.attr, [value.func.value, *value.args]
        if name in ("neg", "negative"):
            return any(_names(part) & given for part in parts)
        signs = [_is_negative(part, given | _names(part)) for part in parts]
        return name in ("mul", "multiply") and signs.count(True) == 1 and bool(_names(value) & given)
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult | ast.Div):
        signs = [_is_negative(side, given | _names(side)) for side in (value.left, value.right)]
        return signs.count(True) == 1 and bool(_names(value) & given)
    if not isinstance(value, ast.UnaryOp) or not isinstance(value.op, ast.USub):
        return False
    return isinstance(value.operand, ast.Constant) or bool(_names(value) & given)


def _names(node: ast.expr) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _losses(facts: TraceIndex, backward: Backward) -> Iterator[tuple[Call, Call | None]]:
    """Yields the losses that the root of a pass is a sum of, each with the call that subtracts it, if one does."""
    waiting: list[tuple[int, int, Call | None]] = [(root.tensor, backward.index, None) for root in backward.roots]
    seen = 0
    for number, before, turned in waiting:
        call, seen = next(iter(facts.producers(number, before)), None), seen + 1
        if call is None or seen > _MAX_CALLS:
            continue
        name = op_name(call)
        if name in _LOSSES or name.endswith("_loss"):
            yield call, turned
        for place, access in enumerate(call.inputs):
            sign = sign_in_sum(facts, call, place)
            if sign is not None:
                flipped = call if turned is None else None
                waiting.append((access.tensor, call.index, flipped if sign < 0 else turned))


def sign_in_sum(facts: TraceIndex, call: Call, place: int) -> int | None:
    """Returns the sign that an input has in the result of a sum, difference or product with a number; None if the call
    is another one."""
    name = op_name(call)
    scale = _alpha_sign(facts, call) if place else 1
    if name in ("sub", "isub"):
        return -scale if place else 1
    if name == "neg" or (name == "rsub" and len(call.inputs) == 1):
        return -1
    if name in ("mul", "rmul", "imul") and len(call.inputs) == 1:
        return factor_sign(facts, call)
    return scale if name in _ADDING else None


def _alpha_sign(facts: TraceIndex, call: Call) -> int:
    """Returns -1 if a call has a negative `alpha`, as `torch.add(one, other, alpha=-0.1)`, else 1."""
    node = facts.node_at(call.site)
    given = [each.value for each in node.keywords if each.arg == "alpha"] if isinstance(node, ast.Call) else []
    number = written_number(facts, given[0]) if given else None
    return -1 if number is not None and number < 0 else 1
