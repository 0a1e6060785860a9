"""Finds hinges of two distances, as of triplets, whose margin or whose two terms have the wrong sign.

`relu(d(a, p) - d(a, n) + margin)` asks the distance to a negative to be greater by a margin. With `- margin`, or with
the two exchanged, it asks for something else. A similarity counts as a distance with the other sign.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.literal_values import number_of
from tensorlens.analysis.naming.name_words import words_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, loss_calls, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.pairs.measured_distances import distance_of
from tensorlens.analysis.training.value_ranges import keeps_above_zero
from tensorlens.records.model import Backward, Call

_NEAR = frozenset("pos positive positives ap chosen".split())
_FAR = frozenset("neg negative negatives an rejected".split())
_ANCHORS = frozenset(("a", "anchor", "anchors"))  # beside one of these, "p" and "n" are words, too
_TRIPLETS = frozenset(("triplet_margin_loss", "triplet_margin_with_distance_loss"))
_SAME = frozenset("squeeze unsqueeze view reshape flatten float".split())
_LAYERS = frozenset("linear conv1d conv2d conv3d".split())
_MAX_CALLS, _LEAST = 8, 1e-4


@dataclass(frozen=True, slots=True)
class Hinge:
    """A hinge of two distances. `margin` is below zero, or the terms are exchanged: `near` is what it lowers."""

    call: Call
    margin: float | None
    near: str
    far: str
    is_wrong: bool = True


@dataclass(frozen=True, slots=True)
class _Term:
    number: int
    before: int
    sign: int
    written: str


def wrong_hinges(training: MeasuredTraining) -> Iterator[Hinge]:
    """Yields these hinges, one for each line. Beside one of the right sign, the other may be meant, as a bound."""
    facts, found = training.facts, dict[int, Hinge]()
    for backward in examined_passes(facts):
        if _passes_fixed_layer(training, backward):
            continue
        for call in loss_calls(facts, backward):
            hinge = None if call.site in found else _triplets(facts, call) or _hinge(facts, call, backward)
            if hinge is not None:
                found[call.site] = hinge
    if all(each.is_wrong for each in found.values()):
        yield from found.values()


def _triplets(facts: TraceIndex, call: Call) -> Hinge | None:
    """Returns a loss of triplets, which is wrong if the negative comes before the positive, by their names."""
    node = facts.node_at(call.site)
    if op_name(call) not in _TRIPLETS:
        return None
    if not isinstance(node, ast.Call) or len(node.args) < 3 or any(isinstance(each, ast.Starred) for each in node.args):
        return Hinge(call, None, "", "", is_wrong=False)
    second, third = (ast.unparse(each) for each in node.args[1:3])
    has_anchor = bool(_ANCHORS & set(words_of(ast.unparse(node.args[0]))))
    return Hinge(call, None, second, third, is_wrong=_is_turned(second, third, has_anchor))


def _passes_fixed_layer(training: MeasuredTraining, backward: Backward) -> bool:
    """Returns whether gradients go through a layer that no step changes, as to an input that is to mislead it."""
    facts = training.facts
    for call in recorded_above(facts, backward):
        if op_name(call) not in _LAYERS or len(call.inputs) < 2:
            continue
        row = training.row(call.inputs[1].tensor)
        is_fixed = not facts.requires_grad(call.inputs[1].tensor, call.index - 1)
        is_held = row is None or row.is_stepped
        if (is_fixed or not is_held) and facts.requires_grad(call.inputs[0].tensor, call.index - 1):
            return True
    return False


def _is_bound(facts: TraceIndex, near: _Term, far: _Term, backward: Backward) -> bool:
    """Returns whether a negative margin may be meant: by its names the pair that is lowered is the farther one, or
    another term of the loss has the same two distances."""
    if _is_named(near.written, _FAR, _NEAR) or _is_named(far.written, _NEAR, _FAR):
        return True
    read = [access.tensor for call in recorded_above(facts, backward) for access in call.inputs]
    return read.count(near.number) > 1 and read.count(far.number) > 1


def _hinge(facts: TraceIndex, call: Call, backward: Backward) -> Hinge | None:
    if not keeps_above_zero(facts, call) or op_name(call) == "softplus":
        return None
    found = [parts for access in call.inputs if (parts := _parts(facts, access.tensor, call.index)) is not None]
    if len(found) != 1 or len(found[0][0]) != 2:
        return None
    (one, other), margin = found[0]
    measured = [distance_of(facts, each.number, each.before) for each in (one, other)]
    if measured[0] is None or measured[1] is None or not measured[0].operands & measured[1].operands:
        return None
    if not all(facts.requires_grad(each.number, each.before - 1) for each in (one, other)):
        return None  # a distance without a graph is a bound
    lowers = one.sign * measured[0].sign, other.sign * measured[1].sign
    if sorted(lowers) != [-1, 1]:
        return None
    near, far = (one, other) if lowers[0] > 0 else (other, one)
    if margin < -_LEAST:
        is_bound = _is_bound(facts, near, far, backward)
        return Hinge(call, margin, near.written, far.written, is_wrong=not is_bound)
    has_anchor = all(_ANCHORS & set(words_of(each.written)) for each in (one, other))
    is_turned = _is_turned(near.written, far.written, has_anchor)
    return Hinge(call, None, near.written, far.written, is_turned)


def _is_turned(near: str, far: str, has_anchor: bool) -> bool:
    """Returns whether the pair to be nearer has the name of a negative, and the other one that of a positive."""
    positive, negative = (_NEAR | {"p"}, _FAR | {"n"}) if has_anchor else (_NEAR, _FAR)
    return _is_named(near, negative, positive) and _is_named(far, positive, negative)


def _is_named(written: str, words: frozenset[str], others: frozenset[str]) -> bool:
    found = set(words_of(written))
    return bool(found & words) and not found & others


def _parts(facts: TraceIndex, number: int, before: int) -> tuple[list[_Term], float] | None:
    """Returns the tensors that a tensor is the sum of, with their signs, and the plain number in this sum."""
    waiting, found, total = [_Term(number, before, 1, "")], list[_Term](), 0.0
    for count, each in enumerate(waiting):
        made = next(iter(facts.producers(each.number, each.before)), None)
        node = None if made is None else facts.node_at(made.site)
        if made is None or count > _MAX_CALLS:
            return None
        name, tensors = op_name(made).removeprefix("i"), [access.tensor for access in made.inputs]
        if name in _SAME and len(tensors) == 1:
            waiting.append(_Term(tensors[0], made.index, each.sign, each.written))
        elif name == "neg":
            waiting.append(_Term(tensors[0], made.index, -each.sign, each.written))
        elif name in ("add", "radd", "sub", "rsub") and isinstance(node, ast.BinOp):
            turned = -1 if "sub" in name else 1
            if len(tensors) == 2:
                waiting.append(_Term(tensors[0], made.index, each.sign, ast.unparse(node.left)))
                waiting.append(_Term(tensors[1], made.index, each.sign * turned, ast.unparse(node.right)))
                continue
            plain = _plain(facts, made, node)
            if plain is None:
                return None
            side, value, is_left = plain
            total += each.sign * value * (1 if is_left else turned)
            waiting.append(_Term(tensors[0], made.index, each.sign * (turned if is_left else 1), ast.unparse(side)))
        else:
            found.append(each)
    return (found, total) if all(each.written for each in found) else None


def _plain(facts: TraceIndex, made: Call, node: ast.BinOp) -> tuple[ast.expr, float, bool] | None:
    """Returns the tensor's side of a sum or a difference, the number of the other, and whether that is the left one."""
    span = facts.span(made.site)
    left, right = (None if span is None else number_of(facts, span.file, side) for side in (node.left, node.right))
    if (left is None) == (right is None):
        return None
    return (node.right, left, True) if left is not None else (node.left, right or 0.0, False)
