"""Which operation made a gradient infinite or NaN, where every value was fine.

Operations such as `sqrt`, `log` and division have no finite derivative at some values. Where a graph holds one of
them, their derivatives are computed once more from what they saved, before the pass frees it; only when a finite root
then gives a gradient that is not finite is it written down. Graphs without such operations are not looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from tensorlens.journal.rows import NOTICED
from tensorlens.tracer.isolation.muted_dispatch import has_torch_dispatch
from tensorlens.tracer.isolation.torch_originals import detach, every, isfinite, isnan, numel, ones, some, total
from tensorlens.tracer.recording import ops
from tensorlens.tracer.recording.recorder import Recorder, collect_tensors
from tensorlens.tracer.recording.tensor_text import SHOWN_VALUES, short_text
from tensorlens.tracer.saved_tensors.graph import LEAF_SEQUENCE, nodes_of, raw_saved_of

MAX_ELEMENTS = 1_000_000
MAX_NODES = 100
_UNARY = "sqrt rsqrt log log2 log10 log1p acos asin acosh atanh arccos arcsin arccosh arctanh reciprocal std logit exp"
_LINALG = "eigh svd eig eigvals qr svdvals"
_NODES = (
    "Sqrt", "Rsqrt", "Pow", "Div", "Reciprocal", "Log", "Acos", "Asin", "Atanh", "Std", "LinalgEig", "LinalgSvd",
    "LinalgQr", "Norm", "Logit", "Exp", "Atan2", "Xlogy", "Erfinv",
)  # fmt: skip
_SELECTIONS = ("Where", "MaskedFill", "MaskedScatter", "Index", "Select", "Slice", "Mul")
Found = tuple[str, int, int, int, tuple[int, ...]]


def nonfinite_nodes(recorder: Recorder, roots: list[torch.Tensor], frame: Any) -> list[Found]:
    """(node, sequence, elements that are not finite, elements, selections above it) of the nodes below `roots` whose
    derivative is not finite at the values that they saved."""
    if not recorder.risky:
        return []
    recorder.risky = False
    if any(map(has_torch_dispatch, roots)):
        return []
    try:
        with torch.no_grad():
            if all(root.device.type == "cpu" and bool(every(isfinite(root))) for root in roots):
                return list(_examine(roots))
    except Exception as error:  # ours: the user's backward goes on
        recorder.internal_error("where derivatives are not finite", error, frame)
    return []


def note_nonfinite(recorder: Recorder, found: list[Found], result: Any) -> None:
    """Write rows for them if a gradient that the pass gave is not finite."""
    gradients: list[tuple[int, torch.Tensor]] = []
    for number, ref in recorder.leaves.items():
        leaf = ref()
        if leaf is not None and (leaf.is_leaf or leaf.retains_grad) and leaf.grad is not None:
            gradients.append((number, leaf.grad))
    returned: list[torch.Tensor] = []
    collect_tensors(result, returned)
    gradients += [(recorder.tensor_ids.id_of(gradient), gradient) for gradient in returned]
    spoiled = [(number, _text(detach(gradient))) for number, gradient in gradients if _is_spoiled(gradient)]
    if spoiled:
        recorder.rows.extend((NOTICED, "singular", *node, *spoiled[0]) for node in found)


def _text(gradient: torch.Tensor) -> str:
    if numel(gradient) <= SHOWN_VALUES:
        return short_text(gradient)
    what = "nan" if bool(some(isnan(gradient))) else "inf"
    return f"{what} in {int(total(~isfinite(gradient)))} of {numel(gradient)} elements"


def _is_spoiled(gradient: torch.Tensor) -> bool:
    return gradient.layout is torch.strided and _is_read(gradient) and not bool(every(isfinite(gradient)))


def _examine(roots: list[torch.Tensor]) -> Iterator[Found]:
    above: dict[Any, list[Any]] = {}
    looked_at = 0
    for node in nodes_of(roots):
        for following, _ in node.next_functions:
            if following is not None:
                above.setdefault(following, []).append(node)
        if node._sequence_nr() < LEAF_SEQUENCE and node.name().startswith(_NODES) and looked_at < MAX_NODES:
            looked_at += 1
            infinite, total = _derivative(node)
            if infinite:
                yield node.name(), node._sequence_nr(), infinite, total, tuple(_selections(node, above))


def _derivative(node: Any) -> tuple[int, int]:
    """How many elements of the node's derivative are not finite, and how many there are."""
    if any(math.prod(entry.shape) > MAX_ELEMENTS for entry in node._input_metadata):
        return 0, 0
    if not all(_is_plain(raw) for _, raw in raw_saved_of(node)):
        return 0, 0
    try:
        given = [ones(list(entry.shape), dtype=entry.dtype) for entry in node._input_metadata]
        found: list[torch.Tensor] = []
        collect_tensors(node(*given), found)
    except (RuntimeError, TypeError, AttributeError):
        return 0, 0
    return sum(int(total(~isfinite(g))) for g in found), sum(numel(g) for g in found)


