"""Names calls of `normalize()` and `cosine_similarity()` without `dim`, which run along dimension 1, not the last."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_CALLS = frozenset(("normalize", "cosine_similarity"))
_PLACE = 2  # of `dim` among the arguments of both
_LAYERS = frozenset("linear embedding lstm gru layer_norm multi_head_attention_forward".split())
_SAME_PLACES = frozenset(
    "dropout relu gelu tanh silu add mul unbind chunk split view reshape contiguous getitem".split()
)
_SUMMING = frozenset("linear matmul rmatmul bmm scaled_dot_product_attention".split())  # over the last of their first
_MERGING, _MOVING = frozenset("view reshape flatten".split()), frozenset("transpose permute movedim".split())
_CHANNELS = ("conv", "max_pool", "avg_pool", "adaptive", "transpose", "permute", "movedim", "swapaxes")
_MAX_CALLS, _MAX_USES = 8, 30
_MIN_SIZE = 3  # dimensions


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them if a layer has put its features into the last of three dimensions or more, where a later one takes
    them.
    """
    facts, reported = training.facts, set[int]()
    for backward in examined_passes(facts):
        calls = list(recorded_above(facts, backward))
        for call in calls:
            site = _site(facts, call)
            if site is None or site in reported:
                continue
            shape = facts.tensor(call.inputs[0].tensor).shape
            layer = _layer(facts, call) if len(shape) >= _MIN_SIZE else None
            if layer is None or _is_channels_first(facts, layer) or not _takes_last(facts, calls, call):
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
    """Returns the site of a call that leaves out `dim`, as the source writes it."""
    if op_name(call) not in _CALLS or not call.inputs:
        return None
    span = facts.span(call.site)
    node = None if span is None else facts.names.syntax.node(span)
    if span is None or not isinstance(node, ast.Call) or not _is_of_torch(facts.tree(span.file), node.func):
        return None
    is_given = len(node.args) > _PLACE or any(each.arg in (None, "dim") for each in node.keywords)
    return None if is_given or any(isinstance(each, ast.Starred) for each in node.args) else call.site


def _is_of_torch(tree: ast.AST, called: ast.expr) -> bool:
    """Returns whether a file calls a function by a name that it has imported from torch, and that nothing sets anew."""
    path = ast.unparse(called).split(".")
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {
        each.asname or (each.name if isinstance(node, ast.ImportFrom) else each.name.partition(".")[0])
        for node in imports
        for each in node.names
        if (getattr(node, "module", None) or each.name).partition(".")[0] == "torch"
    }
    is_set = any(isinstance(n, ast.Name) and n.id == path[0] and isinstance(n.ctx, ast.Store) for n in ast.walk(tree))
    return path[-1] in _CALLS and path[0] in names and not is_set


def _is_channels_first(facts: TraceIndex, layer: Call) -> bool:
    """Returns whether a convolution or a pooling, or a change of dimensions, comes before a layer."""
    number, before = layer.inputs[0].tensor, layer.index
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return False
        if op_name(made).startswith(_CHANNELS):
            return True
        number, before = made.inputs[0].tensor, made.index
    return False


def _takes_last(facts: TraceIndex, calls: list[Call], call: Call) -> bool:
    """Returns whether a later layer, or a product of matrices, sums over the last dimension of a call's result."""
    users: dict[int, list[Call]] = defaultdict(list)
    for user in calls:
        for access in user.inputs:
            users[access.tensor].append(user)
    waiting = [call.outputs[0].tensor]
    for number in waiting:
        shape = facts.tensor(number).shape
        for user in users[number]:
            if user.inputs[0].tensor == number and op_name(user) in _SUMMING:
                return True
            after = facts.tensor(user.outputs[0].tensor).shape if user.outputs else ()
            is_merged = op_name(user) in _MERGING and after[:2] == shape[:2]
            is_moved = op_name(user) in _MOVING and shape.count(shape[-1]) == 1 and after[-1:] == shape[-1:]
            if len(waiting) < _MAX_USES and (is_merged or is_moved or op_name(user) in _SAME_PLACES):
                waiting.append(user.outputs[0].tensor)
    return False


def _layer(facts: TraceIndex, call: Call) -> Call | None:
    """Returns the layer that made the features of a call's input, if its first two dimensions are still the first."""
    number, before = call.inputs[0].tensor, call.index
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return None
        if op_name(made) in _LAYERS:
            own = facts.tensor(made.outputs[0].tensor).shape
            return made if len(own) >= _MIN_SIZE and own[:2] == facts.tensor(call.inputs[0].tensor).shape[:2] else None
        if op_name(made) not in _SAME_PLACES:
            return None
        number, before = made.inputs[0].tensor, made.index
    return None
