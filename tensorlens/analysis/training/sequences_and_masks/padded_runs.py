"""Finds recurrent layers that run over the padding of shorter sequences, and whose state after it goes on.

Padding is what `pad_sequence()` puts after shorter sequences, or what is left of zeros into which lines write each
sequence from its beginning. A program in which nothing is named as lengths may want the padding, as silence.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.name_words import words_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.sequences_and_masks.padding_signs import is_blank, marks_beginnings
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

_LAYERS = frozenset("lstm gru rnn_tanh rnn_relu".split())
_SAME_STEPS = frozenset(  # they work on each time step alone
    "embedding linear dropout layer_norm relu tanh gelu silu leaky_relu sigmoid float to long contiguous clone mul add "
    "transpose permute unsqueeze div truediv sub".split()
)
_LENGTHS = frozenset("lens lengths sizes".split())
_WHOLE = frozenset("transpose permute mean sum cat".split())
_DRAWN = frozenset("getitem split chunk to".split())  # they take some of the rows that `randperm()` has mixed
_HIDING = frozenset("masked_fill where scaled_dot_product_attention multi_head_attention_forward".split())
_DIRECTIONS = 2
_MAX_CALLS, _MAX_EARLIER = 12, 60


@dataclass(frozen=True, slots=True)
class PaddedRun:
    """A call of a recurrent layer, what padded its sequences, and the call that reads the state after the padding."""

    layer: Call
    padded: Call
    use: Call
    steps: int
    shorter: int  # of `rows` sequences
    rows: int


def padded_runs(facts: TraceIndex) -> Iterator[PaddedRun]:
    """Yields these calls, one for each line."""
    reported: set[int] = set()
    for backward in examined_passes(facts) if _has_lengths(facts) else ():
        above = recorded_above(facts, backward)
        for call in above:
            if op_name(call) not in _LAYERS or len(call.outputs) < 2 or call.site in reported:
                continue
            found = _padded(facts, call)
            use = None if found is None or _is_decoded(facts, above, call) else _use(facts, above, call)
            if found is not None and use is not None:
                reported.add(call.site)
                padded, steps, shorter, rows = found
                yield PaddedRun(call, padded, use, steps, shorter, rows)


def _is_decoded(facts: TraceIndex, above: tuple[Call, ...], layer: Call) -> bool:
    """Returns whether a decoder begins with the state of a layer, and attention to its results hides the padding: the
    state is only a beginning then."""
    read = {access.tensor for access in layer.outputs}
    after = [call for call in above if call.index > layer.index]
    if not any(op_name(call) in _LAYERS and read & {access.tensor for access in call.inputs[1:]} for call in after):
        return False
    hiding = [call for call in after if op_name(call) in _HIDING and call.inputs]
    numbers = [(access.tensor, call.index) for call in hiding for access in call.inputs]
    return any(made is layer for each in numbers for _, made in islice(ancestry(facts, *each), _MAX_EARLIER))


def _has_lengths(facts: TraceIndex) -> bool:
    for node in (node for _, tree in facts.trees() for node in ast.walk(tree)):
        name = node.id if isinstance(node, ast.Name) else node.arg if isinstance(node, ast.arg) else ""
        name = node.attr if isinstance(node, ast.Attribute) else name
        if name == "pack_padded_sequence" or (name != "lens" and _LENGTHS & set(words_of(name))):
            return True
    return False


def _use(facts: TraceIndex, above: tuple[Call, ...], layer: Call) -> Call | None:
    """Returns a call that reads the last hidden state of a layer, also as the last of its results."""
    results, state = layer.outputs[0].tensor, layer.outputs[1].tensor
    shape, (_, size, *width) = facts.tensor(results).shape, facts.tensor(state).shape
    dimension = 1 if shape[0] == size else 0
    has_two = [shape[-1]] != width
    for call in above:
        numbers = [access.tensor for access in call.inputs]
        if state in numbers and (not has_two or _takes_forward(facts, call)):
            return call
        if op_name(call) == "getitem" and numbers[0] == results and takes_last(facts, call, dimension):
            if not has_two or len(indices_of(facts, call)) == dimension + 1:
                return call
    return None


def indices_of(facts: TraceIndex, call: Call) -> list[ast.expr]:
    """Returns what an index of the source gives for each dimension."""
    node = facts.node_at(call.site)
    if not isinstance(node, ast.Subscript):
        return []
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _takes_forward(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call reads the state of the direction that ends at the last step: the other one ends at the
    first."""
    if op_name(call) != "getitem":
        return op_name(call) in _WHOLE
    first = next(iter(indices_of(facts, call)), None)
    if isinstance(first, ast.Slice):
        return first.upper is None and (first.lower is None or written_number(facts, first.lower) == -_DIRECTIONS)
    number = written_number(facts, first)
    return number is not None and number % _DIRECTIONS == 0


