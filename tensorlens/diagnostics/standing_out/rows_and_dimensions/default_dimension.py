"""Names calls of `normalize()` and `cosine_similarity()` without `dim`, which run along dimension 1, not the last."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.written_call import written_call
from tensorlens.analysis.written_numbers import written_number
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_CALLS = frozenset(("normalize", "cosine_similarity"))
_PLACE = 2  # of `dim` among the arguments of both
_LAYERS = frozenset("linear embedding lstm gru layer_norm multi_head_attention_forward".split())
_OF_FEATURES = _LAYERS - {"linear", "layer_norm"}
_SAME_PLACES = frozenset(
    "dropout relu gelu tanh silu add mul unbind chunk split view reshape contiguous getitem detach float".split()
)
_SUMMING = frozenset("linear matmul rmatmul bmm scaled_dot_product_attention".split())  # over the last of their first
_MERGING, _MOVING = (
    frozenset("view reshape flatten".split()),
    frozenset("transpose permute movedim swapaxes mT".split()),
)
_CHANNELS = ("conv", "max_pool", "avg_pool", "adaptive", "transpose", "permute", "movedim", "swapaxes", "mT")
_MAX_CALLS, _MAX_USES, _MAX_ABOVE = 8, 30, 20
_MIN_SIZE = 3  # dimensions


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them if a layer has put its features into the last of three dimensions or more, where a later layer or
    what they are compared with has them.
    """
    facts, reported = training.facts, set[int]()
    for backward in examined_passes(facts):
        calls = list(recorded_above(facts, backward))
        for call in calls:
            site = _site(facts, call)
            if site is None or site in reported:
                continue
            shape = facts.tensor(call.inputs[0].tensor).shape
            places = range(len(call.inputs)) if len(shape) >= _MIN_SIZE else ()
            made = ((place, layer) for place in places if (layer := _layer(facts, call, place)) is not None)
            place, layer = next(made, (0, None))
            if layer is None or _is_channels_first(facts, layer):
                continue
            if not _takes_last(facts, calls, call, layer) and not _is_of_features(facts, call, place):
                continue
            if shape[1] != shape[-1] and len({len(facts.tensor(each.tensor).shape) for each in call.inputs}) == 1:
                reported.add(site)
                yield stands_out(
                    f"{as_written(facts, call)} has no `dim` and runs along dimension 1 of shape {shape}: the features "
                    f"that {as_written(facts, layer)} makes are in the last one",
                    facts.label("value_made_here", call.site, "along dimension 1", call.index),
                    facts.label("observed_here", layer.site, "the features", layer.index),
                )


def _site(facts: TraceIndex, call: Call) -> int | None:
    """Returns the site of a call that leaves out `dim`, as the source writes it, for the module of a call too."""
    if op_name(call) not in _CALLS or not call.inputs:
        return None
    written = written_call(facts, call)
    if written is None or not written.is_whole:
        return None
    place = 0 if written.kind == "module" else _PLACE
    norm = written.argument(place - 1, "p") if op_name(call) == "normalize" and place else None
    is_share = written_number(facts, norm) == 1  # weights that add up to 1, as over the steps of a sequence
    return call.site if written.argument(place, "dim") is None and not is_share else None


def _is_channels_first(facts: TraceIndex, layer: Call) -> bool:
    """Returns whether a convolution or a pooling, or a change of dimensions, comes before a layer.

    A transpose that puts the channels of a convolution last is the one that the layer needs.
    """
    number, before, is_turned = layer.inputs[0].tensor, layer.index, False
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return is_turned
        shape, own = facts.tensor(made.inputs[0].tensor).shape, facts.tensor(number).shape
        if op_name(made).startswith(_CHANNELS):
            if is_turned or op_name(made) not in _MOVING or own != (shape[0], *shape[2:], shape[1]):
                return not is_turned or not op_name(made).startswith("conv")
            is_turned = len(set(shape[1:])) == len(shape) - 1
        number, before = made.inputs[0].tensor, made.index
    return is_turned


