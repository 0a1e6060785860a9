"""Lists the columns of the tensor table, and makes its cells and notes for the forms that draw it."""

from __future__ import annotations

from tensorlens.analysis.story.tensor_table import TensorRow, TensorTable
from tensorlens.render.layout import Column
from tensorlens.render.safe_text import safe

COLUMNS = (
    Column("name", "name"),
    Column("storage"),
    Column("shares|with", folds=True),
    Column("requires_|grad"),
    Column("grad_fn", folds=True),
    Column("leaf"),
    Column("version"),
    Column("grad", folds=True),
)


def cells_of(row: TensorRow) -> tuple[str, ...]:
    """Returns the cells of a row in the order of `COLUMNS`, safe to print."""
    cells = (row.name, row.storage, row.shares, row.requires_grad, row.grad_fn, row.leaf, row.version, row.grad)
    return tuple(map(safe, cells))


def table_notes(table: TensorTable) -> list[str]:
    """Returns notes on tensors that the table leaves out, and on those it shows in an older state."""
    notes = [f"and {table.more} more"] if table.more else []
    if table.stale:
        notes.append(f"as last recorded: {table.stale}")
    return notes
