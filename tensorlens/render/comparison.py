"""Renders a comparison in each of the forms of `RENDERERS`."""

from __future__ import annotations

import json
from collections.abc import Callable

from tensorlens.compare.comparison_records import Comparison, to_dict
from tensorlens.render import choose
from tensorlens.render.comparison_cells import DIFFERS, ErrorNotes, cells_of, main_input, shown_rows
from tensorlens.render.comparison_table import to_terminal
from tensorlens.render.markdown_text import code, escaped, markdown_table, marked
from tensorlens.render.options import RenderOptions


def render_comparison(comparison: Comparison, form: str = "table", options: RenderOptions | None = None) -> str:
    """Renders a comparison in one of the forms of `RENDERERS`, ending in a newline.

    Raises:
        UsageError: there is no such form.
    """
    return choose(RENDERERS, form)(comparison, options or RenderOptions())


def to_json(comparison: Comparison, options: RenderOptions) -> str:
    """Returns one JSON object, as `docs/comparison.schema.json` describes it."""
    return json.dumps(to_dict(comparison), indent=2) + "\n"


def to_markdown(comparison: Comparison, options: RenderOptions) -> str:
    """Returns a Markdown table and the closing paragraph. Text that the user typed is escaped."""
    notes = ErrorNotes()
    differing, agreeing = shown_rows(comparison, options.everything)
    shown = {row.probe for row in (*differing, *agreeing)}
    rows = []
    for row in comparison.rows:
        if row.probe not in shown and not (options.everything and row.group == "cost"):
            continue
        cells = ["<br>".join(map(escaped, cell.lines)) for cell in cells_of(comparison, row, notes)]
        rows.append([DIFFERS if row.differs else "", escaped(row.label), *cells])
    lines = markdown_table(["", "probe", *(code(operand.call) for operand in comparison.operands)], rows)
    lines += ["", f"torch {comparison.torch}, x: {escaped(main_input(comparison))}. `{DIFFERS}`: they differ.", ""]
    for number, message, page in notes.listed():
        lines += [f"{number} {escaped(message)}" + (f" `{page}`" if page else ""), ""]
    for sentence in comparison.summary.splitlines():
        lines += [marked(sentence), ""]
    return "\n".join(lines[:-1]) + "\n"


def to_html(comparison: Comparison, options: RenderOptions) -> str:
    """Returns one HTML file, to be opened in a browser."""
    from tensorlens.render.page.comparison_page import comparison_to_html  # not above: most comparisons are printed

    return comparison_to_html(comparison, options)


RENDERERS: dict[str, Callable[[Comparison, RenderOptions], str]] = {
    "table": to_terminal,
    "markdown": to_markdown,
    "json": to_json,
    "html": to_html,
}
