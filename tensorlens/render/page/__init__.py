"""Renders a report or a comparison as one HTML file that loads nothing.

`data.py` makes the data of a report and describes its parts; the other `_data` modules make one part each.
`document.py` puts the data into a document, together with the files of this folder: `page.html`, `page.css`, and
`scripts/`, which become one function in the order of `SCRIPTS`, so each script knows the functions of all others.

The scripts draw and decide nothing. `model.js` indexes the data and answers "what is X at moment M", `cursor.js` holds
the moment and the selected tensor, keeps them in the URL and calls its listeners when they change. A pane is a class:
its constructor makes `element` once and listens, `update()` draws what depends on the cursor. `main.js` makes the panes
and puts them on the page. Rules for all of them:

- Text of a program goes through `el`, `svg` and `prose` (`elements.js`), which use text nodes; `innerHTML` never.
- No `style` attribute: the policy forbids it. Set `element.style.width` instead, or a class.
- Everything that a mouse can do, a key can do; what has a meaning has a name (`aria-label`, `title`, text).
- Parts of a drawing that act have a `data-key`: `Roving` moves the focus through them, and keeps it in a redraw.
- `Cursor.window(width)` are the moments to draw: all panes show the same window of a long run.
- `selftest.js` walks through all moments in a browser; a new pane adds what must always hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorlens.records.report import Report
    from tensorlens.render.options import RenderOptions


def to_html(report: Report, options: RenderOptions) -> str:
    """Returns the page of a report. Without JavaScript it shows the report as text."""
    from dataclasses import replace

    from tensorlens.render.page.data import page_data
    from tensorlens.render.page.document import document
    from tensorlens.render.report.headline import run_parts
    from tensorlens.render.report.terminal import to_terminal

    text = to_terminal(report, replace(options, width=100, color=False, findings_first=True))
    return document(run_parts(report.trace)[0], page_data(report, options), text)
