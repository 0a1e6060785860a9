"""The verdicts on the documented statements, in each of their forms: `FORMATS` is the table of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import groupby

from tensorlens.errors import UsageError
from tensorlens.lessons.article_statements import ARTICLES
from tensorlens.lessons.check_statements import Checked, Evidence, Finding
from tensorlens.records.claim import condition_text
from tensorlens.records.source import width
from tensorlens.render.layout import Line, line_width, paragraph, to_text
from tensorlens.render.markdown_text import code, marked
from tensorlens.render.options import RenderOptions
from tensorlens.render.report.headline import seen_value
from tensorlens.render.safe_text import cut, pad, safe

_LEAST = 40  # cells
_VALUE = 60  # cells of a value that are shown; the JSON form has more
_SHORT = {"holds only if": "only if", "not reached": "not run"}
_STYLES = {"holds": "good", "refuted": "warning", "holds only if": "note", "not reached": "bad"}
_COUNTED = (
    ("holds", "holds", "hold"),
    ("refuted", "is refuted", "are refuted"),
    ("holds only if", "holds only under a condition", "hold only under a condition"),
    ("not reached", "was not reached", "were not reached"),
)


def render_claims(checked: Checked, format: str = "table", options: RenderOptions | None = None) -> str:
    """The verdicts in one of `FORMATS`, ending in a newline.

    Raises:
        UsageError: there is no such format.
    """
    if format not in FORMATS:
        raise UsageError(f"no such format: {format} (there are {', '.join(FORMATS)})")
    return FORMATS[format](checked, options or RenderOptions())


# --- on the terminal ------------------------------------------------------------------------------------------------


def to_table(checked: Checked, options: RenderOptions) -> str:
    """The statements by article, each with its verdict, where it was checked, and what was seen if it doesn't hold."""
    size = max(options.width, _LEAST)
    lines = paragraph(_heading(checked), size, style="heading")
    lines += paragraph(_counts(checked), size)
    for article, findings in groupby(checked.findings, key=lambda finding: finding.statement.article):
        lines += [[], *paragraph(_title(article), size, style="heading", hang=5)]
        for finding in findings:
            lines += _finding_lines(finding, size)
    for evidence in checked.problems:
        lines += [[], *paragraph(f"not as recorded: {_told(evidence)}", size, style="bad", hang=4)]
    return to_text(lines, options.color)


def _title(article: str) -> str:
    return f"{article}  {ARTICLES.get(article, 'article ' + article)}"


def _heading(checked: Checked) -> str:
    articles = len({finding.statement.article for finding in checked.findings})
    return (
        f"{_number(len(checked.findings), 'statement')} from {_number(articles, 'article')}, "
        f"checked by running the lessons under torch {checked.torch}"
    )


def _counts(checked: Checked) -> str:
    """`35 hold, 12 are refuted, 9 hold only under a condition; all as recorded`."""
    found = Counter(finding.verdict for finding in checked.findings)
    parts = [
        f"{count} {one if count == 1 else many}"
        for verdict, one, many in _COUNTED
        if (count := found[verdict])  # type: ignore[index]
    ]
    others = sum(not finding.as_recorded for finding in checked.findings) + len(checked.problems)
    return ", ".join(parts) + ("; all as recorded" if not others else f"; {others} NOT AS RECORDED")


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _finding_lines(finding: Finding, size: int) -> list[Line]:
    statement = finding.statement
    first: Line = [
        (f"  {pad(statement.id, 6)}  ", "name"),
        (f"{_SHORT.get(finding.verdict, finding.verdict):<7}  ", _STYLES[finding.verdict]),
    ]
    indent = line_width(first) if size >= 60 else 4
    lines = paragraph(safe(statement.text), size, first, hang=line_width(first))
    begun: Line = [(" " * indent, "plain")]
    places = ", ".join(_place(each) for each in finding.evidence)
    if finding.verdict == "holds" and line_width(lines[-1]) + 2 + width(places) <= size:
        lines[-1] = [*lines[-1], (f"  {places}", "quiet")]
    elif finding.verdict == "holds":
        lines += paragraph(places, size, begun, "quiet")
    for text, style in _details(finding):
        lines += paragraph(safe(text), size, begun, style, indent + 2)
    return lines


def _details(finding: Finding) -> Iterator[tuple[str, str]]:
    """What is said below a statement: (text, style)."""
    if finding.condition:
        yield _when(finding), "plain"
    if finding.statement.narrowed:
        yield f"measured: {finding.statement.narrowed}", "quiet"
    if finding.verdict != "holds":
        for evidence in finding.evidence:
            yield _told(evidence), "quiet"
    if not finding.evidence:
        yield "not as recorded: no lesson checks it", "bad"
    for evidence in finding.evidence:
        if not evidence.as_recorded:
            yield f"not as recorded: {_place(evidence)} {evidence.verdict}, recorded: {evidence.recorded}", "bad"


