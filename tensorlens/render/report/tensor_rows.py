"""Draws the tensor table, and makes its cells and notes for all forms."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from tensorlens.analysis.story.tensor_table import TensorRow, TensorTable
from tensorlens.render.safe_text import safe
from tensorlens.render.tables import HouseTable

HEADINGS = ("name", "storage", "shares with", "requires_grad", "grad_fn", "leaf", "version", ".grad")
_OPTIONAL = (2, 4)  # columns that are left out if they are empty


def cells_of(row: TensorRow) -> tuple[str, ...]:
    """Returns the cells of a row in the order of `HEADINGS`, safe to print."""
    cells = (row.name, row.storage, row.shares, row.requires_grad, row.grad_fn, row.leaf, row.version, row.grad)
    return tuple(map(safe, cells))


def table_notes(table: TensorTable) -> list[str]:
    """Returns notes on tensors that the table leaves out, and on those it shows in an older state."""
    notes = [f"and {table.more} more"] if table.more else []
    if table.stale:
        notes.append(f"the states as last recorded: {table.stale}")
    return notes


def tensor_parts(tensors: TensorTable) -> list[RenderableType]:
    """Returns the table and its notes; nothing if there is no tensor."""
    if not tensors.rows:
        return []
    headings = [heading.replace(" ", "\n").replace("_grad", "_\ngrad") for heading in HEADINGS]
    table = HouseTable(headings, ["name"], optional=_OPTIONAL)
    for row in tensors.rows:
        table.add(*cells_of(row))
    return [table, *(Text(text, "quiet") for text in table_notes(tensors))]
