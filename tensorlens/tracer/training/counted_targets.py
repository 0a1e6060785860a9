"""Compares the targets of classes that a loss counts with the ids that a model has looked up at the same places."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from tensorlens.journal.row_buffer import RowBuffer
from tensorlens.records.graph_values import CountedTargets
from tensorlens.tracer.isolation.torch_originals import not_equal
from tensorlens.tracer.saved_tensors.graph import Node
from tensorlens.tracer.training.saved_values import Named, below, of_names, saved, saved_indices, saved_number

_LOSSES = "NllLossBackward0", "NllLoss2DBackward0"
_VIEWS = frozenset("ViewBackward0 UnsafeViewBackward0 UnsqueezeBackward0 SqueezeBackward0".split())
_BETWEEN = _VIEWS | {"LogSoftmaxBackward0", "TransposeBackward0", "PermuteBackward0", "CloneBackward0"}
_CHOOSING = frozenset(("IndexBackward0", "MaskedSelectBackward0"))
_NOT_REDUCED, _LEAST, _MOST_STEPS = 0, 4, 6


def look_at_targets(rows: RowBuffer, named: Named) -> None:
    """Writes a fact for each loss that counts some of the places with an id."""
    tables = [saved(node, "indices") for node in of_names(named, ("EmbeddingBackward0",))]
    ids = [each.reshape(-1) for each in tables if each is not None and each.dim() > 1]
    for node in of_names(named, _LOSSES):
        target = saved(node, "target")
        if target is None or not ids:
            continue
        target = target.reshape(-1)
        for kept in _kept(node, target, named):
            looked_up = next((each for each in ids if len(each) == len(kept)), None)
            count = int(kept.sum())
            if looked_up is None or not _LEAST <= count < len(kept):
                continue
            counted = target[kept] if len(target) == len(kept) else target
            is_hidden = looked_up == counted[0]
            is_one = len(counted) == count and bool((counted == counted[0]).all()) and torch.equal(is_hidden, kept)
            rows.write_fact(CountedTargets, node._sequence_nr(), count, int(counted[0]) if is_one else -1)


def _kept(node: Node, target: torch.Tensor, named: Named) -> Iterator[torch.Tensor]:
    """Yields which places a loss counts: by `ignore_index`, by a mask of its elements, or by one of its input."""
    ignored = saved_number(node, "ignore_index")
    kept = not_equal(target, -100 if ignored is None else ignored)
    if not bool(kept.all()):
        yield kept
        return
    if getattr(node, "_saved_reduction", None) == _NOT_REDUCED:
        yield from _masks_above(node, len(target), named)
        return
    step: Node | None = node
    for _ in range(_MOST_STEPS):
        step = next(iter(below(step)), None) if step is not None else None
        if step is None or step.name() in _CHOOSING:
            break
        if step.name() not in _BETWEEN:
            return
    for mask in _chosen_by(step):
        if mask.dtype == torch.bool and int(mask.sum()) == len(target):
            yield mask.reshape(-1)


def _masks_above(node: Node, size: int, named: Named) -> Iterator[torch.Tensor]:
    """Yields the masks that the elements of a loss are multiplied with, or chosen by."""
    known = {node}
    for _ in range(_MOST_STEPS):
        known |= {each for each in of_names(named, _VIEWS) if not known.isdisjoint(below(each))}
    for each in of_names(named, ("MulBackward0", *_CHOOSING)):
        if known.isdisjoint(below(each)):
            continue
        masks = _chosen_by(each) if each.name() in _CHOOSING else [saved(each, "other"), saved(each, "self")]
        yield from ((mask != 0).reshape(-1) for mask in masks if mask is not None and mask.numel() == size)


def _chosen_by(node: Node | None) -> list[torch.Tensor]:
    if node is None:
        return []
    found = saved_indices(node) if node.name() == "IndexBackward0" else [saved(node, "mask")]
    return [each for each in found if each is not None] if len(found) == 1 else []
