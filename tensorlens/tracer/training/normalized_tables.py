"""Compares the square tables that a loss normalises: a symmetric contrastive loss has one and its transpose."""

from __future__ import annotations

from collections import defaultdict

import torch

from tensorlens.journal.row_buffer import RowBuffer
from tensorlens.records.graph_values import NormalizedTables
from tensorlens.tracer.saved_tensors.graph import Node
from tensorlens.tracer.training.saved_values import Named, of_names, saved, saved_number

_SOFTMAX = "LogSoftmaxBackward0", "SoftmaxBackward0"
_SUM = "LogsumexpBackward0"
_CLOSE = 1e-4
_LEAST = 4  # rows


def look_at_tables(rows: RowBuffer, named: Named) -> None:
    """Writes a fact for each size of which there are two tables."""
    found = defaultdict[int, list[tuple[Node, torch.Tensor]]](list)
    for node in of_names(named, (*_SOFTMAX, _SUM)):
        table = _by_rows(node)
        if table is not None:
            found[len(table)].append((node, table))
    for size, tables in found.items():
        if len(tables) == 2 and tables[0][0].name() == tables[1][0].name():
            (one, first), (other, second) = sorted(tables, key=lambda each: each[0]._sequence_nr())
            are_equal = _are_close(first, second) and not _is_symmetric(first)
            rows.write_fact(NormalizedTables, one._sequence_nr(), other._sequence_nr(), size, are_equal)


def _by_rows(node: Node) -> torch.Tensor | None:
    """Returns a square table whose rows a node has normalised, up to one number for each row."""
    table, dimension = saved(node, "self" if node.name() == _SUM else "result"), saved_number(node, "dim")
    if table is None or table.dim() != 2 or table.shape[0] != table.shape[1] or len(table) < _LEAST:
        return None
    if dimension is None or not table.is_floating_point():
        return None
    table = table.float()
    table = table.log() if node.name() == "SoftmaxBackward0" else table
    table = table.t() if dimension in (0, -2) else table
    return table - table.logsumexp(1, keepdim=True)


def _are_close(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.allclose(one, other, rtol=_CLOSE, atol=_CLOSE)


def _is_symmetric(table: torch.Tensor) -> bool:
    """Returns whether a table is its transpose, up to one number for each row."""
    turned = table - table.t()
    return _are_close(turned, turned[:, :1] - turned[:, :1].t())
