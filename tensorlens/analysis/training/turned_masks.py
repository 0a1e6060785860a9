"""Finds masks of attention that hide those before each position, and maybe itself, and leave the later ones.

`scaled_dot_product_attention` attends where a mask of bools is True; `nn.MultiheadAttention` and `masked_fill` hide
what is True. A causal mask for one of them is turned round for the other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from math import isinf

from tensorlens.analysis.code_around import function_around
from tensorlens.analysis.naming.name_words import words_of_last
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.next_steps import predicts_next, predicts_previous
from tensorlens.analysis.written_dimension import written_dimension
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Backward, Call

DOT, LAYER = "scaled_dot_product_attention", "multi_head_attention_forward"
FILLS = frozenset(("masked_fill", "masked_fill_"))
SAME = frozenset("getitem unsqueeze squeeze expand view to bool contiguous clone detach type_as".split())
NOT = frozenset("invert logical_not bitwise_not not".split())
_INPUTS = 3  # query, key, value
_MAX_CALLS = 8
_HIDING = -1e3  # a score that no other position needs
_WEIGHTED = frozenset("matmul bmm einsum".split())
_KEPT = frozenset("dropout nan_to_num to float type_as".split())  # between the softmax and the product
_MAX_LATER = 12
_AHEAD = frozenset("anti non acausal reverse reversed backward future".split())


@dataclass(frozen=True, slots=True)
class TurnedMask:
    """A call that takes a mask, the mask, and the triangle that it was made from."""

    call: Call
    mask: int
    triangle: Call
    attends: bool  # where the mask is True; else it hides there
    is_sure: bool  # what is hidden has no weight at all, not a small one
    itself: bool  # each position sees itself, too


def turned_masks(facts: TraceIndex) -> Iterator[TurnedMask]:
    """Yields these masks, one for each line. A program that masks both directions, each once, means to."""
    found: dict[int, TurnedMask] = {}
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            leaves_later, mask = _of_call(facts, call)
            if leaves_later is False:
                return
            if mask is not None and (not mask.itself or _looks_back(facts, mask, backward)):
                found.setdefault(call.site, mask)
    yield from found.values()


def _of_call(facts: TraceIndex, call: Call) -> tuple[bool | None, TurnedMask | None]:
    """Returns whether a call leaves each position those after it, and the facts if so; False if it leaves those before
    it, and None if it uses no such mask."""
    name = op_name(call)
    given = hiding_mask(facts, call) if name in FILLS else next(iter(attention_masks(facts, call)), None)
    if given is None:
        return None, None
    mask, before, is_sure = given
    found = _triangle(facts, mask, before)
    if found is None or len(facts.tensor(mask).shape) < 2 or len(set(facts.tensor(mask).shape[-2:])) != 1:
        return None, None
    triangle, is_not = found
    is_later = _is_later(facts, triangle)
    attends = name == DOT
    if is_later is None and _keeps_itself(facts, triangle, is_not != attends):
        return True, TurnedMask(call, mask, triangle, attends, is_sure, itself=True)
    if is_later is None:
        is_before = ((op_name(triangle) == "triu") != is_not) != attends
        return (False if is_before else None), None
    leaves_later = (is_later != is_not) == attends
    return leaves_later, TurnedMask(call, mask, triangle, attends, is_sure, False) if leaves_later else None


def _looks_back(facts: TraceIndex, mask: TurnedMask, backward: Backward) -> bool:
    """Returns whether a model is to predict the next step, or the source calls a mask causal: others may look ahead."""
    span = facts.span(mask.triangle.site)
    around = None if span is None else function_around(facts, span.file, span.line)
    names = [facts.name(mask.mask, mask.call.index) or "", "" if around is None else around.name]
    names += [] if around is None else [each.arg for each in (*around.args.args, *around.args.kwonlyargs)]
    words = {word for name in names for word in words_of_last(name)}
    is_causal = "causal" in words and not words & _AHEAD and not predicts_previous(facts, backward)
    return is_causal or predicts_next(facts, backward)


def _keeps_itself(facts: TraceIndex, triangle: Call, is_kept: bool) -> bool:
    """Returns whether a triangle of ones leaves each position itself and those after it."""
    diagonal = _diagonal(facts, triangle)
    return diagonal == (0 if is_kept else -1) and (op_name(triangle) == "triu") == is_kept


def attention_masks(facts: TraceIndex, call: Call) -> list[tuple[int, int, bool]]:
    """Returns the bools that attention is given, each with the event that uses them, and True.

    A layer makes numbers of them first.
    """
    if op_name(call) not in (DOT, LAYER):
        return []
    found: list[tuple[int, int, bool]] = []
    given = {access.tensor for access in call.inputs[:_INPUTS]}
    for number in (access.tensor for access in call.inputs[_INPUTS:] if access.tensor not in given):
        if facts.tensor(number).dtype == "bool":
            found.append((number, call.index, True))
            continue
        made = next(iter(facts.producers(number, call.index)), None)
        if made is not None and op_name(made) in FILLS and made.site == call.site and len(made.inputs) == 2:
            found.append((made.inputs[1].tensor, made.index, True))
    return found


def hiding_mask(facts: TraceIndex, call: Call) -> tuple[int, int, bool] | None:
    """Returns the bools of a `masked_fill()` that gives the scores of attention minus infinity, or nearly so, with the
    event that uses them, and whether it is infinity."""
    node = facts.node_at(call.site)
    if not isinstance(node, ast.Call) or len(call.inputs) != 2 or not _is_of_attention(facts, call):
        return None
    given = [each.value for each in node.keywords if each.arg == "value"] or node.args[-1:]
    value = written_number(facts, given[0]) if given else None
    return (call.inputs[1].tensor, call.index, isinf(value)) if value is not None and value <= _HIDING else None


def _is_of_attention(facts: TraceIndex, call: Call) -> bool:
    """Returns whether the next use of a result is a softmax along its last dimension, and that of the softmax the first
    factor of a product."""
    number, is_softmax = call.outputs[0].tensor, False
    for used in islice(facts.calls_between(call.index + 1), _MAX_LATER):
        if all(access.tensor != number for access in used.inputs) or not used.outputs:
            continue
        name = op_name(used)
        if is_softmax and name in _WEIGHTED:
            return used.inputs[0].tensor == number
        if name == "softmax":
            is_softmax = written_dimension(facts, used) == len(facts.tensor(number).shape) - 1
            if not is_softmax:
                return False
        elif not is_softmax or name not in _KEPT:
            return False
        number = used.outputs[0].tensor
    return False


def _triangle(facts: TraceIndex, number: int, before: int) -> tuple[Call, bool] | None:
    """Returns the `tril()` or `triu()` that a mask was made by, and whether it is the opposite of it."""
    is_not = False
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs or len(made.inputs) > 1:
            return None
        name = op_name(made)
        if name in ("tril", "triu"):
            base = next(iter(facts.producers(made.inputs[0].tensor, made.index)), None)
            return (made, is_not) if base is not None and op_name(base) in ("ones", "ones_like") else None
        if (name == "eq" and _compared(facts, made) == 0) or name in NOT:
            is_not = not is_not
        elif name not in SAME and not (name == "eq" and _compared(facts, made) == 1):
            return None
        if name == "getitem" and not _is_from_start(facts, made):
            return None
        number, before = made.inputs[0].tensor, made.index
    return None


def _is_from_start(facts: TraceIndex, call: Call) -> bool:
    """Returns whether an index takes the beginning of each dimension, so that the diagonal stays where it is."""
    node = facts.node_at(call.site)
    if not isinstance(node, ast.Subscript):
        return False
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return all(
        (isinstance(each, ast.Slice) and each.lower is None and each.step is None)
        or (isinstance(each, ast.Constant) and each.value in (None, Ellipsis))
        for each in indices
    )


def _compared(facts: TraceIndex, call: Call) -> float | None:
    """Returns the number that a comparison of the source compares with."""
    node = facts.node_at(call.site)
    return written_number(facts, node.comparators[0]) if isinstance(node, ast.Compare) else None


def _is_later(facts: TraceIndex, triangle: Call) -> bool | None:
    """Returns whether a triangle of ones has them for the positions after each one; False: for the others. None if it
    has them for other positions."""
    diagonal = _diagonal(facts, triangle)
    if op_name(triangle) == "triu":
        return True if diagonal == 1 else None
    return False if diagonal == 0 else None


def _diagonal(facts: TraceIndex, triangle: Call) -> float | None:
    """Returns the diagonal at which a triangle begins, as the source writes it."""
    node = facts.node_at(triangle.site)
    if not isinstance(node, ast.Call):
        return None
    is_method = triangle.op.startswith("Tensor.")
    given = [each.value for each in node.keywords if each.arg == "diagonal"] or node.args[0 if is_method else 1 :][:1]
    return written_number(facts, given[0]) if given else 0
