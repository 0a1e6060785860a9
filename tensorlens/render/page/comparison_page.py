"""Renders a comparison as a page: the table of the terminal, with the rows in which the operands differ marked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tensorlens.compare.comparison_records import Comparison, Row
from tensorlens.render.comparison_cells import ErrorNotes, cells_of, main_input, shown_rows
from tensorlens.render.comparison_table import to_terminal
from tensorlens.render.options import RenderOptions
from tensorlens.render.page.document import document
from tensorlens.render.safe_text import safe

FORMAT, VERSION = "tensorlens.comparison-page", 1


def comparison_to_html(comparison: Comparison, options: RenderOptions) -> str:
    """Returns the page of a comparison. Without JavaScript it shows the comparison as text."""
    data = comparison_data(comparison, options)
    return document(data["title"], data, to_terminal(comparison, replace(options, width=100, color=False)))


def comparison_data(comparison: Comparison, options: RenderOptions) -> dict[str, Any]:
    """Returns what the page of a comparison shows."""
    notes = ErrorNotes()
    differing, agreeing = shown_rows(comparison, options.everything)
    costs = [row for row in comparison.rows if row.group == "cost"] if options.everything else []
    parts = [("they differ", differing), ("they agree", agreeing), ("cost, on a large x", costs)]
    sections = [
        {
            "title": title,
            "rows": [_row(comparison, row, notes) for row in rows],
        }
        for title, rows in parts
        if rows
    ]
    operands = [safe(operand.call) for operand in comparison.operands]
    return {
        "format": FORMAT,
        "version": VERSION,
        "title": " and ".join(operands),
        "head": [f"torch {safe(comparison.torch)}", f"x: {safe(main_input(comparison))}"],
        "operands": operands,
        "sections": sections,
        "summary": [safe(line) for line in comparison.summary.splitlines() if line.strip()],
        "notes": [f"{number} {message}" + (f" `{page}`" if page else "") for number, message, page in notes.listed()],
    }


def _row(comparison: Comparison, row: Row, notes: ErrorNotes) -> dict[str, Any]:
    cells = cells_of(comparison, row, notes)
    return {"label": safe(row.label), "cells": [[*map(safe, cell.lines)] for cell in cells]}
