"""A comparison in each of its forms: `FORMATS` is the table that the command line and the tests read."""

from __future__ import annotations

import json
from collections.abc import Callable

from tensorlens.compare.comparison_records import Comparison, to_dict
from tensorlens.errors import UsageError
from tensorlens.render.comparison_cells import APART, Notes, cells_of, main_input, shown_rows
from tensorlens.render.comparison_table import to_terminal
from tensorlens.render.markdown_text import code, escaped, marked
from tensorlens.render.options import RenderOptions


def render_comparison(comparison: Comparison, format: str = "table", options: RenderOptions | None = None) -> str:
    """The comparison in one of `FORMATS`, ending in a newline.

    Raises:
        UsageError: there is no such format.
    """
    if format not in FORMATS:
        raise UsageError(f"no such format: {format} (there are {', '.join(FORMATS)})")
    return FORMATS[format](comparison, options or RenderOptions())


def to_json(comparison: Comparison, options: RenderOptions) -> str:
    """One JSON object, as `docs/comparison.schema.json` describes it."""
    return json.dumps(to_dict(comparison), indent=2) + "\n"


def to_markdown(comparison: Comparison, options: RenderOptions) -> str:
    """A Markdown table; what the user typed is data in it, never markup."""
    calls = [code(operand.call) for operand in comparison.operands]
    lines = [f"| | probe | {' | '.join(calls)} |", "|---" * (len(calls) + 2) + "|"]
    notes = Notes()
    apart, alike = shown_rows(comparison, options.everything)
    shown = {row.probe for row in (*apart, *alike)}
    for row in comparison.rows:
        if row.probe not in shown and not (options.everything and row.group == "cost"):
            continue
        cells = ["<br>".join(map(escaped, cell.lines)) for cell in cells_of(comparison, row, notes)]
        lines.append(f"| {APART if row.differs else ''} | {escaped(row.label)} | {' | '.join(cells)} |")
    lines += ["", f"torch {comparison.torch}, x: {escaped(main_input(comparison))}. `{APART}`: they differ.", ""]
    for number, message, page in notes.listed():
        lines += [f"{number} {escaped(message)}" + (f" `{page}`" if page else ""), ""]
    for sentence in comparison.summary.splitlines():
        lines += [marked(sentence), ""]
    return "\n".join(lines[:-1]) + "\n"


FORMATS: dict[str, Callable[[Comparison, RenderOptions], str]] = {
    "table": to_terminal,
    "markdown": to_markdown,
    "json": to_json,
}
