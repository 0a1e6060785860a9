"""Puts the tables into the page's data: tensors, training, losses, claims, warnings, and what was not seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tensorlens.analysis.story.tensor_table import tensor_table
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.report import Report
from tensorlens.render.options import RenderOptions
from tensorlens.render.page.strings import NONE
from tensorlens.render.report import headline
from tensorlens.render.report.claim_texts import claim_details, claim_word
from tensorlens.render.report.clean_run import MODULE_HEADINGS, module_cells
from tensorlens.render.report.tensor_rows import HEADINGS, cells_of, table_notes
from tensorlens.render.safe_text import safe

MOST_TENSORS = 2_000  # rows; if there are more tensors, those of one object share a row
Row = tuple[Sequence[str], Sequence[int], int]  # cells, tensors, line of the script or -1


def table_data(report: Report, facts: TraceIndex, options: RenderOptions) -> list[dict[str, Any]]:
    """Returns the tables that have rows. A row has its cells, its tensors, and a line of the script."""
    return [table for table in _tables(report, facts, options) if table["rows"]]


def _tables(report: Report, facts: TraceIndex, options: RenderOptions) -> Iterator[dict[str, Any]]:
    trace = report.trace
    table = tensor_table(trace, facts.names, most=MOST_TENSORS)
    yield _table("Tensors", HEADINGS, [(cells_of(row), row.tensors, NONE) for row in table.rows], table_notes(table))
    if report.standing_out is not None:
        yield from _training(report, facts)
    else:
        yield _table("Modules", MODULE_HEADINGS, [(cells, (), NONE) for cells in module_cells(trace, facts.names)])
    claims: list[Row] = [
        (
            (claim_word(claim), str(claim.line), claim.check, "\n".join(claim_details(claim, options.statements))),
            (),
            claim.line,
        )
        for claim in trace.claims
    ]
    yield _table("Claims", ("verdict", "line", "check", "seen"), claims)
    yield _noticed("Warnings", headline.warnings_noticed(report))
    yield _noticed("Not seen", headline.gaps(trace))


def _training(report: Report, facts: TraceIndex) -> Iterator[dict[str, Any]]:
    from tensorlens.analysis.training.measured import measured_training  # not above: most reports have none
    from tensorlens.render.report import training_losses, training_section

    training = measured_training(facts)
    if training is None:
        return
    cells = training_section.training_cells(training, everything=True)
    rows: list[Row] = [(row, (known.tensor,), NONE) for row, known in zip(cells, training.rows, strict=True)]
    headings = [heading for heading in training_section.HEADINGS if heading != "parameters"]
    skipped = training_section.HEADINGS.index("parameters")
    rows = [
        ([cell for place, cell in enumerate(row) if place != skipped], numbers, line) for row, numbers, line in rows
    ]
    memory = training_section.memory_text(training)
    notes = [training_section.summary(training), *training_section.sentences(report), *([memory] if memory else [])]
    yield _table("Training", ["parameter", *headings[1:]], rows, notes)
    headings, losses = training_losses.losses_cells(training)
    yield _table("Losses", headings, [(row, (), NONE) for row in losses])


def gradient_norms(report: Report, facts: TraceIndex) -> dict[str, str]:
    """Maps parameters to the norm of their gradients, the first and the last, where `--training` measured it."""
    if report.standing_out is None:
        return {}
    from tensorlens.analysis.training.measured import measured_training  # not above: most reports have none

    training = measured_training(facts)
    rows = () if training is None else training.rows
    return {str(row.tensor): _norm_text(row.statistics.norms) for row in rows if row.statistics is not None}


def _norm_text(norms: Sequence[float]) -> str:
    if not norms:
        return ""
    return f"{norms[0]:.2g}" if len(norms) == 1 else f"{norms[0]:.2g} → {norms[-1]:.2g}"


def _noticed(title: str, found: Sequence[tuple[str, str, int]]) -> dict[str, Any]:
    rows: list[Row] = [((place, text, str(count)), (), NONE) for place, text, count in found]
    return _table(title, ("place", "what", "times"), rows)


def _table(title: str, headings: Sequence[str], rows: Sequence[Row], notes: Sequence[str] = ()) -> dict[str, Any]:
    return {
        "title": title,
        "headings": list(headings),
        "rows": [
            {"cells": [_lines(cell) for cell in cells], "tensors": list(tensors), "line": line}
            for cells, tensors, line in rows
        ],
        "notes": [safe(note) for note in notes],
    }


def _lines(cell: str) -> str:
    return "\n".join(map(safe, cell.split("\n")))
