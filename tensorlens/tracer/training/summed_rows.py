"""Compares the index of a sum, as of messages along edges, with the indices by which a model takes rows."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from tensorlens.journal.row_buffer import RowBuffer
from tensorlens.records.graph_values import SummedRows
from tensorlens.tracer.saved_tensors.graph import Node
from tensorlens.tracer.training.saved_values import Named, of_names, saved, saved_indices

_SUMS = (
    "IndexAddBackward0",
    "ScatterAddBackward0",
    "ScatterReduceBackward0",
    "IndexPutBackward0",
    "IndexReduceBackward0",
)
_TAKES = "IndexBackward0", "IndexSelectBackward0", "GatherBackward0", "EmbeddingBackward0"
_LEAST, _MOST_FACTS = 8, 8  # items; facts of a pass


def look_at_sums(rows: RowBuffer, named: Named) -> None:
    """Writes a fact for each of the first sums whose items are no plain order of all places."""
    taken = [(node, index) for node in of_names(named, _TAKES) for index in _indices(node)]
    sums = [(node, index) for node in of_names(named, _SUMS) for index in _indices(node)]
    for node, index in sums[:_MOST_FACTS] if taken else ():
        alike = [each for each, other in taken if torch.equal(index, other)]
        others = sum(len(other) == len(index) and not torch.equal(index, other) for _, other in taken)
        if len(index.unique()) < len(index):
            rows.write_fact(SummedRows, node._sequence_nr(), tuple(each._sequence_nr() for each in alike), others)


def _indices(node: Node) -> Iterator[torch.Tensor]:
    """Yields the index of a call along one dimension, also if it is repeated along others."""
    if node.name() == "IndexPutBackward0" and not getattr(node, "_saved_accumulate", False):
        return
    if node.name() in ("IndexBackward0", "IndexPutBackward0"):
        found = [each for each in saved_indices(node) if each is not None]
    else:
        found = [each for each in (saved(node, slot) for slot in ("index", "indices")) if each is not None]
    if len(found) != 1 or found[0].dtype not in (torch.int64, torch.int32):
        return
    (index,) = found
    if index.dim() == 2 and torch.equal(index, index[:, :1].expand_as(index)):
        index = index[:, 0]
    if index.dim() == 1 and len(index) >= _LEAST:
        yield index
