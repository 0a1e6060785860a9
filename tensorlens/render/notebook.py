"""Shows reports in notebooks: the page in a frame of its own, and the report as text beside it."""

from __future__ import annotations

import html

from tensorlens.records import report as records
from tensorlens.records.report import Report
from tensorlens.render.options import RenderOptions

_WIDTH = 100
_HEIGHT = 720  # pixels of the frame


def show_in_notebooks() -> None:
    """Makes notebooks show reports. Rendering is imported when a report is shown."""
    records.shown_as = {"text/html": framed_page, "text/plain": text}


def framed_page(report: Report) -> str:
    """Returns the page in a frame that runs its script without access to the notebook; it names no file or server."""
    from tensorlens.render.html_text import boxed

    return boxed(frame(report))


def frame(report: Report) -> str:
    """Returns the frame of `framed_page` alone, for an output with more in it."""
    from tensorlens.render.page import to_html

    page = html.escape(to_html(report, RenderOptions()))
    title = "TensorLens report"
    return f'<iframe srcdoc="{page}" title="{title}" sandbox="allow-scripts" width="100%" height="{_HEIGHT}"></iframe>'


def text(report: Report) -> str:
    """Returns the report as the terminal shows it."""
    from tensorlens.render.report.terminal import to_terminal

    return to_terminal(report, RenderOptions(width=_WIDTH))
