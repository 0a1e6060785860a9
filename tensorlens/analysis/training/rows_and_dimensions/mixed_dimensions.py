"""Finds reshapes of a layer's result or input that mix two dimensions, where their order needs a transpose first.

The state of an LSTM has the shape (layers, batch, hidden). `state.reshape(batch, -1)` runs and gives (batch, layers *
hidden), and each row of it has the numbers of several samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, islice
from math import prod
from operator import mul

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.repeated_seeds import DRAWS
from tensorlens.analysis.training.rows_and_dimensions.reshape_chains import RESHAPING, reshaped
from tensorlens.records.model import Call

_SAME_PLACES = frozenset(
    "dropout batch_norm layer_norm relu gelu tanh sigmoid silu leaky_relu elu contiguous clone index_select".split()
)
_RECURRENT = frozenset(("lstm", "gru", "rnn_tanh", "rnn_relu"))
_CONVOLUTIONS = frozenset(("conv1d", "conv2d", "conv3d"))
_CHANNELS_FIRST = _CONVOLUTIONS | frozenset("conv_transpose1d conv_transpose2d conv_transpose3d interpolate".split())
_TURNING = frozenset("transpose permute swapaxes mT movedim".split())
_ATTENTION = "scaled_dot_product_attention"
_PRODUCTS = frozenset(("matmul", "bmm"))
_WEIGHTS = frozenset("softmax dropout float to type_as masked_fill nan_to_num contiguous".split())
_PROJECTIONS = frozenset(("linear", "chunk", "split"))
_CHANNELS_LAST = _RECURRENT | _PROJECTIONS | {"embedding"}
_COLORS = 3
_SAME_CHANNELS = _SAME_PLACES | frozenset("getitem to float double div truediv sub add mul".split())
_ELEMENTWISE = frozenset("add radd sub rsub mul rmul div truediv".split())
_TAKING = frozenset("getitem index_select split chunk".split())  # rows of data
_PLACES = {1: ("length",), 2: ("height", "width"), 3: ("depth", "height", "width")}
_LENGTHS = frozenset("norm vector_norm linalg_norm linalg_vector_norm square pow".split())
_NEXT = 60  # calls after a reshape
_STEPS = 8  # calls between the layer and the reshape
_Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MixedDimensions:
    """A reshape of a layer's result or input. `dimensions` names those before it, in order; `mixed` what it mixes."""

    reshape: Call
    layer: Call
    dimensions: tuple[str, ...]
    mixed: str
    before: _Shape
    after: _Shape


@dataclass(frozen=True, slots=True)
class _Layout:
    """Names the dimensions of a layer's result, and has the shapes that only a transpose could make of it."""

    dimensions: tuple[str, ...]
    mixed: str
    moved: tuple[_Shape, ...]


def mixed_dimensions(facts: TraceIndex) -> Iterator[MixedDimensions]:
    """Yields these reshapes, one for each line."""
    reported: set[int] = set()
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            if op_name(call) in RESHAPING and call.inputs and call.outputs:
                found = _of_result(facts, call)
            else:
                found = _of_input(facts, call) if op_name(call) in _CONVOLUTIONS else None
            if found is not None and found.reshape.site not in reported:
                reported.add(found.reshape.site)
                yield found


def _of_result(facts: TraceIndex, call: Call) -> MixedDimensions | None:
    """Looks at a reshape of what a layer returned."""
    given, source = reshaped(facts, call)
    made = None if source is None else _layer(facts, given, source.index + 1)
    if made is None:
        return None
    layer, number = made
    before, after = facts.tensor(number).shape, facts.tensor(call.outputs[0].tensor).shape
    if facts.tensor(given).shape != before or keeps_order(before, after):
        return None
    layout = _layout(facts, layer, call, number, after)
    may_group = layout is not None and layout.mixed == "places" and before[1] % prod(before[2:]) == 0
    if layout is None or after not in layout.moved or may_group or _is_turned_back(facts, call, before):
        return None
    if layout.mixed == "places" and _is_of_capsules(facts, call):
        return None
    return MixedDimensions(call, layer, layout.dimensions, layout.mixed, before, after)


def _is_of_capsules(facts: TraceIndex, call: Call) -> bool:
    """Returns whether the length of each row is computed, as of a capsule, which groups any numbers of a layer."""
    made = {access.tensor for access in call.outputs}
    later = islice(facts.calls_between(call.index + 1), _STEPS)
    return any(op_name(each) in _LENGTHS and made & {access.tensor for access in each.inputs} for each in later)