def _has_features_last(facts: TraceIndex, layer: Call) -> bool:
    """Returns whether what a layer is given has features in the last dimension, as the source of it shows: a linear
    layer may also run along the time of several series."""
    made: Call | None = layer
    for _ in range(_MAX_ABOVE):
        if made is None or not made.inputs:
            return False
        if op_name(made) in _OF_FEATURES or op_name(made).startswith("conv"):
            return True  # a transpose has put the channels of a convolution last
        if op_name(made) not in _SAME_PLACES | _LAYERS | _MOVING | {"setitem"}:
            return False
        made = next(iter(facts.producers(made.inputs[0].tensor, made.index)), None)
    return False


def _takes_last(facts: TraceIndex, calls: list[Call], call: Call, layer: Call) -> bool:
    """Returns whether a later layer, or a product of matrices, sums over the last dimension of a call's result."""
    summing = _SUMMING if _has_features_last(facts, layer) else _SUMMING - {"linear"}
    users: dict[int, list[Call]] = defaultdict(list)
    for user in calls:
        for access in user.inputs:
            users[access.tensor].append(user)
    waiting = [call.outputs[0].tensor]
    for number in waiting:
        shape = facts.tensor(number).shape
        for user in users[number]:
            if user.inputs[0].tensor == number and op_name(user) in summing and _is_product(facts, user, summing):
                return True
            after = facts.tensor(user.outputs[0].tensor).shape if user.outputs else ()
            is_merged = op_name(user) in _MERGING and after[:2] == shape[:2]
            is_moved = op_name(user) in _MOVING and shape.count(shape[-1]) == 1 and after[-1:] == shape[-1:]
            if len(waiting) < _MAX_USES and (is_merged or is_moved or op_name(user) in _SAME_PLACES):
                waiting.append(user.outputs[0].tensor)
    return False


def _is_product(facts: TraceIndex, user: Call, summing: frozenset[str]) -> bool:
    """Returns whether a call multiplies two results of a model, where a layer says nothing about the features."""
    return "linear" in summing or not any(facts.tensor(each.tensor).type == "Parameter" for each in user.inputs)


def _is_of_features(facts: TraceIndex, call: Call, place: int) -> bool:
    """Returns whether a call compares what two layers made, or what one made of all but the last steps with the steps
    after the first: an angle along the steps has no use there. `place` is the input that a layer made."""
    if op_name(call) != "cosine_similarity" or len(call.inputs) < 2:
        return False
    other = _layer(facts, call, 1 - place)
    if other is not None:
        return not _is_channels_first(facts, other)
    made = next(iter(facts.producers(call.inputs[1 - place].tensor, call.index)), None)
    if made is None or not _is_shifted(facts, made):
        return False
    above = (each for _, each in islice(ancestry(facts, call.inputs[place].tensor, call.index), _MAX_USES))
    source = made.inputs[0].tensor
    return any(op_name(each) == "getitem" and each.inputs[0].tensor == source for each in above if each.inputs)


def _is_shifted(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call leaves out the first steps: `x[:, 1:]`."""
    node = facts.node_at(call.site)
    if op_name(call) != "getitem" or not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Tuple):
        return False
    steps = node.slice.elts[1]
    before, after = facts.tensor(call.inputs[0].tensor).shape, facts.tensor(call.outputs[0].tensor).shape
    is_rest = isinstance(steps, ast.Slice) and steps.lower is not None and steps.upper is None
    return is_rest and len(before) == len(after) and 0 < before[1] - after[1] < after[1]


def _layer(facts: TraceIndex, call: Call, place: int) -> Call | None:
    """Returns the layer that made the features of an input of a call, if its first two dimensions are still the
    first."""
    number, before = call.inputs[place].tensor, call.index
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return None
        if op_name(made) in _LAYERS:
            own = facts.tensor(made.outputs[0].tensor).shape
            return (
                made if len(own) >= _MIN_SIZE and own[:2] == facts.tensor(call.inputs[place].tensor).shape[:2] else None
            )
        if op_name(made) not in _SAME_PLACES:
            return None
        number, before = made.inputs[0].tensor, made.index
    return None
