"""Finds products with an infinite or NaN factor, and the selection that leaves these elements of the product out.

Backward multiplies the gradient of the product by this factor: where it is zero, zero times infinity is NaN. The zero
comes from a selection after the product, which a finite root needs too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch

from tensorlens.tracer.isolation.readable import is_in_main_memory, may_read
from tensorlens.tracer.isolation.torch_originals import every, isfinite, numel, some
from tensorlens.tracer.saved_tensors.graph import Node, data_of, raw_saved_of

MAX_PRODUCTS = 100  # of a graph that are looked at
_MAX_ELEMENTS = 1_000_000
_ELEMENT_BY_ELEMENT = ("Neg", "Mul", "Div", "Add", "Sub")
_REPLACING = ("NanToNum", "Nansum")
_MASKS = {"Where": "condition", "MaskedFill": "mask", "MaskedSelect": "mask", "Index": "indices[0]"}


def nonfinite_factor(product: Node) -> str:
    """Returns the name of the first saved factor of a product that is not finite: "self" or "other"; else ""."""
    for slot, data in _saved(product):
        if not bool(every(isfinite(data))):
            return slot
    return ""


def leaving_out(product: Node, users: Mapping[Node, Sequence[Node]]) -> tuple[int, ...]:
    """Returns the sequence number of the selection that leaves out what is not finite in a product, if one is found.

    Only operations on single elements may be between them: the mask of the selection is then one of the product.
    """
    odd = [~isfinite(data) for _, data in _saved(product)]
    if not odd:
        return ()
    left = odd[0] if len(odd) == 1 else odd[0] | odd[1]
    waiting, seen = [product], {product}
    for current in waiting:
        for user in users.get(current, ()):
            if user in seen:
                continue
            seen.add(user)
            if _leaves_out(user, current, left):
                return (user._sequence_nr(),)
            if user.name().startswith(_ELEMENT_BY_ELEMENT):
                waiting.append(user)
    return ()


def _saved(product: Node) -> Iterator[tuple[str, torch.Tensor]]:
    for slot, raw in raw_saved_of(product):
        data = data_of(raw)
        if data is not None and may_read(data) and is_in_main_memory(data) and numel(data) <= _MAX_ELEMENTS:
            yield slot, data


def _leaves_out(selection: Node, given: Node, odd: torch.Tensor) -> bool:
    """Returns whether a node is a selection that takes no element of `given` that is `odd`."""
    name = selection.name()
    if name.startswith(_REPLACING):
        return True
    slot = next((slot for kind, slot in _MASKS.items() if name.startswith(f"{kind}Backward")), None)
    masks = [data_of(raw) for one, raw in raw_saved_of(selection) if one == slot or one.startswith("indices[")]
    if len(masks) != 1 or masks[0] is None or masks[0].dtype != torch.bool or not may_read(masks[0]):
        return False
    mask = masks[0]
    if name.startswith("Index") and list(mask.shape) != list(given._input_metadata[0].shape):
        return False
    places = [place for place, (following, _) in enumerate(selection.next_functions) if following is given]
    is_first = places == [0]
    if len(places) != 1 or (not is_first and not name.startswith("Where")):
        return False
    taken = ~mask if name.startswith("MaskedFill") or not is_first else mask
    try:
        return not bool(some(odd & taken))
    except RuntimeError:  # the shapes differ
        return False