def _of_input(facts: TraceIndex, layer: Call) -> MixedDimensions | None:
    """Looks at the reshape that gave the input of a convolution its shape, or the samples of which a batch is made:
    channels are not last in it."""
    number, index = layer.inputs[0].tensor, layer.index
    batch = tuple[int, ...]()  # of a sample
    for _ in range(_STEPS):
        call = next(iter(facts.producers(number, index)), None)
        if call is None or not call.inputs or not call.outputs:
            return None
        if op_name(call) in RESHAPING:
            return _of_channels_last(facts, call, layer, batch)
        before, after = facts.tensor(call.inputs[0].tensor).shape, facts.tensor(call.outputs[0].tensor).shape
        if op_name(call) == "stack" and after == (len(call.inputs), *before) and not batch:
            number, index, batch = call.inputs[0].tensor, call.index, after[:1]
            continue
        before, after = batch + before, batch + after
        is_padded = op_name(call) == "pad" and before[:2] == after[:2]
        if not is_padded and (op_name(call) not in _SAME_CHANNELS or before[1:] != after[1:]):
            return None
        number, index = call.inputs[0].tensor, call.index
    return None


def _of_channels_last(facts: TraceIndex, call: Call, layer: Call, batch: _Shape) -> MixedDimensions | None:
    """Looks at a reshape to the shape that channels have first, of layers' results, pictures and other data. `batch`
    has the number of samples if it reshapes one of them."""
    number, made = reshaped(facts, call)
    before, after = (batch + facts.tensor(each).shape for each in (number, call.outputs[0].tensor))
    names = _PLACES.get(len(after) - 2)
    if names is None or (after[0], *after[2:], after[1]) != before or keeps_order(before, after):
        return None
    is_of_layer = made is not None and op_name(made) in _CHANNELS_LAST
    is_picture = len(names) == 2 and before[-1] == _COLORS and (made is None or op_name(made) not in RESHAPING)
    if not is_of_layer and not is_picture and not _has_places(facts, made):
        return None
    alone = len(batch)
    dimensions = ("batch", *names, "channels")[alone:]
    return MixedDimensions(call, layer, dimensions, "channels", before[alone:], after[alone:])


def _has_places(facts: TraceIndex, made: Call | None) -> bool:
    """Returns whether data have an order along their dimensions: those of a draw have none, and a reshape may have cut
    one sequence into frames, also before data are scaled or added."""
    for _ in range(_STEPS):
        if made is None or op_name(made) in RESHAPING or op_name(made) in DRAWS:
            return False
        sources = [access.tensor for access in made.inputs]
        if op_name(made) in _ELEMENTWISE:
            sources = [number for number in sources if prod(facts.tensor(number).shape) > 1]
            if len(sources) > 1 and any(_is_reshaped(facts, number, made.index) for number in sources):
                return False
        if made.writes or (len(sources) != 1 and op_name(made) not in _TAKING):
            return True
        source = sources[0]
        if facts.tensor(source).shape[1:] != facts.tensor(made.outputs[0].tensor).shape[1:]:
            return True
        made = next(iter(facts.producers(source, made.index)), None)
    return False


def _is_reshaped(facts: TraceIndex, number: int, before: int) -> bool:
    made = next(iter(facts.producers(number, before)), None)
    return made is not None and op_name(made) in RESHAPING


def keeps_order(before: _Shape, after: _Shape) -> bool:
    """Returns whether a reshape only merges neighbours among the dimensions, and adds or drops those of size 1."""
    ends = set(accumulate(before, mul, initial=1))
    return all(end in ends for end in accumulate(after, mul))


