"""A comparison in each of its forms: `FORMATS` is the table that the command line and the tests read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from tensorlens.compare.records import Comparison, to_dict
from tensorlens.errors import UsageError
from tensorlens.render.cells import APART, Notes, cells_of, main_input
from tensorlens.render.comparison_table import to_terminal
from tensorlens.render.options import RenderOptions
from tensorlens.render.text import safe


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
    calls = [_code(operand.call) for operand in comparison.operands]
    lines = [f"| | probe | {' | '.join(calls)} |", "|---" * (len(calls) + 2) + "|"]
    notes = Notes()
    for row in comparison.rows:
        cells = ["<br>".join(map(_escaped, cell.lines)) for cell in cells_of(comparison, row, notes)]
        lines.append(f"| {APART if row.differs else ''} | {_escaped(row.label)} | {' | '.join(cells)} |")
    lines += ["", f"torch {comparison.torch}, x: {_escaped(main_input(comparison))}. `{APART}`: they differ.", ""]
    for number, message, code in notes.listed():
        lines += [f"{number} {_escaped(message)}" + (f" `{code}`" if code else ""), ""]
    for sentence in comparison.summary.splitlines():
        parts = safe(sentence).split("`")  # the summary's own backticks stay code
        lines += ["`".join(part if index % 2 else _escaped(part) for index, part in enumerate(parts)), ""]
    return "\n".join(lines[:-1]) + "\n"


def _code(text: str) -> str:
    """A code span with enough backticks around it."""
    text = safe(text).replace("|", "\\|")
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    return f"{fence} {text} {fence}" if len(fence) > 1 else f"`{text}`"


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", safe(text))


FORMATS: dict[str, Callable[[Comparison, RenderOptions], str]] = {
    "table": to_terminal,
    "markdown": to_markdown,
    "json": to_json,
}