def _is_plain(raw: Any) -> bool:
    """Whether a saved tensor is there as it is: what hooks have packed is the program's to unpack."""
    try:
        return raw is None or (isinstance(raw.data, torch.Tensor | None) and _is_read(raw.data))
    except (RuntimeError, AttributeError):
        return False


def _is_read(data: torch.Tensor | None) -> bool:
    return data is None or (data.device.type == "cpu" and not has_torch_dispatch(data))


def _selections(node: Any, above: dict[Any, list[Any]]) -> Iterator[int]:
    """The selections that what the node made went through on its way to the root."""
    waiting, seen = [node], {node}
    for current in waiting:
        for consumer in above.get(current, ()):
            if consumer in seen:
                continue
            seen.add(consumer)
            waiting.append(consumer)
            if consumer.name().startswith(_SELECTIONS) and (not consumer.name().startswith("Mul") or _masks(consumer)):
                yield consumer._sequence_nr()


def _masks(product: Any) -> bool:
    """Whether a factor of a product is zero somewhere: a mask."""
    for _, raw in raw_saved_of(product):
        if raw is not None and _is_plain(raw) and raw.data is not None and bool(some(raw.data == 0)):
            return True
    return False


def _always(args: Any, kwargs: Any) -> bool:
    return True


def _power(args: Any, kwargs: Any) -> bool:
    """Powers with a whole exponent of one or more have a finite derivative everywhere."""
    exponent = args[1] if len(args) > 1 else kwargs.get("exponent")
    return not isinstance(exponent, int) or exponent < 1


def _division(args: Any, kwargs: Any) -> bool:
    """Division by what needs no gradient and is no zero is safe; by a plain number, in any case."""
    divisor = args[1] if len(args) > 1 else kwargs.get("other")
    return isinstance(divisor, torch.Tensor) and divisor.requires_grad


def _functions(names: str, *owners: Any) -> set[Any]:
    return {getattr(owner, name) for name in names.split() for owner in owners if hasattr(owner, name)}


_POWERS = _functions("pow __pow__ float_power", torch, torch.Tensor)
_DIVISIONS = _functions("div true_divide divide __truediv__ __div__", torch, torch.Tensor)
_OTHERS = _functions("__rtruediv__ __rdiv__ atan2 xlogy norm", torch, torch.Tensor)
_ALWAYS = _functions(_UNARY, torch, torch.Tensor) | _functions(_LINALG, torch.linalg) | _OTHERS
RISKS: dict[ops.Function, ops.Risk] = {
    **dict.fromkeys(_ALWAYS, _always),
    **dict.fromkeys(_POWERS, _power),
    **dict.fromkeys(_DIVISIONS, _division),
}
"""Functions whose derivative may be infinite or NaN, each with a check of its arguments."""
