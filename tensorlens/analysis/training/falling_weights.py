"""Finds trained weights of loss terms that nothing but the terms they multiply keeps from falling.

`loss = w * mse` with a trained `w` is lowest where `w` is: the optimizer lowers the weight and not the error. Learned
weights have another term of `w`, as `log(w)`, or a sum of 1; or the optimizer of the weights maximizes.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tensorlens.analysis.lineage import graph_leaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.changed_gradients import gradient_changes
from tensorlens.analysis.training.constant_terms import MAX_PASSES, op_name
from tensorlens.analysis.training.loss_calls import examined_passes
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.value_ranges import ADDING, SHAPING, is_scaled, never_negative
from tensorlens.records.model import Backward, Call
from tensorlens.records.training import OptimizerGroup

_PRODUCTS = frozenset("mul rmul imul".split())
_POSITIVE = frozenset("softplus exp sigmoid square abs".split())
_OF_WEIGHT = _POSITIVE | {"pow", "neg"}
_DESCENDING = frozenset("SGD Adam AdamW RMSprop Adagrad Adamax NAdam RAdam Adadelta".split())
_HOOKS = re.compile("register_.*hook")
_TURNING = frozenset("neg_ negative_ mul_ copy_ multiply_ set_".split())  # of a gradient, its sign, too
_MAX_CALLS = 400


@dataclass(frozen=True, slots=True)
class FallingWeight:
    """The product of a trained weight and a term of a loss that is never negative."""

    product: Call
    weight: int
    term: int
    parameter: int


@dataclass(slots=True)
class _Uses:
    """Collects the products in losses that each parameter is a weight in, and the parameters with another use."""

    weights: dict[int, FallingWeight] = field(default_factory=dict)
    others: set[int] = field(default_factory=set)


def falling_weights(training: MeasuredTraining) -> Iterator[FallingWeight]:
    """Yields one for each such parameter, of which no loss makes another use and no line changes the gradient."""
    facts = training.facts
    held = {row.tensor for row in training.rows if row.group is not None and _descends(row.group)}
    if not held or training.training.is_hidden or may_maximize(facts):
        return
    uses = _Uses()
    for backward in {each.index: each for each in (*examined_passes(facts), *_last_passes(facts))}.values():
        for root in backward.roots:
            _follow(facts, root.tensor, backward.index, uses)
    asked = {number for each in facts.backwards for number in each.inputs}
    changed = {leaf for change in gradient_changes(training) for leaf in change.leaves}
    for parameter, found in uses.weights.items():
        if parameter in held and parameter not in uses.others | asked | changed and not training.writes(parameter):
            yield found


def _descends(group: OptimizerGroup) -> bool:
    """Returns whether an optimizer of PyTorch has stepped a group by positive learning rates."""
    return group.steps > 0 and group.name in _DESCENDING and group.rates[0] >= 0 and group.rates[1] > 0


def _last_passes(facts: TraceIndex) -> Iterator[Backward]:
    """Yields the last passes of each line, at most MAX_PASSES."""
    counts: Counter[int] = Counter()
    for backward in reversed(facts.backwards):
        counts[backward.site] += 1
        if not backward.failed and backward.op != "autograd.grad" and counts[backward.site] <= MAX_PASSES:
            yield backward


def may_maximize(facts: TraceIndex) -> bool:
    """Returns whether the program writes `maximize`, registers hooks, gives `backward()` a gradient, or turns a
    `.grad`: then it may go up along gradients."""
    for node in (node for _, tree in facts.trees() for node in ast.walk(tree)):
        if isinstance(node, ast.keyword) and node.arg in ("maximize", "gradient"):
            return True
        if isinstance(node, ast.Constant) and node.value == "maximize":
            return True
        if (isinstance(node, ast.Attribute) and _HOOKS.match(node.attr)) or _turns_gradient(node):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "backward" and node.args:
                return True
    return False


def _turns_gradient(node: ast.AST) -> bool:
    """Returns whether a piece of source turns the sign of a `.grad`."""
    if isinstance(node, ast.AugAssign):
        return _is_gradient(node.target) and _is_negative(node.value)
    if isinstance(node, ast.Assign):
        return any(map(_is_gradient, node.targets)) and _is_negative(node.value)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    given = [*node.args, *(each.value for each in node.keywords)]
    is_turning = node.func.attr in _TURNING and _is_gradient(node.func.value)
    return is_turning and (not given or any(map(_is_negative, given)))


def _is_negative(node: ast.expr) -> bool:
    """Returns whether an expression has the sign of a number, or a negation, in it."""
    return any(isinstance(each, ast.USub) for each in ast.walk(node)) or "neg(" in ast.unparse(node)


def _is_gradient(node: ast.expr) -> bool:
    return ast.unparse(node).endswith((".grad", ".grad.data"))


def _follow(facts: TraceIndex, root: int, before: int, uses: _Uses) -> None:
    """Follows a root through sums, means and products with positive numbers, and notes what parameters it leads to."""
    waiting, seen = [(root, before)], set[int]()
    for number, limit in waiting:
        call = next(iter(facts.producers(number, limit)), None)
        if call is not None and call.index in seen:
            continue
        name = "" if call is None or len(seen) > _MAX_CALLS else op_name(call)
        seen.add(-1 if call is None else call.index)
        if call is not None and (name in ADDING or name in SHAPING or is_scaled(facts, call)):
            waiting += [(access.tensor, call.index) for access in call.inputs]
        elif call is not None and name in _PRODUCTS and len({access.tensor for access in call.inputs}) == 2:
            _note_product(facts, call, uses)
        else:
            uses.others |= graph_leaves(facts, number, limit)


def _note_product(facts: TraceIndex, call: Call, uses: _Uses) -> None:
    one, other = dict.fromkeys(access.tensor for access in call.inputs)
    for weight, term in ((one, other), (other, one)):
        parameter = _parameter_of(facts, weight, call.index)
        leaves = graph_leaves(facts, term, call.index)
        if parameter is not None and leaves and parameter not in leaves and never_negative(facts, term, call.index):
            uses.weights.setdefault(parameter, FallingWeight(call, weight, term, parameter))
            uses.others |= leaves
            return
    uses.others |= graph_leaves(facts, one, call.index) | graph_leaves(facts, other, call.index)


def _parameter_of(facts: TraceIndex, number: int, before: int) -> int | None:
    """Returns the leaf that a weight is an element, or a function of each element, of.

    A weight such as `-multiplier` has none: the loss raises the multiplier, as a dual ascent asks for.
    """
    is_positive = False
    for _ in range(_MAX_CALLS):
        if facts.is_leaf_requiring_grad(number, before - 1):
            return number
        call = next(iter(facts.producers(number, before)), None)
        if call is None or len(call.inputs) != 1 or op_name(call) not in _OF_WEIGHT | SHAPING:
            return None
        is_positive |= op_name(call) in _POSITIVE
        if op_name(call) == "neg" and not is_positive:
            return None
        number, before = call.inputs[0].tensor, call.index
    return None
