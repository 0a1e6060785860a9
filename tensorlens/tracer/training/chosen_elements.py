"""Notes which elements of a square table a loss takes: those of the rows themselves, or those of partners."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from tensorlens.journal.row_buffer import RowBuffer
from tensorlens.records.graph_values import ChosenOwn, ChosenPartners
from tensorlens.tracer.saved_tensors.graph import Node
from tensorlens.tracer.training.saved_values import (
    Named,
    below,
    of_names,
    saved,
    saved_indices,
    saved_number,
    saved_sizes,
)

_VALUES = "AmaxBackward0", "AminBackward0"
_INDICES = "MaxBackward0", "MinBackward0", "TopkBackward0"
_ROWS = "IndexBackward0", "IndexSelectBackward0"
_LOSSES = ("NllLossBackward0",)
_PRODUCTS, _LEAST = ("MulBackward0", "WhereBackward0"), 4


def look_at_elements(rows: RowBuffer, named: Named) -> None:
    """Writes a fact for each call that takes an extreme of each row, and for each that takes the one of a partner."""
    for node in of_names(named, (*_VALUES, *_INDICES, *_ROWS)):
        name = node.name()
        counts = (_of_values if name in _VALUES else _of_rows if name in _ROWS else _of_indices)(node)
        if counts is not None:
            rows.write_fact(ChosenOwn, node._sequence_nr(), *counts)
    for node, columns in _chosen(named):
        size = len(columns)
        places = torch.arange(size)
        for distance, partners in ((1, places ^ 1), (size // 2, (places + size // 2) % size)):
            if size >= _LEAST and size % 4 == 0 and torch.equal(columns, partners):
                rows.write_fact(ChosenPartners, node._sequence_nr(), size, distance)


def _of_values(node: Node) -> tuple[int, int, int] | None:
    """Returns (rows, those that choose themselves, those of them with others) of an extreme whose table is known."""
    table, dimension = saved(node, "self"), saved_number(node, "dim")
    if table is None or not _is_square(table) or dimension is None:
        return None
    table = table.t() if dimension in (0, -2) else table
    best, worst = (table.amax(1), table.amin(1)) if node.name() == _VALUES[0] else (table.amin(1), table.amax(1))
    is_own = table.diagonal() == best
    has_others = (table != worst[:, None]).sum(1) > 1
    return len(table), int(is_own.sum()), int((is_own & has_others).sum())


def _of_indices(node: Node) -> tuple[int, int, int] | None:
    """Returns the same of an extreme whose places are known; what there is to choose from is known by its mask."""
    indices, dimension, sizes = saved(node, "indices"), saved_number(node, "dim"), saved_sizes(node)
    if indices is None or dimension is None or len(sizes) != 2 or sizes[0] != sizes[1]:
        return None
    if indices.numel() != sizes[0] or sizes[0] < _LEAST:
        return None
    is_own = indices.reshape(-1) == torch.arange(sizes[0])
    for masked in below(node):
        mask = saved(masked, "mask" if masked.name() == "MaskedFillBackward0" else "condition")
        if mask is not None and mask.shape == sizes:
            mask = mask if bool(mask.diagonal().all()) else ~mask
            has_others = mask.sum(0 if dimension in (0, -2) else 1) > 1
            return sizes[0], int(is_own.sum()), int((is_own & has_others).sum())
    return sizes[0], int(is_own.sum()), -1


def _of_rows(node: Node) -> tuple[int, int, int] | None:
    """Returns the same of a call that takes as many rows of a matrix as it has."""
    sizes = saved_sizes(node)
    indices = saved_indices(node)[:1] if node.name() == "IndexBackward0" else [saved(node, "index")]
    index = indices[0] if len(sizes) == 2 and indices else None
    if index is None or index.dtype != torch.int64 or index.shape != sizes[:1] or sizes[0] < _LEAST:
        return None
    return sizes[0], int((index == torch.arange(sizes[0])).sum()), -1


def _is_square(table: torch.Tensor) -> bool:
    return table.dim() == 2 and table.shape[0] == table.shape[1] >= _LEAST


def _chosen(named: Named) -> Iterator[tuple[Node, torch.Tensor]]:
    """Yields the calls that take one element of each row of a square table, with the columns of these."""
    for node in of_names(named, _LOSSES):
        table, target = saved(node, "self"), saved(node, "target")
        if table is not None and _is_square(table) and target is not None and target.shape == table.shape[:1]:
            yield node, target
    for node in of_names(named, ("GatherBackward0",)):
        table, index = saved(node, "self"), saved(node, "index")
        if table is not None and _is_square(table) and index is not None and index.shape == (len(table), 1):
            yield node, index[:, 0]
    for node in of_names(named, ("IndexBackward0",)):
        sizes, indices = saved_sizes(node), saved_indices(node)
        if len(sizes) == 2 and sizes[0] == sizes[1] >= _LEAST:
            yield from ((node, columns) for columns in _of_pairs(indices, sizes[0]))
    for node in of_names(named, (*_PRODUCTS, "MaskedSelectBackward0")):
        for slot in ("other", "self") if node.name() == "MulBackward0" else ("condition", "mask"):
            yield from ((node, columns) for columns in _of_mask(saved(node, slot)))


def _of_pairs(indices: list[torch.Tensor | None], size: int) -> Iterator[torch.Tensor]:
    """Yields the columns of `table[rows, columns]` or `table[mask]`, if they are one for each row."""
    if len(indices) == 1:
        yield from _of_mask(indices[0])
    elif len(indices) == 2 and (first := indices[0]) is not None and (second := indices[1]) is not None:
        if first.dtype == second.dtype == torch.int64 and first.shape == second.shape == (size,):
            order = first.argsort()
            if torch.equal(first[order], torch.arange(size)):
                yield second[order]


def _of_mask(mask: torch.Tensor | None) -> Iterator[torch.Tensor]:
    """Yields the column of each row at which a mask is not zero, if it is one besides the row itself."""
    if mask is None or not _is_square(mask) or mask.is_complex():
        return
    chosen = (mask != 0).fill_diagonal_(False)
    if bool((chosen.sum(1) == 1).all()):
        yield chosen.int().argmax(1)
