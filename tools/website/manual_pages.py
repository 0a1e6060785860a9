"""Writes a page for each code of the manual, with the real report of its failing example."""

from __future__ import annotations

import html
import tempfile
from collections.abc import Collection
from pathlib import Path

from support.pages import fence, untested
from support.warm import Warm

from tensorlens.diagnostics import manual, report_on
from tensorlens.records.error_messages import Entry, entries
from tensorlens.render.manual import markdown_body
from tensorlens.render.report.findings import Finding
from tensorlens.render.report.verdict import verdict
from tensorlens.render.safe_text import safe
from tensorlens.render.tables import printed
from tools.website.guides import known_pages
from tools.website.layout import Site
from tools.website.markdown_html import to_html

_KINDS = {"error": "error", "warning": "warning", "silent": "silent mistake"}
_WIDTH = 100


def write(site: Site, warm: Warm, codes: Collection[str]) -> None:
    """Writes the pages of all codes and their list; reports only of those in `codes`."""
    reasons = untested()
    for entry in entries():
        said = _not_run(reasons[entry.code]) if entry.code in reasons else None
        if said is None and entry.code in codes:
            said = f"<pre>{html.escape(_reported(entry, warm))}</pre>"
        _write(site, entry, said)
    site.write("errors/index.html", "Manual", _index())


def _not_run(reason: str) -> str:
    return f"<p>The example is not run here: {html.escape(reason)}</p>"


def _write(site: Site, entry: Entry, said: str | None) -> None:
    page = f"errors/{entry.code}.html"
    body = to_html(f"# {entry.code}\n\n{markdown_body(entry)}", page, lambda _: None, known_pages())
    if said is not None:
        report = f'<h2 id="report">What the lens says</h2>\n{said}\n'
        before, fixed, after = body.partition('<h2 id="fixed">')
        body = f"{before}{report}{fixed}{after}"
    site.write(page, entry.code, body)


def _reported(entry: Entry, warm: Warm) -> str:
    """Runs the failing example, and returns the findings and the sentence about the end of the run."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "example.py")
        script.write_text(fence(entry.code, "Fails"), encoding="utf-8")
        _, trace = warm.traced(script)
        if entry.code == "gradient-differs-from-reference":
            _, trace = warm.compared(script)
    report = report_on(trace)
    findings = printed([Finding(each, trace) for each in report.diagnostics], _WIDTH, color=False)
    return f"{findings.rstrip()}\n\n{safe(verdict(report))}".replace(f"{folder}/", "").strip()


def _index() -> str:
    parts = [
        "<h1>Manual</h1>",
        """<p>One page for each error, warning and silent mistake. In a terminal, <code>tensorlens errors CODE</code>
prints it, and <code>tensorlens errors</code> with a pasted message finds it.</p>""",
    ]
    for family in manual.families():
        listed = sorted((each for each in entries() if each.family == family), key=manual.most_often_first)
        rows = "\n".join(
            f'<tr><td><a href="{each.code}.html">{each.code}</a></td><td>{_KINDS[each.kind]}</td>'
            f"<td>{to_html(each.summary, 'errors/index.html', lambda _: None)}</td></tr>"
            for each in listed
        )
        heading = html.escape(family.replace("_", " "))
        parts.append(f'<h2 id="{family}">{heading}</h2>\n<table class="index"><tbody>\n{rows}\n</tbody></table>')
    return "\n".join(parts)
