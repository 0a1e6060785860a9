"""Renders reports, comparisons and lists as text. Importing this package costs little: renderers are imported late."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from tensorlens.errors import UsageError
from tensorlens.render.options import RenderOptions

if TYPE_CHECKING:
    from tensorlens.records.report import Report

__all__ = ["FORMS", "PAGE_FORMS", "REPORT_FORMS", "RenderOptions", "choose", "render", "report_renderer"]

FORMS = {"table": ".txt", "json": ".json", "markdown": ".md"}
"""The forms of every output, each with the file suffix that selects it."""

PAGE_FORMS = {**FORMS, "html": ".html"}
"""The forms of a comparison."""

_FORMS_FOR_TOOLS = {"concise": "", "github": "", "gitlab": "", "sarif": ".sarif"}

REPORT_FORMS = {**PAGE_FORMS, **_FORMS_FOR_TOOLS}
"""The forms of a report, some for CI services and editors; "": no suffix selects the form."""

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
    """Renders a report in one of `REPORT_FORMS`.

    Raises:
        UsageError: there is no such form.
    """
    return report_renderer(form)(report, options or RenderOptions())


def report_renderer(form: str) -> Callable[[Report, RenderOptions], str]:
    """Imports and returns the renderer of a form: only the table needs rich.

    Raises:
        UsageError: there is no such form.
    """
    choose(REPORT_FORMS, form)
    if form in _FORMS_FOR_TOOLS:
        return _renderer_for_tools(form)
    if form == "json":
        from tensorlens.render.report.json import to_json

        return to_json
    if form == "html":
        from tensorlens.render.page import to_html

        return to_html
    if form == "markdown":
        from tensorlens.render.report.markdown import to_markdown

        return to_markdown
    from tensorlens.render.report.terminal import to_terminal

    return to_terminal


def _renderer_for_tools(form: str) -> Callable[[Report, RenderOptions], str]:
    if form == "concise":
        from tensorlens.render.ci.concise import to_concise

        return to_concise
    if form == "github":
        from tensorlens.render.ci.github import to_github

        return to_github
    if form == "gitlab":
        from tensorlens.render.ci.gitlab import to_gitlab

        return to_gitlab
    from tensorlens.render.ci.sarif import to_sarif

    return to_sarif
