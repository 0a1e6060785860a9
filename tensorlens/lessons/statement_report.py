"""Renders the verdicts on the documented statements, in each of the forms of `RENDERERS`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

from rich.console import Group, RenderableType
from rich.text import Text

from tensorlens.lessons.article_statements import ARTICLES
from tensorlens.lessons.check_statements import Checked, Evidence, StatementVerdict
from tensorlens.records.claim import condition_text
from tensorlens.render import choose
from tensorlens.render.markdown_text import code, markdown_table, marked
from tensorlens.render.options import RenderOptions
from tensorlens.render.report.claim_texts import seen_value
from tensorlens.render.report.headline import count
from tensorlens.render.safe_text import cut, safe
from tensorlens.render.tables import Cell, HouseTable, printed

_LEAST = 40  # cells of a line, however narrow the terminal
_VALUE = 60  # cells of a value that are shown; the JSON form has more
_SHORT = {"holds only if": "depends", "not reached": "not run"}
_STYLES = {"holds": "good", "refuted": "warning", "holds only if": "note", "not reached": "bad"}
_MARKDOWN_TITLES = ("id", "statement", "verdict", "checked")
_COUNTED = (
    ("holds", "holds", "hold"),
    ("refuted", "is refuted", "are refuted"),
    ("holds only if", "holds only under a condition", "hold only under a condition"),
    ("not reached", "was not reached", "were not reached"),
)


def render_claims(checked: Checked, form: str = "table", options: RenderOptions | None = None) -> str:
    """Renders the verdicts in one of the forms of `RENDERERS`, ending in a newline.

    Raises:
        UsageError: there is no such form.
    """
    return choose(RENDERERS, form)(checked, options or RenderOptions())


# --- on the terminal ------------------------------------------------------------------------------------------------


def to_table(checked: Checked, options: RenderOptions) -> str:
    """Lists the statements by article, each with its verdict and checks, and the values seen if it does not hold."""
    parts: list[RenderableType] = [Group(Cell(_heading(checked), "heading"), Cell(_counts(checked)))]
    for article, findings in groupby(checked.findings, key=lambda finding: finding.statement.article):
        parts.append(Group(Cell(_title(article), "heading", hang=2), Text(), _statement_table(findings)))
    problems = [Cell(f"not as recorded: {_evidence_text(each)}", "bad", hang=4) for each in checked.problems]
    parts += [Group(*problems)] if problems else []
    return printed(parts, max(options.width, _LEAST), options.color)


def _statement_table(findings: Iterable[StatementVerdict]) -> HouseTable:
    table = HouseTable(["id", "verdict", "statement"], ["name"])
    for finding in findings:
        text = Text(safe(finding.statement.text))
        hangs = [0]
        if finding.verdict == "holds":
            text.append(f"  {', '.join(_place(each) for each in finding.evidence)}", "quiet")
        for detail, style in _details(finding):
            text.append("\n" + safe(detail), style)
            hangs.append(2)
        verdict = Cell(_SHORT.get(finding.verdict, finding.verdict), _STYLES[finding.verdict])
        table.add(finding.statement.id, verdict, Cell(text, hang=hangs))
    return table


def _title(article: str) -> str:
    return f"Article {article}: {ARTICLES[article]}" if article in ARTICLES else f"Article {article}"


def _heading(checked: Checked) -> str:
    articles = len({finding.statement.article for finding in checked.findings})
    return (
        f"{count(len(checked.findings), 'statement')} of {count(articles, 'article')} in Chinese that "
        f"{'teaches' if articles == 1 else 'teach'} detach(), clone() and the like, "
        f"checked by running the lessons under torch {checked.torch}"
    )


def _counts(checked: Checked) -> str:
    """Returns `35 hold, 12 are refuted, 9 hold only under a condition; all as recorded`."""
    verdicts = Counter(finding.verdict for finding in checked.findings)
    parts = [
        f"{number} {one if number == 1 else many}"
        for verdict, one, many in _COUNTED
        if (number := verdicts[verdict])  # type: ignore[index]
    ]
    others = sum(not finding.as_recorded for finding in checked.findings) + len(checked.problems)
    return ", ".join(parts) + ("; all as recorded" if not others else f"; {others} NOT AS RECORDED")


def _details(finding: StatementVerdict) -> Iterator[tuple[str, str]]:
    """Yields the lines below a statement as (text, style)."""
    if finding.condition:
        yield _when(finding), "plain"
    if finding.statement.narrowed:
        yield f"measured: {finding.statement.narrowed}", "quiet"
    if finding.verdict != "holds":
        for evidence in finding.evidence:
            yield _evidence_text(evidence), "quiet"
    if not finding.evidence:
        yield "not as recorded: no lesson checks it", "bad"
    for evidence in finding.evidence:
        if not evidence.as_recorded:
            yield f"not as recorded: {_place(evidence)} {evidence.verdict}, recorded: {evidence.recorded}", "bad"


def _when(finding: StatementVerdict) -> str:
    """Returns `holds only if it rains`; for a statement that says "may": `it does when it rains`."""
    text = condition_text("holds", finding.condition, finding.statement.text)
    return f"holds {text}" if finding.verdict == "holds only if" else text


def _place(evidence: Evidence) -> str:
    return f"{evidence.lesson}:{evidence.line}"


def _evidence_text(evidence: Evidence) -> str:
    """Returns `detach:33 refuted: b.grad is None; seen: b.grad = tensor([4., 4., 4.])`, with a condition if it has
    one."""
    when = f" when {evidence.condition}" if evidence.condition else ""
    verdict = f"{_place(evidence)} {evidence.verdict}{when}: {evidence.check}"
    return verdict + "".join(f"; {part}" for part in _seen(evidence))


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
    """Returns one JSON object."""
    data = {
        "format": "tensorlens.claims",
        "version": 1,
        "torch": checked.torch,
        "as_recorded": checked.as_recorded,
        "statements": [_finding_data(finding) for finding in checked.findings],
        "problems": [_evidence_data(evidence) for evidence in checked.problems],
    }
    return json.dumps(data, indent=2) + "\n"


def _finding_data(finding: StatementVerdict) -> dict[str, object]:
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
    """Returns a Markdown table for each article."""
    lines = ["# Documented statements", "", f"{marked(_heading(checked))}: {_counts(checked)}.", ""]
    for article, findings in groupby(checked.findings, key=lambda finding: finding.statement.article):
        rows = [_markdown_row(finding) for finding in findings]
        lines += [
            f"## {marked(_title(article))}",
            "",
            *markdown_table(_MARKDOWN_TITLES, rows),
            "",
        ]
    lines += [f"- not as recorded: {_markdown_evidence(evidence, True)}" for evidence in checked.problems]
    return "\n".join(lines).rstrip("\n") + "\n"


def _markdown_row(finding: StatementVerdict) -> tuple[str, ...]:
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
    return finding.statement.id, statement, verdict, evidence


def _markdown_evidence(evidence: Evidence, full: bool) -> str:
    """Returns the place of a check; with `full` also its verdict and the values seen."""
    text = f"{marked(_place(evidence))} {code(evidence.check)}"
    if not full:
        return text
    recorded = "" if evidence.as_recorded else f" (recorded: {evidence.recorded})"
    return f"{text} {evidence.verdict}{recorded}" + "".join(f"; {marked(part)}" for part in _seen(evidence))


RENDERERS: dict[str, Callable[[Checked, RenderOptions], str]] = {
    "table": to_table,
    "markdown": to_markdown,
    "json": to_json,
}
