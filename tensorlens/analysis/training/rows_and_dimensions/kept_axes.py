"""Follows a dimension of rows from an input of a call to its result, where the source need not be read for that."""

from __future__ import annotations

from math import prod

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.row_starts import BY_PLACE
from tensorlens.records.model import Call

_LAST = frozenset(
    "linear layer_norm rms_norm normalize softmax log_softmax glu embedding".split()
)  # change the last one
_WHOLE = frozenset("multi_head_attention_forward scaled_dot_product_attention gru lstm rnn_tanh rnn_relu".split())
_CUTTING = frozenset(("getitem", "narrow"))
_SHAPING = frozenset("view reshape flatten".split())
_MOVING = frozenset(
    "transpose permute t T mT squeeze unsqueeze getitem select unbind mean sum max amax min amin logsumexp norm narrow "
    "matmul movedim swapaxes".split()
)


def axis_after(facts: TraceIndex, call: Call, at: int, axis: int) -> int | None:
    """Returns the dimension of the first result whose places are those of a dimension of an input; None if unknown.

    A reshape may join it with others. Some places may be added at an end, as that of a class token, or cut off.
    """
    if not call.outputs or call.writes:
        return None
    given, made = (facts.tensor(each.tensor).shape for each in (call.inputs[at], call.outputs[0]))
    name, rows = op_name(call), given[axis]
    if name in BY_PLACE or name == "cat":
        found = len(made) - len(given) + axis
    elif at == 0 and name in _SHAPING:
        found = _reshaped(given, made, axis)
    elif at == 0 and _keeps_place(name, given, made, axis):
        found = axis
    elif at == 0 and name in _MOVING and given.count(rows) == made.count(rows) == 1:
        found = made.index(rows)
    else:
        return None
    is_resized = name in _SHAPING or name == "cat" or name in _CUTTING
    is_kept = 0 <= found < len(made) and (made[found] == rows or is_resized)
    return found if is_kept else None


def _keeps_place(name: str, given: tuple[int, ...], made: tuple[int, ...], axis: int) -> bool:
    if name in _LAST:
        return axis < len(given) - 1
    return len(given) == len(made) and (name in _WHOLE or (name in _CUTTING and made[axis] < given[axis]))


def _reshaped(given: tuple[int, ...], made: tuple[int, ...], axis: int) -> int:
    """Returns the dimension that holds all rows, alone or with those before them; -1 if there is none."""
    for found in range(len(made)):
        if prod(made[: found + 1]) == prod(given[: axis + 1]):
            is_alone = prod(made[:found]) == prod(given[:axis])
            return found if is_alone or found == 0 else -1
    return -1
