"""Compares the targets of a loss of classes with the ids that a model looks up, each with the one at its place."""

from __future__ import annotations

import torch

from tensorlens.journal.row_buffer import RowBuffer
from tensorlens.records.graph_values import OwnIds
from tensorlens.tracer.training.saved_values import Named, of_names, saved, saved_number

_LOSSES = "NllLossBackward0", "NllLoss2DBackward0"
_LEAST = 8


def look_at_own_ids(rows: RowBuffer, named: Named) -> None:
    """Writes a fact for each loss and lookup of as many ids, in rows that have more than one id."""
    tables = [(node, saved(node, "indices")) for node in of_names(named, ("EmbeddingBackward0",))]
    for node in of_names(named, _LOSSES):
        target = saved(node, "target")
        if target is None or target.numel() < _LEAST:
            continue
        kept = target.reshape(-1) != saved_number(node, "ignore_index")
        counted = target.reshape(-1)[kept]
        for lookup, ids in tables:
            if ids is None or ids.dim() != 2 or ids.numel() != target.numel() or len(counted) < _LEAST:
                continue
            ways = (ids,) if target.shape == ids.shape else (ids, ids.t())
            are_equal = any(torch.equal(each.reshape(-1)[kept], counted) for each in ways)
            is_moving = bool((ids[1:] != ids[:-1]).any()) and bool((ids[:, 1:] != ids[:, :-1]).any())
            rows.write_fact(OwnIds, node._sequence_nr(), lookup._sequence_nr(), are_equal and is_moving)