def _layer(facts: TraceIndex, number: int, before: int) -> tuple[Call, int] | None:
    """Returns the layer that made a tensor, and its result, which kept its places on the way."""
    for _ in range(_STEPS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return None
        if op_name(made) not in _SAME_PLACES:
            return made, number
        number, before = made.inputs[0].tensor, made.index
    return None


def _layout(facts: TraceIndex, layer: Call, call: Call, number: int, after: _Shape) -> _Layout | None:
    name, shape = op_name(layer), facts.tensor(number).shape
    if name in _RECURRENT and len(shape) == 3:
        one, batch, size = shape
        first = "layers" if number != layer.outputs[0].tensor else "time" if _is_time_first(facts, layer) else ""
        moved = (batch, one, size), (batch, one * size)
        return _Layout((first, "batch", "hidden"), "samples", moved) if first else None
    if name in _CHANNELS_FIRST and len(shape) == (int(name[-2]) + 2 if name[-1] == "d" else max(len(shape), 3)):
        batch, channels, *places = shape
        rows = prod(places)
        places_first: tuple[_Shape, ...] = (batch, *places, channels), (batch, rows, channels), (batch * rows, channels)
        if after[: 1 + len(places)] == (batch, *places) and len(after) > len(shape):  # channels in groups
            places_first = (*places_first, after)
        return _Layout(("batch", "channels", *_PLACES[len(places)]), "places", places_first)
    if name in _PROJECTIONS and len(shape) == 3 and len(after) == 4:
        batch, length, size = shape
        is_split = after[::2] == (batch, length) and after[1] * after[3] == size and after[1] != length > 1 != after[1]
        is_split &= _is_attended(facts, call)
        return _Layout(("batch", "length", "size"), "positions", (after,)) if is_split else None
    if name in _TURNING and len(shape) == 3 and _has_channels_first(facts, layer):
        batch, channels, length = shape
        return _Layout(("batch", "channels", "length"), "places", ((batch * length, channels),))
    return _of_attention(shape, after) if name == _ATTENTION or _is_weighted(facts, layer) else None


def _has_channels_first(facts: TraceIndex, turned: Call) -> bool:
    """Returns whether a call gives the features that a linear layer returns last the place after the batch."""
    given, after = facts.tensor(turned.inputs[0].tensor).shape, facts.tensor(turned.outputs[0].tensor).shape
    made = next(iter(facts.producers(turned.inputs[0].tensor, turned.index)), None)
    is_projected = made is not None and op_name(made) == "linear"
    return is_projected and given[1] != given[2] and after == (given[0], given[2], given[1])


def _is_attended(facts: TraceIndex, call: Call) -> bool:
    """Returns whether attention, or another product of matrices, reads a result as heads: a convolution takes a
    picture whose places a layer before it may give in any order."""
    numbers = {access.tensor for access in call.outputs}
    for later in islice(facts.calls_between(call.index + 1), _NEXT):
        if numbers.isdisjoint(access.tensor for access in later.inputs):
            continue
        if op_name(later) in _CONVOLUTIONS:
            return False
        if op_name(later) in _PRODUCTS | {_ATTENTION, "einsum", "baddbmm"}:
            return True
        numbers |= {access.tensor for access in later.outputs}
    return False


def _of_attention(shape: _Shape, after: _Shape) -> _Layout | None:
    """Returns the layout of a result of attention, whose heads are a dimension of their own, or a part of the batch."""
    if len(shape) == 4:
        batch, heads, length, size = shape
        joined = heads * size
        length_first = (batch, length, heads, size), (batch, length, joined), (batch * length, joined)
        return _Layout(("batch", "heads", "length", "size"), "positions", length_first)
    if len(shape) == 3 and shape[1] > 1 and after[0] and shape[0] % after[0] == 0:
        batch, heads, (_, length, size) = after[0], shape[0] // after[0], shape
        parts = ((batch, length, heads, size),) if heads != length else ()
        moved = (*parts, (batch, length, heads * size))
        return _Layout(("batch and heads", "length", "size"), "positions", moved)
    return None


def _is_weighted(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call multiplies the weights of attention by values, with a row of the result for each row of
    the weights."""
    if op_name(call) == "einsum" and len(call.inputs) == 2:
        shape = facts.tensor(call.outputs[0].tensor).shape[:-1]
        rows = [access.tensor for access in call.inputs if facts.tensor(access.tensor).shape[:-1] == shape]
        is_clear = len(set(shape[1:])) == len(shape[1:])  # else the dimensions may have another order
        return is_clear and any(_is_softmax(facts, number, call.index) for number in rows)
    return op_name(call) in _PRODUCTS and bool(call.inputs) and _is_softmax(facts, call.inputs[0].tensor, call.index)


def _is_softmax(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether a tensor is a softmax, as the weights of attention are."""
    for _ in range(_STEPS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs or op_name(made) not in _WEIGHTS:
            return False
        if op_name(made) == "softmax":
            return True
        number, before = made.inputs[0].tensor, made.index
    return False


def _is_turned_back(facts: TraceIndex, call: Call, before: _Shape) -> bool:
    """Returns whether a later reshape gives back the shape from before."""
    after = facts.tensor(call.outputs[0].tensor).shape
    later = (each for each in facts.calls_between(call.index + 1) if op_name(each) in RESHAPING and each.inputs)
    shapes = ((facts.tensor(each.inputs[0].tensor).shape, facts.tensor(each.outputs[0].tensor).shape) for each in later)
    return (after, before) in shapes


def _is_time_first(facts: TraceIndex, layer: Call) -> bool:
    """Returns whether the shapes show that the first dimension of the results is the time."""
    shape = facts.tensor(layer.outputs[0].tensor).shape
    states = facts.tensor(layer.outputs[1].tensor).shape if len(layer.outputs) > 1 else ()
    return shape[0] != shape[1] and len(states) == 3 and states[1] == shape[1]
