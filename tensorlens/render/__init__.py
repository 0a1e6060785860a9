"""Renders reports, comparisons and lists as text. Importing this package costs little: renderers are imported late."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from tensorlens.errors import UsageError
from tensorlens.render.options import RenderOptions

if TYPE_CHECKING:
    from tensorlens.records.report import Report

__all__ = ["FORMS", "RenderOptions", "choose", "render", "report_renderer"]

FORMS = {"table": ".txt", "json": ".json", "markdown": ".md"}
"""The forms of every output, each with the file suffix that selects it."""

T = TypeVar("T")


def choose(renderers: Mapping[str, T], form: str) -> T:
    """Returns the renderer of a form.

    Raises:
        UsageError: there is no such form.
    """
    if form not in renderers:
        raise UsageError(f"no such format: {form} (there are {', '.join(renderers)})")
    return renderers[form]


def render(report: Report, form: str = "table", options: RenderOptions | None = None) -> str:
    """Renders a report in one of `FORMS`.

    Raises:
        UsageError: there is no such form.
    """
    return report_renderer(form)(report, options or RenderOptions())


def report_renderer(form: str) -> Callable[[Report, RenderOptions], str]:
    """Imports and returns the renderer of a form: only the table needs rich.

    Raises:
        UsageError: there is no such form.
    """
    choose(FORMS, form)
    if form == "json":
        from tensorlens.render.report.json import to_json

        return to_json
    if form == "markdown":
        from tensorlens.render.report.markdown import to_markdown

        return to_markdown
    from tensorlens.render.report.terminal import to_terminal

    return to_terminal