def _when(finding: Finding) -> str:
    """`holds only if it rains`; `it does when it rains` of a statement that says "may"."""
    text = condition_text("holds", finding.condition, finding.statement.text)
    return f"holds {text}" if finding.verdict == "holds only if" else text


def _place(evidence: Evidence) -> str:
    return f"{evidence.lesson}:{evidence.line}"


def _told(evidence: Evidence) -> str:
    """`detach:33 refuted: b.grad is None; seen: b.grad = tensor([4., 4., 4.])`; its condition after the verdict."""
    when = f" when {evidence.condition}" if evidence.condition else ""
    said = f"{_place(evidence)} {evidence.verdict}{when}: {evidence.check}"
    return said + "".join(f"; {part}" for part in _seen(evidence))


def _seen(evidence: Evidence) -> Iterator[str]:
    if evidence.values and evidence.check.startswith("raises "):
        yield "seen: " + ", ".join(f"{kind}: {cut(safe(message), _VALUE)}" for kind, message in evidence.values)
    elif evidence.values:
        yield "seen: " + ", ".join(seen_value(name, cut(safe(value), _VALUE)) for name, value in evidence.values)
    if evidence.error:
        yield f"the check raised {evidence.error}"
    if evidence.changed:
        yield f"the check itself {evidence.changed}"


# --- as data --------------------------------------------------------------------------------------------------------


def to_json(checked: Checked, options: RenderOptions) -> str:
    """One JSON object."""
    made = {
        "format": "tensorlens.claims",
        "version": 1,
        "torch": checked.torch,
        "as_recorded": checked.as_recorded,
        "statements": [_finding_data(finding) for finding in checked.findings],
        "problems": [_evidence_data(evidence) for evidence in checked.problems],
    }
    return json.dumps(made, indent=2) + "\n"


def _finding_data(finding: Finding) -> dict[str, object]:
    return {
        "id": finding.statement.id,
        "article": finding.statement.article,
        "title": ARTICLES.get(finding.statement.article, ""),
        "statement": finding.statement.text,
        "verdict": finding.verdict,
        "condition": finding.condition,
        "narrowed": finding.statement.narrowed,
        "as_recorded": finding.as_recorded,
        "evidence": [_evidence_data(evidence) for evidence in finding.evidence],
    }


def _evidence_data(evidence: Evidence) -> dict[str, object]:
    return {
        "lesson": evidence.lesson,
        "line": evidence.line,
        "check": evidence.check,
        "verdict": evidence.verdict,
        "recorded": evidence.recorded,
        "condition": evidence.condition,
        "values": [{"expression": expression, "value": value} for expression, value in evidence.values],
        "error": evidence.error,
        "changed": evidence.changed,
    }


# --- as markdown ----------------------------------------------------------------------------------------------------


def to_markdown(checked: Checked, options: RenderOptions) -> str:
    """A Markdown table for each article."""
    lines = ["# Documented statements", "", f"{marked(_heading(checked))}: {_counts(checked)}.", ""]
    for article, findings in groupby(checked.findings, key=lambda finding: finding.statement.article):
        lines += [f"## {marked(_title(article))}", "", "| id | statement | verdict | checked |", "|---|---|---|---|"]
        lines += [_markdown_row(finding) for finding in findings]
        lines.append("")
    lines += [f"- not as recorded: {_markdown_evidence(evidence, True)}" for evidence in checked.problems]
    return "\n".join(lines).rstrip("\n") + "\n"


def _markdown_row(finding: Finding) -> str:
    statement = marked(finding.statement.text)
    if finding.statement.narrowed:
        statement += f"<br>measured: {marked(finding.statement.narrowed)}"
    verdict = marked(_when(finding)) if finding.condition else finding.verdict
    if finding.condition and finding.verdict == "holds":
        verdict = f"holds; {verdict}"
    if not finding.as_recorded:
        verdict += "<br>**not as recorded**"
    full = finding.verdict != "holds"
    evidence = "<br>".join(_markdown_evidence(each, full or not each.as_recorded) for each in finding.evidence)
    return f"| {finding.statement.id} | {statement} | {verdict} | {evidence} |"


def _markdown_evidence(evidence: Evidence, full: bool) -> str:
    """Where it was checked; `full`: and what was seen there."""
    text = f"{marked(_place(evidence))} {code(evidence.check)}"
    if not full:
        return text
    recorded = "" if evidence.as_recorded else f" (recorded: {evidence.recorded})"
    return f"{text} {evidence.verdict}{recorded}" + "".join(f"; {marked(part)}" for part in _seen(evidence))


FORMATS: dict[str, Callable[[Checked, RenderOptions], str]] = {
    "table": to_table,
    "markdown": to_markdown,
    "json": to_json,
}
