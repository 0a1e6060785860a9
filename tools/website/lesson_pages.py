"""Writes a page for each lesson: what it teaches, its claims with their verdicts, and the report of a run."""

from __future__ import annotations

import html
from collections.abc import Collection

from support.warm import Warm

from tensorlens.cli.output import Output
from tensorlens.cli.rendered_report import rendered_report
from tensorlens.lessons.article_statements import STATEMENTS
from tensorlens.lessons.bundled import Lesson
from tensorlens.lessons.course.curriculum import course
from tensorlens.records.claim import Claim
from tensorlens.render.report.claim_texts import claim_verdict
from tools.website.layout import Site
from tools.website.markdown_html import to_html


def write(site: Site, warm: Warm, names: Collection[str]) -> None:
    """Writes the pages of all lessons and their list; reports only of those in `names`."""
    parts = []
    for stage, lessons in course():
        for lesson in lessons:
            _write(site, warm, lesson, lesson.name in names)
        listed = "\n".join(
            f'<tr><td><a href="{each.name}.html">{each.name}</a></td><td>{html.escape(each.title)}</td></tr>'
            for each in lessons
        )
        about = f"<h2>{html.escape(stage.name)}</h2>\n<p>{html.escape(stage.about)}</p>"
        parts.append(f'{about}\n<table class="index"><tbody>\n{listed}\n</tbody></table>')
    body = f"""<h1>Lessons</h1>
<p>Short scripts, in the order in which they build on one another. Each has claims, which the lens checks as it runs:
<code>tensorlens run NAME</code>. <a href="../docs/course.html">The course</a> says how to go through them.</p>
{"".join(parts)}"""
    site.write("lessons/index.html", "Lessons", body)


def _write(site: Site, warm: Warm, lesson: Lesson, is_run: bool) -> None:
    parts = [f"<h1>{html.escape(lesson.title)}</h1>", f"<p><code>tensorlens run {lesson.name}</code></p>"]
    parts.append(to_html(lesson.teaches, f"lessons/{lesson.name}.html", lambda _: None))
    if is_run:
        _, trace = warm.traced(lesson.path)
        report = rendered_report(trace, Output("html"), lesson.name, True)
        place = f"{lesson.name}.report.html"
        site.write_file(f"lessons/{place}", report.text.encode())
        parts += [
            f'<p><a href="{place}">The report alone</a></p>',
            f'<iframe class="report" title="report of {lesson.name}" src="{place}" loading="lazy"></iframe>',
            "<h2>Claims</h2>",
            _claims(trace.claims),
        ]
    site.write(f"lessons/{lesson.name}.html", lesson.title, "\n".join(parts))


def _claims(claims: tuple[Claim, ...]) -> str:
    """Returns the table of claims; an id of an article's statement has its text."""
    statements = {each.id: each.text for each in STATEMENTS}
    rows = "\n".join(
        f"<tr><td>{each.line}</td><td><code>{html.escape(each.check)}</code></td>"
        f"<td>{html.escape(claim_verdict(each))}</td><td>{html.escape(statements.get(each.id or '', ''))}</td></tr>"
        for each in claims
    )
    head = "<tr><th>line</th><th>claim</th><th>verdict</th><th>documented statement</th></tr>"
    return f'<table tabindex="0"><thead>{head}</thead><tbody>\n{rows}\n</tbody></table>'
