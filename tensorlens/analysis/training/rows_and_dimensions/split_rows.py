"""Finds reshapes that cut the rows of a tensor into groups where its features are to be cut into heads:
`x.view(batch, heads, time, size)` of (batch, time, heads * size), or `x.view(batch * heads, time, size)`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.rows_and_dimensions.reshape_chains import RESHAPING, reshaped
from tensorlens.records.model import Call

_MOVING = frozenset("transpose permute swapaxes contiguous mT mul div truediv rmul".split())
_MULTIPLYING = frozenset("matmul rmatmul bmm einsum scaled_dot_product_attention".split())
_ROW_BY_ROW = frozenset("linear layer_norm dropout chunk split transpose add mul relu gelu tanh".split())
_TAKING = frozenset(("getitem", "unbind"))  # a part of each row
_MAX_USES = 4


@dataclass(frozen=True, slots=True)
class SplitRows:
    """A reshape of (..., rows, heads * size) to (..., heads, rows, size), or to (... * heads, rows, size)."""

    reshape: Call
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def heads(self) -> int:
        return self.before[-1] // self.after[-1]


def split_rows(facts: TraceIndex) -> Iterator[SplitRows]:
    """Yields these reshapes of computed values of which one is multiplied by another, one for each line.

    So queries are multiplied by keys. A layer that computes matrices gives the product one of them.
    """
    found: dict[int, SplitRows] = {}
    for call in facts.calls:
        if op_name(call) in RESHAPING and call.inputs and call.outputs and call.site not in found:
            number, made = reshaped(facts, call)
            before, after = facts.tensor(number).shape, facts.tensor(call.outputs[0].tensor).shape
            if _splits_rows(before, after) and _is_of_rows(facts, made) and facts.requires_grad(number, call.index):
                found[call.site] = SplitRows(call, before, after)
    readers = _first_readers(facts) if found else {}
    for each in found.values():
        product = _product(readers, each.reshape)
        if product is not None and all(_is_split(facts, access.tensor, product.index) for access in product.inputs[:2]):
            yield each


def _is_of_rows(facts: TraceIndex, made: Call | None) -> bool:
    """Returns whether a call made each row of its own; other layouts may be learned."""
    if made is None or op_name(made) in _ROW_BY_ROW:
        return made is not None
    if op_name(made) in _TAKING and made.inputs:
        source = next(iter(facts.producers(made.inputs[0].tensor, made.index)), None)
        return source is not None and op_name(source) == "linear"
    weights = [facts.tensor(access.tensor) for access in made.inputs[1:2]]
    is_product = op_name(made) == "matmul" and len(made.inputs) == 2
    return is_product and all(each.type == "Parameter" and len(each.shape) == 2 for each in weights)


def _is_split(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether a factor of a product is such a reshape, perhaps moved or scaled."""
    for _ in range(_MAX_USES):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs or not made.outputs:
            return False
        if op_name(made) in RESHAPING:
            source, _ = reshaped(facts, made)
            return _splits_rows(facts.tensor(source).shape, facts.tensor(made.outputs[0].tensor).shape)
        if op_name(made) not in _MOVING:
            return False
        number, before = made.inputs[0].tensor, made.index
    return False


def _splits_rows(before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    if len(before) < 3 or len(after) < 3:
        return False
    (rows, features), (kept, size) = before[-2:], after[-2:]
    heads = features // size if size else 0
    is_split = kept == rows != heads and heads * size == features and min(heads, rows, size) > 1
    is_apart = after[:-2] == (*before[:-2], heads)
    return is_split and (is_apart or after[:-2] == (*before[:-3], before[-3] * heads))


def _first_readers(facts: TraceIndex) -> dict[int, Call]:
    """Returns the first call that takes each tensor."""
    readers: dict[int, Call] = {}
    for call in facts.calls:
        for access in call.inputs:
            readers.setdefault(access.tensor, call)
    return readers


def _product(readers: dict[int, Call], call: Call) -> Call | None:
    """Returns the matrix product that the result goes into, perhaps after a transpose or a scale."""
    number = call.outputs[0].tensor
    for _ in range(_MAX_USES):
        reader = readers.get(number)
        if reader is None or op_name(reader) in _MULTIPLYING:
            return reader
        if op_name(reader) not in _MOVING or not reader.outputs:
            return None
        number = reader.outputs[0].tensor
    return None
