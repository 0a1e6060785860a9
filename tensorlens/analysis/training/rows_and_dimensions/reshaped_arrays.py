"""Finds arrays with the channels last that a reshape gives the shape of channels first, before a convolution."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tensorlens.analysis.code_around import scope_around
from tensorlens.analysis.naming.syntax import called_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.rows_and_dimensions.mixed_dimensions import keeps_order
from tensorlens.records.model import Call
from tensorlens.records.training_samples import ReshapedArray

_CONVOLUTIONS = {"conv1d": 1, "conv2d": 2, "conv3d": 3}
_SAME = frozenset("to float double div truediv sub add mul clone contiguous clamp getitem index_select".split())
_FAR = 2_000
_DRAWS = frozenset("normal standard_normal randn rand random uniform random_sample randint integers choice".split())
_CASTS = frozenset("astype len float32 copy default_rng RandomState".split())
_JOINS = frozenset("stack vstack hstack column_stack array asarray concatenate".split())
_FILES = frozenset("load loadtxt genfromtxt fromfile memmap open read_csv frombuffer".split())
_SIGNAL = 3  # dimensions of a batch of signals
_CHANNELS = (3, 4)
_RESHAPES = frozenset("reshape resize array_split sliding_window_view as_strided".split())


@dataclass(frozen=True, slots=True)
class MixedArray:
    """A call that makes a tensor of such an array, the convolution that gets it, and the reshape."""

    made: Call
    layer: Call
    shapes: ReshapedArray
    reshape: tuple[str, ast.Call]


def reshaped_arrays(facts: TraceIndex) -> Iterator[MixedArray]:
    """Yields these calls, one for each line."""
    seen = set[int]()
    for each in facts.trace.inspection.reshaped_arrays:
        made = facts.creator(each.tensor)
        if made is None or made.site in seen or not _are_turned(each):
            continue
        layer, reshape = _layer(facts, made, each), _reshape(facts, made)
        if layer is None or reshape is None or not _is_only_reshape(facts, made, len(each.before)):
            continue
        if not _is_noise(facts, *reshape):
            seen.add(made.site)
            yield MixedArray(made, layer, each, reshape)


def _are_turned(shapes: ReshapedArray) -> bool:
    """Returns whether the last dimension comes first, or right after that of the samples."""
    before, after = shapes.before, shapes.after
    is_sample = len(before) in (2, 3) and (before[-1], *before[:-1]) == after
    is_batch = len(before) in (3, 4) and (before[0], before[-1], *before[1:-1]) == after
    places = before[1:-1] if is_batch and not is_sample else before[:-1]
    is_picture = before[-1] in _CHANNELS and all(size > before[-1] for size in places)
    return (is_sample or is_batch) and is_picture and not keeps_order(before, after)


def _is_only_reshape(facts: TraceIndex, made: Call, size: int) -> bool:
    """Returns whether one line of a file may give arrays so many dimensions.

    If an earlier one has made those before the reshape, they may be parts of a longer one, as the frames of a signal.
    """
    span, found = facts.trace.sites[made.site].span, 0
    for node in ast.walk(facts.tree(span.file)):
        if isinstance(node, ast.Call) and called_name(node) in _RESHAPES:
            parts = [each for given in node.args for each in (given.elts if isinstance(given, ast.Tuple) else [given])]
            is_plain = called_name(node) == "reshape" and not any(isinstance(each, ast.Starred) for each in parts)
            found += not is_plain or len(parts) in (1, size, size + 1)
        if isinstance(node, ast.Call) and called_name(node) in _JOINS:
            found += size <= _SIGNAL or any(isinstance(each, ast.Slice) for each in ast.walk(node))
        if isinstance(node, ast.Call) and called_name(node) in _FILES:
            found += size <= _SIGNAL
    return found == 1


def _is_noise(facts: TraceIndex, file: str, reshape: ast.Call) -> bool:
    """Returns whether the array of a reshape has random numbers alone, whose places make no difference."""
    own = reshape.func.value if isinstance(reshape.func, ast.Attribute) else None
    for node in ast.walk(facts.tree(file)):
        names = {ast.unparse(each) for each in node.targets} if isinstance(node, ast.Assign) else set[str]()
        given = {ast.unparse(each) for each in (*([] if own is None else [own]), *reshape.args[:1])}
        if isinstance(node, ast.Assign) and names & given and _is_drawn(node.value):
            return True
    return any(_is_drawn(each) for each in (*([] if own is None else [own]), *reshape.args[:1]))


def _is_drawn(value: ast.expr) -> bool:
    called = {called_name(each) for each in ast.walk(value) if isinstance(each, ast.Call)}
    return bool(called & _DRAWS) and called <= _DRAWS | _CASTS


def _layer(facts: TraceIndex, made: Call, shapes: ReshapedArray) -> Call | None:
    """Returns the convolution that takes the dimensions of an array as channels and places."""
    known = {made.outputs[0].tensor}
    for call in islice(facts.calls_between(made.index + 1), _FAR):
        inputs = [access.tensor for access in call.inputs]
        if not inputs or known.isdisjoint(inputs) or not call.outputs:
            continue
        number = call.outputs[0].tensor
        places = _CONVOLUTIONS.get(op_name(call))
        if places is not None:
            is_own = inputs[0] in known and facts.tensor(inputs[0]).shape[-places - 1 :] == shapes.after[-places - 1 :]
            return call if is_own and len(shapes.after) in (places + 1, places + 2) else None
        is_joined = op_name(call) == "stack" and facts.tensor(number).shape[1:] == shapes.after
        is_same = op_name(call) in _SAME and facts.tensor(number).shape[-2:] == shapes.after[-2:]
        if is_joined or is_same:
            known.add(number)
    return None


def _reshape(facts: TraceIndex, made: Call) -> tuple[str, ast.Call] | None:
    """Returns the last reshape, as written, of an array in the function that makes a tensor of it."""
    span = facts.trace.sites[made.site].span
    nodes = [node for node in ast.walk(scope_around(facts, span.file, span.line)) if isinstance(node, ast.Call)]
    found = [node for node in nodes if called_name(node) == "reshape" and node.lineno <= span.end_line]
    return (span.file, max(found, key=lambda node: node.lineno)) if found else None
