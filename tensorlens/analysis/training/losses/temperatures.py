"""Finds losses that compare two distributions over classes, of which one has a temperature and the other has none."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.literal_values import number_of
from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, loss_calls
from tensorlens.analysis.training.summand_weights import factor_sides
from tensorlens.records.model import Call

_COMPARED = frozenset(("kl_div", "cross_entropy"))
_PRODUCTS = frozenset(("mul", "rmul"))
_SOFTMAX = frozenset(("softmax", "log_softmax"))
_SAME = frozenset(
    "view reshape squeeze unsqueeze flatten contiguous float to detach clone getitem stack cat index_select unbind "
    "chunk split select transpose permute requires_grad".split()
)
_TO_SOFTMAX = _SAME | frozenset("log clamp clip clamp_min add radd exp sub".split())
_LAYERS = frozenset("linear conv1d conv2d addmm".split())
_DIVISIONS = frozenset(("div", "truediv", "true_divide"))
_INITIAL = re.compile(r"init\.|\.(uniform|normal|zero|fill|trunc_normal)_$")
_COPIES = ("load_state_dict", ".to", ".cuda", ".cpu", ".float", ".double", ".half")  # ends of library functions
_MAX_CALLS = 12


@dataclass(frozen=True, slots=True)
class OneTemperature:
    """A loss of two distributions: the scores of `warm` were divided by a number, those of `plain` were not."""

    loss: Call
    warm: Call
    plain: Call
    divided: Call
    is_student: bool  # the distribution with the temperature has a gradient


@dataclass(frozen=True, slots=True)
class _Scores:
    """The scores of a distribution: what makes it of them, and the division of them, if there is one."""

    made: Call
    divided: Call | None
    layer: Call


def one_temperatures(facts: TraceIndex) -> Iterator[OneTemperature]:
    """Yields these losses, each line once."""
    reported: set[int] = set()
    for backward in examined_passes(facts):
        for call in loss_calls(facts, backward):
            found = _found(facts, call) if call.site not in reported else None
            if found is not None:
                reported.add(call.site)
                yield found


def _found(facts: TraceIndex, call: Call) -> OneTemperature | None:
    if op_name(call) not in _COMPARED | _PRODUCTS or len(call.inputs) != 2:
        return None
    shapes = {facts.tensor(access.tensor).shape for access in call.inputs}
    sides = [_side(facts, access.tensor, call) for access in call.inputs]
    if len(shapes) != 1 or any(side is None for side in sides):
        return None
    one, other = (side for side in sides if side is not None)
    graphs = [facts.requires_grad(side.made.outputs[0].tensor, side.made.index) for side in (one, other)]
    if op_name(call) == "cross_entropy":
        graphs[0] = True
    if sum(graphs) != 1 or (one.divided is None) == (other.divided is None) or one.made.index == other.made.index:
        return None
    warm, plain = (one, other) if one.divided is not None else (other, one)
    is_student = (graphs[0] and warm is one) or (graphs[1] and warm is other)
    if warm.divided is None or not _is_temperature(facts, warm.divided):
        return None
    if _is_own(facts, warm.divided, warm, plain) or _divides_more(facts, warm.divided):
        return None
    if _is_scaled(facts, plain.layer):
        return None
    return OneTemperature(call, warm.made, plain.made, warm.divided, is_student)


def _side(facts: TraceIndex, number: int, user: Call) -> _Scores | None:
    """Returns the scores of a distribution that a loss is given, if a layer has made them."""
    made = _softmax(facts, number, user)
    if made is None and op_name(user) == "cross_entropy" and number == user.inputs[0].tensor:
        return _scores(facts, number, user)
    return None if made is None or not made.inputs else _scores(facts, made.inputs[0].tensor, made)


def _softmax(facts: TraceIndex, number: int, user: Call) -> Call | None:
    """Returns the softmax that made probabilities or their logarithms; of a difference, that with a gradient."""
    before = user.index
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or op_name(made) in _SOFTMAX or op_name(made) not in _TO_SOFTMAX or not made.inputs:
            return made if made is not None and op_name(made) in _SOFTMAX else None
        inputs = [access.tensor for access in made.inputs]
        if op_name(made) in ("add", "radd", "sub") and len(inputs) > 1:
            inputs = [each for each in inputs if facts.requires_grad(each, made.index - 1)]
            if op_name(made) != "sub" or len(inputs) != 1:
                return None
        number, before = inputs[0], made.index
    return None


def _scores(facts: TraceIndex, number: int, user: Call) -> _Scores | None:
    """Returns whether scores are divided between a layer and a call; None if they may have been changed otherwise."""
    before, divided = user.index, None
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or made.writes:
            return None
        if op_name(made) in _LAYERS:
            return _Scores(user, divided, made)
        if op_name(made) in _DIVISIONS and len(made.inputs) == 1 and divided is None:
            divided = made
        elif op_name(made) not in _SAME or not made.inputs:
            return None
        number, before = made.inputs[0].tensor, made.index
    return None


def _is_temperature(facts: TraceIndex, divided: Call) -> bool:
    """Returns whether the source multiplies by the square of the divisor, as distillation does: a student may divide
    by its time steps, and another number sharpens the targets."""
    span, sides = facts.span(divided.site), factor_sides(facts, divided, only_last=True)
    if span is None or not sides:
        return False
    value = number_of(facts, span.file, sides[-1])
    if value is not None and value <= 1:
        return False
    return _is_squared(facts, last_name(sides[-1]), value)


def _is_own(facts: TraceIndex, divided: Call, warm: _Scores, plain: _Scores) -> bool:
    """Returns whether the `forward()` of one of the models divides, which may scale its scores for a reason."""
    scope = facts.scope(divided.site)
    inside, others = ({facts.scope(at) for at in facts.call_chain(side.layer.site)} for side in (warm, plain))
    return str(scope[1]).split(".")[-1] in ("forward", "__call__") and scope in inside - others


def _is_scaled(facts: TraceIndex, layer: Call) -> bool:
    """Returns whether the program changes the parameters of a layer in place after their initialisation, as one that
    softens the scores of a teacher once, or sets them anew."""
    known = [each.tensor for each in layer.inputs if facts.tensor(each.tensor).type.endswith("Parameter")]
    storages = {storage for number in known for storage in facts.storages_of(number)}
    if not known or any(len(facts.storages_of(number)) > 1 for number in known):
        return True
    for call in facts.calls:
        if any(facts.tensor(write.tensor).storage in storages for write in call.writes) and not call.within:
            through = facts.trace.sites[call.site].through
            if _INITIAL.search(call.op) is None and not through.endswith(_COPIES):
                return True
    return False


def _divides_more(facts: TraceIndex, divided: Call) -> bool:
    """Returns whether the program divides by a temperature elsewhere, too: the other model's weights, for example."""
    span, side = facts.span(divided.site), factor_sides(facts, divided, only_last=True)[-1]
    name, number = last_name(side), side.value if isinstance(side, ast.Constant) else None
    for file, tree in facts.trees():
        for node in ast.walk(tree):
            by: list[ast.expr] = []
            if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div):
                by = [node.right if isinstance(node, ast.BinOp) else node.value]
            elif isinstance(node, ast.Call) and called_name(node).strip("_") in ("div", "true_divide"):
                by = node.args
            if any(last_name(each) == name if name else _has_number(each, number) for each in by):
                if span is None or facts.span_of(node, file) != span:
                    return True
    return False


def _has_number(node: ast.expr, number: object) -> bool:
    return isinstance(node, ast.Constant) and node.value == number


def _is_squared(facts: TraceIndex, name: str, value: float | None) -> bool:
    for _, tree in facts.trees():
        for node in ast.walk(tree):
            if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Pow | ast.Mult):
                continue
            right, left = node.right, node.left
            is_power = isinstance(node.op, ast.Pow) and isinstance(right, ast.Constant) and right.value == 2
            if name and last_name(left) == name and (is_power or last_name(right) == name):
                return True
            if name and isinstance(left, ast.BinOp) and last_name(right) == last_name(left.right) == name:
                return True
            ends = [each.value for each in (left, right) if isinstance(each, ast.Constant)]
            if not name and value is not None and isinstance(node.op, ast.Mult) and value**2 in ends:
                return True
    return False
