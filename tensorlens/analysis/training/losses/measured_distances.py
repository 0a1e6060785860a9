"""Finds out whether a tensor holds distances, or similarities, and of which tensors."""

from __future__ import annotations

from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.value_ranges import is_scaled, is_zero_or_one
from tensorlens.records.model import Call

_KEPT = frozenset(
    "sum mean sqrt squeeze unsqueeze view reshape flatten gather diagonal diag masked_fill where clamp clamp_min "
    "amax amin max min getitem add radd topk sort masked_select".split()
)
_DISTANCES = frozenset("pairwise_distance cdist".split())
_SIMILARITIES = frozenset("cosine_similarity matmul mm bmm einsum".split())
_NORMS = frozenset("norm vector_norm linalg_norm pow square abs".split())
_VIEWS = frozenset("unsqueeze squeeze getitem view reshape expand transpose t T".split())
_LOOKUPS = frozenset("embedding getitem index_select".split())
_MAX_CALLS, _MOST_LOOKUPS = 10, 4


@dataclass(frozen=True, slots=True)
class Distance:
    """The tensors, or the rows looked up, that are compared. `sign` is 1 for their distance, -1 for a similarity."""

    sign: int
    operands: frozenset[object]


def distance_of(facts: TraceIndex, number: int, before: int) -> Distance | None:
    """Returns which tensors a tensor holds the distances or similarities of; None if it is not known to hold any."""
    sign = 1
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs or made.writes:
            return None
        name, inputs = op_name(made), [access.tensor for access in made.inputs]
        if name in _DISTANCES | _SIMILARITIES:
            return Distance(sign if name in _DISTANCES else -sign, _operands(facts, inputs, made.index))
        if name in _NORMS or (name == "mul" and len(inputs) == 2 and inputs[0] == inputs[1]):
            difference = _difference(facts, inputs[0], made.index)
            if difference is not None:
                return Distance(sign, difference)
            if name in ("norm", "vector_norm", "linalg_norm", "mul", "abs"):
                return None
        elif name == "mul" and len(inputs) == 2 and (masked := _masked(facts, inputs, made.index)) is not None:
            number, before = masked, made.index
            continue
        elif name == "mul" and len(inputs) == 2:
            same = len({facts.tensor(each).shape[-1:] for each in inputs}) == 1
            return Distance(-sign, _operands(facts, inputs, made.index)) if same else None
        elif name == "neg" or (name == "rsub" and len(inputs) == 1):
            sign = -sign
        elif (name not in _KEPT and not _is_scaled(facts, made)) or (name in ("add", "radd") and len(inputs) > 1):
            return None
        number, before = inputs[0], made.index
    return None


def _masked(facts: TraceIndex, inputs: list[int], before: int) -> int | None:
    """Returns the factor of a product whose other factor is a mask of zeros and ones."""
    return next((one for one, mask in (inputs, inputs[::-1]) if is_zero_or_one(facts, mask, before)), None)


def _is_scaled(facts: TraceIndex, call: Call) -> bool:
    return len(call.inputs) == 1 and is_scaled(facts, call)


def _difference(facts: TraceIndex, number: int, before: int) -> frozenset[object] | None:
    """Returns the two tensors of a difference."""
    made = next(iter(facts.producers(number, before)), None)
    if made is None or op_name(made) != "sub" or len(made.inputs) != 2:
        return None
    return _operands(facts, [access.tensor for access in made.inputs], made.index)


def _operands(facts: TraceIndex, numbers: list[int], before: int) -> frozenset[object]:
    return frozenset(_origin(facts, number, before, _MOST_LOOKUPS) for number in numbers)


def _origin(facts: TraceIndex, number: int, before: int, depth: int) -> object:
    """Returns what a tensor is a view of, or was looked up by: equal for two lookups of the same rows."""
    made = next(iter(facts.producers(number, before)), None)
    if made is None or not depth or not made.inputs:
        return number
    inputs = [_origin(facts, access.tensor, made.index, depth - 1) for access in made.inputs]
    if op_name(made) in _VIEWS and len(inputs) == 1:
        return inputs[0]
    return (op_name(made), *inputs) if op_name(made) in _LOOKUPS and len(inputs) > 1 else number
