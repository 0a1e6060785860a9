"""Finds losses of a causal model whose target is, at each step, the id that the model is given at the same step."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.looked_at import by_line, call_of
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.mixed_noise import mixture_of
from tensorlens.analysis.training.sequences_and_masks.late_queries import is_called_causal
from tensorlens.analysis.training.sequences_and_masks.turned_masks import given_mask
from tensorlens.analysis.training.triangles import triangle_of
from tensorlens.records.model import Call

_RECURRENT = frozenset("lstm gru rnn_tanh rnn_relu".split())
_ATTENTION = frozenset(("scaled_dot_product_attention", "multi_head_attention_forward"))
_MASKING = _ATTENTION | frozenset("masked_fill masked_fill_ where setitem add radd".split())
_VIEWS = frozenset("view reshape flatten view_as reshape_as contiguous long to clone detach".split())
_COPIES = frozenset("clone contiguous long to".split())
_TURNS = frozenset("transpose t T mT permute swapaxes".split())
_EACH_STEP = _VIEWS | _TURNS | frozenset("dropout layer_norm rms_norm relu gelu tanh silu log_softmax".split())
_SUMS, _PRODUCTS = frozenset("add radd iadd".split()), frozenset(("linear", "matmul"))
_SCALED = frozenset(("mul", "rmul", "div", "truediv"))
_MAX_CALLS, _MAX_VIEWS, _LEAST_LOOKS = 400, 8, 2
IdsKey = tuple[int, tuple[str, ...]]  # a tensor, and the parts and turns that calls take of it


@dataclass(frozen=True, slots=True)
class OwnTarget:
    """A loss, and the call that looks up the embeddings of the ids that are its targets."""

    loss: Call
    lookup: Call
    steps: int
    made: Call | None  # the targets


def own_targets(facts: TraceIndex) -> Iterator[OwnTarget]:
    """Yields these losses, one for each line, in passes with a single one."""
    reported, equal = set[int](), _measured(facts)
    for backward in examined_passes(facts):
        above = recorded_above(facts, backward)
        losses = [call for call in above if op_name(call) in ("cross_entropy", "nll_loss")]
        if len(losses) != 1 or len(losses[0].inputs) != 2 or losses[0].site in reported:
            continue
        lookup = _lookup(facts, losses[0], equal)
        if lookup is not None and any(_is_causal(facts, call) for call in above):
            reported.add(losses[0].site)
            steps = facts.tensor(lookup.inputs[0].tensor).shape[-1]
            yield OwnTarget(losses[0], lookup, steps, _maker(facts, losses[0].inputs[1].tensor))


def _maker(facts: TraceIndex, number: int) -> Call | None:
    """Returns the call that made ids, before any view of them."""
    made = facts.creator(number)
    for _ in range(_MAX_VIEWS):
        if made is None or not made.inputs or op_name(made) not in _VIEWS | _TURNS:
            break
        made = facts.creator(made.inputs[0].tensor)
    return made


def _measured(facts: TraceIndex) -> set[tuple[int, int]]:
    """Returns the lines of losses and lookups whose ids were equal in all passes that were looked at."""
    found = set[tuple[int, int]]()
    for line in by_line(facts, facts.trace.inspection.own_ids):
        lookups = [(call_of(facts, each, each.lookup), each.are_equal) for _, each in line]
        for site in {lookup.site for lookup, _ in lookups if lookup is not None}:
            looks = [are_equal for lookup, are_equal in lookups if lookup is not None and lookup.site == site]
            if len(looks) >= _LEAST_LOOKS and all(looks):
                found.add((line[0][0].site, site))
    return found


def _lookup(facts: TraceIndex, loss: Call, equal: set[tuple[int, int]]) -> Call | None:
    """Returns the call that looks up the targets' embeddings, if each step of the logits is made from its own one."""
    logits, target = (access.tensor for access in loss.inputs)
    key, shape = ids_key(facts, target, loss.index), facts.tensor(logits).shape
    for call, narrowest in _same_steps(facts, logits, loss.index):
        numbers = [access.tensor for access in call.inputs]
        ids = [each for each in numbers if facts.tensor(each).dtype.startswith("int")]
        kinds = [facts.tensor(each).shape for each in numbers if each not in ids]
        is_of_tokens = len(ids) == len(kinds) == 1 and kinds[0][0] in shape[-1:] + shape[1:2]
        if is_of_tokens and len(facts.tensor(ids[0]).shape) == 2 and min(facts.tensor(ids[0]).shape) > 1:
            is_own = (loss.site, call.site) in equal or ids_key(facts, ids[0], call.index) == key
            is_code = narrowest < facts.tensor(call.outputs[0].tensor).shape[-1]  # that the model is to compress
            return call if is_own and not is_code else None
    return None