def takes_last(facts: TraceIndex, call: Call, dimension: int) -> bool:
    """Returns whether an index is -1 in a dimension, and takes all of those before it."""
    indices = indices_of(facts, call)
    is_all = all(isinstance(each, ast.Slice) and not (each.lower or each.upper) for each in indices[:dimension])
    return len(indices) > dimension and is_all and written_number(facts, indices[dimension]) == -1


def _padded(facts: TraceIndex, layer: Call) -> tuple[Call, int, int, int] | None:
    """Returns the call that padded what a layer runs over, the time steps, and how many sequences are shorter of how
    many."""
    number, before = layer.inputs[0].tensor, layer.index
    sizes, (_, batch, *_) = facts.tensor(number).shape[:2], (*facts.tensor(layer.outputs[1].tensor).shape, 0, 0)
    if len(facts.tensor(number).shape) != 3 or sizes[0] == sizes[1] or batch not in sizes:
        return None
    steps = sizes[0] if sizes[1] == batch else sizes[1]
    taken: list[Call] = []
    for _ in range(_MAX_CALLS):
        made, begun = next(iter(facts.producers(number, before)), None), facts.creator(number)
        if made is not None and op_name(made) == "pad_sequence":
            lengths = [facts.tensor(access.tensor).shape[0] for access in made.inputs]
            is_padded = max(lengths) == steps and _is_right(facts, made)
            return _counted(facts, made, lengths, steps, taken) if is_padded else None
        if begun is not None and is_blank(facts, begun) and marks_beginnings(facts, number, before):
            lengths = _written(facts, number, before, begun)
            return _counted(facts, begun, lengths, steps, taken) if steps in facts.tensor(number).shape[:2] else None
        if made is None or not made.inputs or not _keeps_steps(facts, made):
            return None
        taken += [made] if op_name(made) == "getitem" else []
        number, before = _data(facts, made), made.index
    return None


def _written(facts: TraceIndex, number: int, before: int, begun: Call) -> list[int]:
    """Returns the lengths of the sequences that lines write into zeros, if each line writes one from the beginning of
    a row of its own, and nothing else changes the zeros."""
    writes = [call for call in facts.producers(number, before) if call.index != begun.index]
    shape, lengths = facts.tensor(number).shape, list[int]()
    for call in writes:
        indices, value = indices_of(facts, call), facts.tensor(call.inputs[-1].tensor).shape
        row, places = (*indices, None, None)[:2]
        is_begun = isinstance(places, ast.Slice) and places.upper is not None and not (places.lower or places.step)
        is_row = len(indices) == 2 and isinstance(row, ast.Name | ast.Constant) and len(value) == len(shape) - 1
        if op_name(call) != "setitem" or len(call.inputs) != 2 or not is_begun or not is_row or value[0] == 1:
            return []
        lengths.append(value[0])
    return lengths if len(lengths) == shape[0] else []


def _counted(
    facts: TraceIndex, made: Call, lengths: list[int], steps: int, taken: list[Call]
) -> tuple[Call, int, int, int] | None:
    """Returns what is known of the padding, if one of the shorter sequences is among the rows that calls have taken."""
    shorter, rows = sum(length < steps for length in lengths), len(lengths)
    is_met = all(_drawn(facts, call, rows) > rows - shorter for call in taken)
    return (made, steps, shorter, rows) if shorter and is_met else None


def _drawn(facts: TraceIndex, call: Call, rows: int) -> int:
    """Returns how many rows an index takes, if it has places that `randperm()` has mixed; 0 if it may choose them."""
    number, before = call.inputs[1].tensor, call.index
    size = facts.tensor(number).shape
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is not None and op_name(made) == "randperm":
            return size[0] if facts.tensor(number).shape == (rows,) and len(size) == 1 else 0
        if made is None or op_name(made) not in _DRAWN or len(made.inputs) != 1:
            return 0
        number, before = made.inputs[0].tensor, made.index
    return 0


def _keeps_steps(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call computes each time step from the same one, or takes some of the sequences."""
    if op_name(call) in _SAME_STEPS:
        return True
    node = facts.node_at(call.site)
    is_rows = isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Tuple | ast.Slice)
    return op_name(call) == "getitem" and is_rows and len(call.inputs) == 2


def _data(facts: TraceIndex, call: Call) -> int:
    """Returns the input that has the time steps: the first one that is no parameter."""
    numbers = [access.tensor for access in call.inputs]
    return next((number for number in numbers if not facts.tensor(number).type.endswith("Parameter")), numbers[0])


def _is_right(facts: TraceIndex, padded: Call) -> bool:
    """Returns whether the source lets `pad_sequence()` put the padding after the sequences."""
    node = facts.node_at(padded.site)
    return (
        isinstance(node, ast.Call)
        and len(node.args) < 4
        and all(each.arg is not None and each.arg != "padding_side" for each in node.keywords)
    )
