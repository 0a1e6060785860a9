"""Lists the parameters that `fully_shard` has divided among the ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tensorlens.analysis.ranks.rank_texts import short_ranks
from tensorlens.records.merged_report import MergedReport
from tensorlens.render.tables import Cell, HouseTable

_MOST = 8  # rows


@dataclass(frozen=True)
class ShardRow:
    """One parameter, and the shapes of its parts with the ranks that hold them."""

    name: str
    form: str  # "[3, 4] float32"
    computes_in: str  # "bfloat16"; "": it is not converted
    mesh: tuple[int, ...]
    parts: tuple[tuple[str, tuple[int, ...]], ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "parameter": self.name,
            "whole": self.form,
            "computes_in": self.computes_in or None,
            "mesh": list(self.mesh),
            "parts": [{"shape": shape, "ranks": list(ranks)} for shape, ranks in self.parts],
        }


def shard_rows(report: MergedReport) -> list[ShardRow]:
    """Returns the divided parameters in their order: those of equal groups of parameters of all ranks."""
    parts: dict[tuple[int, str, str, str, tuple[int, ...]], dict[str, list[int]]] = {}
    for ending in report.endings:
        if ending.report is not None:
            for group in ending.report.trace.inspection.sharded:
                for name, form, shape in zip(group.names, group.forms, group.shards, strict=True):
                    key = group.number, name, form, group.computes_in, group.mesh
                    parts.setdefault(key, {}).setdefault(shape, []).append(ending.rank)
    return [
        ShardRow(name, form, computes_in, mesh, tuple((shape, tuple(ranks)) for shape, ranks in held.items()))
        for (_, name, form, computes_in, mesh), held in parts.items()
    ]


def sharded_table(report: MergedReport) -> HouseTable | None:
    """Returns the table of the divided parameters; None if there are none."""
    rows = shard_rows(report)
    if not rows:
        return None
    table = HouseTable(["sharded", "whole", "part"])
    for row in rows[:_MOST]:
        whole = row.form + (f", computes in {row.computes_in}" if row.computes_in else "")
        held = ", ".join(f"{shape} on {short_ranks(ranks)}" for shape, ranks in row.parts)
        table.add(row.name, Cell(whole, hang=2), Cell(held, hang=2))
    if len(rows) > _MOST:
        table.add("", "", Cell(f"and {len(rows) - _MOST} more (all: --format json)", "quiet"))
    return table