def _same_steps(facts: TraceIndex, number: int, before: int) -> Iterator[tuple[Call, int]]:
    """Yields the lookups from which some logits are made, each step from the same one, and from those before it.

    With each, it yields the fewest numbers that a layer on the way is given for a step; of the last layer, whose input
    is narrow in other models as well, twice as many. It ends at noise that is added to a code.
    """
    waiting, seen = [(number, before, sys.maxsize)], set[int]()
    for each, limit, narrowest in waiting:
        call = next(iter(facts.producers(each, limit)), None)
        if call is None or call.index in seen or not call.inputs or len(seen) > _MAX_CALLS:
            continue
        seen.add(call.index)
        name, numbers = op_name(call), [access.tensor for access in call.inputs]
        if mixture_of(facts, call) is not None:
            return
        if name == "embedding":
            yield call, narrowest
        elif name in _SUMS or (name in _SCALED and not _may_hide(facts, call)):
            waiting += [(each, call.index, narrowest) for each in numbers]
        elif name in _EACH_STEP | _ATTENTION or _is_of_steps(facts, call, each):
            is_layer = name in _PRODUCTS or name in _RECURRENT
            width = facts.tensor(numbers[0]).shape[-1] if is_layer else narrowest
            width *= 2 if is_layer and narrowest == sys.maxsize else 1
            waiting.append((numbers[0], call.index, min(narrowest, width)))


def _is_of_steps(facts: TraceIndex, call: Call, result: int) -> bool:
    """Returns whether a call gives the results of a recurrent layer, or multiplies each step by a matrix."""
    if op_name(call) in _RECURRENT:
        return call.outputs[0].tensor == result
    return op_name(call) in _PRODUCTS and len(facts.tensor(call.inputs[1].tensor).shape) <= 2


def _may_hide(facts: TraceIndex, product: Call) -> bool:
    """Returns whether a product may be one with a mask, as that of steps that a model is to fill in."""
    numbers = [access.tensor for access in product.inputs]
    return any(facts.tensor(each).shape and not facts.requires_grad(each, product.index - 1) for each in numbers)


def ids_key(facts: TraceIndex, number: int, before: int, with_copies: bool = True) -> IdsKey:
    """Returns the tensor that ids are a part of, or a copy of it, and which part, as the source says it by numbers."""
    parts: list[str] = []
    for _ in range(_MAX_VIEWS):
        made = next(iter(facts.producers(number, before)), None)
        if made is not None and made.writes:
            parts.append(f"after {made.index}")  # a copy of them may have been made before the change
        if made is None or not made.inputs or made.writes:
            break
        if op_name(made) in _TURNS:
            parts.append(op_name(made))
        elif op_name(made) == "getitem":
            part = _part(facts, made)
            if not part:
                break
            parts.append(part)
        elif op_name(made) not in (_VIEWS if with_copies else _VIEWS - _COPIES):
            break
        number, before = made.inputs[0].tensor, made.index
    return number, tuple(parts)


def _part(facts: TraceIndex, call: Call) -> str:
    """Returns which part an index takes: by one tensor, or by numbers that the source writes; "" if by others."""
    node = facts.node_at(call.site)
    if len(call.inputs) == 2:
        return f"by {call.inputs[1].tensor}" if isinstance(node, ast.Subscript) else ""
    if not isinstance(node, ast.Subscript) or any(isinstance(each, ast.Name) for each in ast.walk(node.slice)):
        return ""
    return ast.unparse(node.slice)


def _is_causal(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a layer works from the first step on, or attention leaves each position those up to it."""
    if op_name(call) in _RECURRENT and len(call.outputs) > 1:
        sizes = [facts.tensor(access.tensor).shape[-1] for access in call.outputs[:2]]
        return sizes[0] == sizes[1]
    if op_name(call) not in _MASKING or (len(call.inputs) > 4 and op_name(call) not in _ATTENTION):
        return False
    if is_called_causal(facts, call) or any(_is_layers_mask(facts, access.tensor) for access in call.inputs[3:]):
        return True
    mask = given_mask(facts, call)[0]
    triangle = None if mask is None else triangle_of(facts, mask.mask, mask.before)
    seen = triangle if mask is None or triangle is None or mask.attends else triangle.opposite()
    return seen is not None and not seen.is_upper and seen.diagonal == 0


def _is_layers_mask(facts: TraceIndex, number: int) -> bool:
    """Returns whether torch makes a mask of low numbers for a transformer, as it is."""
    made = facts.creator(number)
    for _ in range(_MAX_VIEWS):
        if made is None or op_name(made) == "triu" or op_name(made) not in ("to", "clone", "float") or not made.inputs:
            break
        made = facts.creator(made.inputs[0].tensor)
    node = None if made is None or op_name(made) != "triu" else facts.node_at(made.site)
    return isinstance(node, ast.Call) and last_name(node.func) == "generate_square_subsequent_mask"
