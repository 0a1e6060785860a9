"""Finds the operation that made a gradient infinite or NaN although every value was finite.

Operations such as `sqrt`, `log` and division have no finite derivative at some values. If a graph contains one, its
derivative is computed once more from its saved tensors before the pass frees them. It is written only if a finite root
then gives a gradient that is not finite. Graphs without such operations are not read. The derivative of a product is
not finite if a factor is not: products are named only if no other operation is, which may have made this factor.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from types import FrameType
from typing import Any

import torch

from tensorlens.journal.rows import NONE
from tensorlens.records.observations import NonfiniteDerivative
from tensorlens.tracer.isolation.guard import Function
from tensorlens.tracer.isolation.readable import is_in_main_memory, may_read
from tensorlens.tracer.isolation.torch_originals import (
    detach,
    every,
    is_complex,
    isfinite,
    isnan,
    numel,
    ones,
    some,
    total,
)
from tensorlens.tracer.recording import ops
from tensorlens.tracer.recording.graph_nodes import node_of
from tensorlens.tracer.recording.recorder import Recorder, collect_tensors
from tensorlens.tracer.recording.tensor_text import SHOWN_VALUES, short_text
from tensorlens.tracer.saved_tensors.graph import (
    LEAF_SEQUENCE,
    Node,
    data_of,
    nodes_of,
    packed_or_tensor,
    raw_saved_of,
)
from tensorlens.tracer.saved_tensors.nonfinite_products import MAX_PRODUCTS, leaving_out, nonfinite_factor

MAX_ELEMENTS = 1_000_000
MAX_NODES = 100
_UNARY = "sqrt rsqrt log log2 log10 log1p acos asin acosh atanh arccos arcsin arccosh arctanh reciprocal std logit exp"
_LINALG = "eigh svd eig eigvals qr svdvals"
_NODES = (
    "Sqrt", "Rsqrt", "Pow", "Div", "Reciprocal", "Log", "Acos", "Asin", "Atanh", "Std", "LinalgEig", "LinalgSvd",
    "LinalgQr", "Norm", "Logit", "Exp", "Atan2", "Xlogy", "Erfinv",
)  # fmt: skip
_MASKING = ("MaskedFill", "Where", "IndexPut", "CopySlices", "Add")  # may make scores of -inf
_SELECTIONS = ("Where", "MaskedFill", "MaskedScatter", "Index", "Select", "Slice", "Mul")
NonfiniteNode = tuple[str, int, int, int, tuple[int, ...], str]
"""(node, its sequence number, elements that are not finite, elements, selections on the way to the root, the saved
factor of a product that is not finite)"""
_OTHERS_UNSEEN: NonfiniteNode = ("", NONE, 0, 0, (), "")  # in the place of the nodes that are not examined
NOT_EXAMINED = "of a large graph, not every node was examined for a derivative that is infinite or NaN"


def nonfinite_nodes(recorder: Recorder, roots: list[torch.Tensor], frame: FrameType) -> list[NonfiniteNode]:
    """Finds the nodes below `roots` whose derivative is not finite at the values that they saved."""
    if not recorder.risky:
        return []
    recorder.risky = False
    if not all(map(may_read, roots)):
        return []
    try:
        with torch.no_grad():
            if all(map(_is_finite, roots)):
                return list(_examine(roots))
    except Exception as error:  # ours: the user's backward goes on
        recorder.internal_error("where derivatives are not finite", error, frame)
    return []


def note_nonfinite(
    recorder: Recorder, nodes: list[NonfiniteNode], result: object, reached: Collection[int] | None
) -> None:
    """Writes rows for these nodes if a gradient of the pass is not finite. `reached`: what it gives one; None: any."""
    leaves: list[tuple[int, torch.Tensor]] = []
    for number, ref in list(recorder.leaves.items()):
        leaf = ref()
        if leaf is not None and (reached is None or number in reached) and (leaf.is_leaf or leaf.retains_grad):
            leaves.append((number, leaf))
    gradients, _ = recorder.passes.read(leaves)
    returned: list[torch.Tensor] = []
    collect_tensors(result, returned)
    gradients += [(recorder.tensor_ids.id_of(gradient), gradient) for gradient in returned]
    nonfinite = [(number, _text(detach(gradient))) for number, gradient in gradients if _is_nonfinite(gradient)]
    if nonfinite:
        for node in nodes:
            if node is _OTHERS_UNSEEN:
                recorder.gap(NOT_EXAMINED)
            else:
                recorder.rows.write_fact(NonfiniteDerivative, *node[:5], *nonfinite[0], node[5])


def _text(gradient: torch.Tensor) -> str:
    if numel(gradient) <= SHOWN_VALUES:
        return short_text(gradient)
    what = "nan" if bool(some(isnan(gradient))) else "inf"
    return f"{what} in {int(total(~isfinite(gradient)))} of {numel(gradient)} elements"


def _is_nonfinite(gradient: torch.Tensor) -> bool:
    return may_read(gradient) and not _is_finite(gradient)


def _is_finite(tensor: torch.Tensor) -> bool:
    """Returns whether all values are finite. Their sum is nearly always, and takes a fraction of the kernels."""
    return (not is_complex(tensor) and math.isfinite(float(total(tensor)))) or bool(every(isfinite(tensor)))


def _examine(roots: list[torch.Tensor]) -> Iterator[NonfiniteNode]:
    users: dict[Node, list[Node]] = {}
    candidates, is_cut, has_found = 0, list[bool](), False
    products: list[Node] = []
    for node in nodes_of(roots, on_cut=lambda: is_cut.append(True)):
        for following, _ in node.next_functions:
            if following is not None:
                users.setdefault(following, []).append(node)
        if node._sequence_nr() >= LEAF_SEQUENCE:
            continue
        if node.name().startswith("MulBackward"):
            products.append(node)
        elif node.name().startswith(_NODES):
            candidates += 1
            nonfinite, elements = _derivative(node) if candidates <= MAX_NODES else (0, 0)
            if nonfinite:
                has_found = True
                yield node.name(), node._sequence_nr(), nonfinite, elements, tuple(_selections(node, users)), ""
    if not has_found:
        yield from _products(products[:MAX_PRODUCTS], users)
    if candidates > MAX_NODES or len(products) > MAX_PRODUCTS or is_cut:
        yield _OTHERS_UNSEEN


def _products(nodes: list[Node], users: dict[Node, list[Node]]) -> Iterator[NonfiniteNode]:
    """Yields the products with a factor that is not finite."""
    for node in nodes:
        factor = nonfinite_factor(node)
        nonfinite, elements = _derivative(node) if factor else (0, 0)
        if nonfinite:
            yield node.name(), node._sequence_nr(), nonfinite, elements, leaving_out(node, users), factor


def _derivative(node: Node) -> tuple[int, int]:
    """Counts the elements of a node's derivative that are not finite, and all of them."""
    if any(math.prod(one.shape) > MAX_ELEMENTS or not is_in_main_memory(one) for one in node._input_metadata):
        return 0, 0
    if not all(_is_readable(raw) for _, raw in raw_saved_of(node)):
        return 0, 0
    try:
        gradients: list[torch.Tensor] = []
        collect_tensors(
            node(*(ones(list(entry.shape), dtype=entry.dtype) for entry in node._input_metadata)), gradients
        )
    except (RuntimeError, TypeError, AttributeError):
        return 0, 0
    nonfinite = sum(int(total(~isfinite(g))) for g in gradients if not _is_finite(g))
    return nonfinite, sum(numel(g) for g in gradients)


def _is_readable(raw: object) -> bool:
    """Returns whether a saved tensor can be read: only the program may unpack what its hooks packed."""
    try:
        data = None if raw is None else packed_or_tensor(raw)
        return data is None or (isinstance(data, torch.Tensor) and may_read(data))
    except (RuntimeError, AttributeError):
        return False


def _selections(node: Node, users: dict[Node, list[Node]]) -> Iterator[int]:
    """Finds the selections (`where`, indexing, masks) between a node and the root."""
    waiting, seen = [node], {node}
    for current in waiting:
        for consumer in users.get(current, ()):
            if consumer in seen:
                continue
            seen.add(consumer)
            waiting.append(consumer)
            name = consumer.name()
            if name.startswith(_SELECTIONS) and (not name.startswith("Mul") or _has_zero_factor(consumer)):
                yield consumer._sequence_nr()


def _has_zero_factor(product: Node) -> bool:
    """Returns whether a factor of a product contains a zero, as a mask does."""
    for _, raw in raw_saved_of(product):
        data = data_of(raw)
        if data is not None and may_read(data) and bool(some(data == 0)):
            return True
    return False


def _always(args: ops.Args, kwargs: ops.Kwargs) -> bool:
    return True


def _power(args: ops.Args, kwargs: ops.Kwargs) -> bool:
    """Returns whether a power may have an infinite derivative: not with an integer exponent of one or more."""
    exponent = args[1] if len(args) > 1 else kwargs.get("exponent")
    return not isinstance(exponent, int) or exponent < 1


def _division(args: ops.Args, kwargs: ops.Kwargs) -> bool:
    """Returns whether a division may have an infinite derivative: only if the divisor requires grad."""
    divisor = args[1] if len(args) > 1 else kwargs.get("other")
    return isinstance(divisor, torch.Tensor) and divisor.requires_grad


def _log_softmax(args: ops.Args, kwargs: ops.Kwargs) -> bool:
    """Returns whether scores may be masked with -inf, by an operation or before: the derivative of a product with the
    result is infinite then."""
    made: Any = node_of(args[0] if args else kwargs["input"])
    return made is None or made.name().startswith(_MASKING)


def _functions(names: str, *owners: object) -> set[Function]:
    return {getattr(owner, name) for name in names.split() for owner in owners if hasattr(owner, name)}


_POWERS = _functions("pow __pow__ float_power", torch, torch.Tensor)
_DIVISIONS = _functions("div true_divide divide __truediv__ __div__", torch, torch.Tensor)
_LOG_SOFTMAX = _functions("log_softmax", torch, torch.Tensor, torch.nn.functional)
_OTHERS = _functions("__rtruediv__ __rdiv__ atan2 xlogy norm", torch, torch.Tensor)
_ALWAYS = _functions(_UNARY, torch, torch.Tensor) | _functions(_LINALG, torch.linalg) | _OTHERS
RISKS: dict[Function, ops.Risk] = {
    **dict.fromkeys(_ALWAYS, _always),
    **dict.fromkeys(_POWERS, _power),
    **dict.fromkeys(_DIVISIONS, _division),
    **dict.fromkeys(_LOG_SOFTMAX, _log_softmax),
}
"""Functions whose derivative may be infinite or NaN, each with a check of its arguments."""
