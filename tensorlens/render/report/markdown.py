"""Renders the report as Markdown, to be pasted into an issue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tensorlens.analysis.naming.names import Names, names_of
from tensorlens.analysis.story.story import Section, story
from tensorlens.analysis.story.tensor_table import tensor_table
from tensorlens.records.model import Trace
from tensorlens.records.report import Diagnostic, Report
from tensorlens.render.markdown_text import code, escaped, fenced, markdown_table, marked
from tensorlens.render.options import RenderOptions
from tensorlens.render.report import headline
from tensorlens.render.report.claim_texts import claim_details, claim_word, claims_to_read, failed_claims, plain_claims
from tensorlens.render.report.findings import Finding
from tensorlens.render.report.story_table import section_title
from tensorlens.render.report.tensor_rows import HEADINGS, cells_of, table_notes
from tensorlens.render.tables import printed

_SNIPPET_WIDTH = 100


def to_markdown(report: Report, options: RenderOptions) -> str:
    """Returns the report: findings first, then the story and the tensors."""
    trace = report.trace
    names = names_of(trace)
    blocks = [[f"# {escaped(headline.headline(report)[0])}", "", marked(", ".join(headline.headline(report)[1:]))]]
    if options.lesson:
        title, paragraphs = headline.docstring(trace)
        blocks.append([f"**{marked(title)}**", "", *map(marked, paragraphs)])
    blocks += [_finding(diagnostic, trace) for diagnostic in report.diagnostics]
    sections = story(trace, names)
    blocks += [["## What happened"]] if sections else []
    blocks += [_section(trace, section) for section in sections]
    blocks.append(_tensors(trace, names))
    blocks.append(_claims(trace, options))
    blocks.append(_noticed("Warnings", headline.warnings_noticed(trace)))
    blocks.append(_noticed("Not seen", headline.gaps(trace)))
    blocks.append([headline.shared_memory(trace)] if headline.shared_memory(trace) else [])
    blocks.append([marked(headline.reference(trace))] if trace.reference else [])
    blocks.append([marked(headline.outcome(trace))])
    blocks.append([failed] if (failed := failed_claims(trace.claims)) else [])
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _finding(diagnostic: Diagnostic, trace: Trace) -> list[str]:
    heading = f"## {diagnostic.severity}: {marked(diagnostic.title)}"
    text = printed([Finding(diagnostic, trace)], _SNIPPET_WIDTH, color=False).rstrip("\n").split("\n")
    return [heading, "", *fenced(text)]


def _section(trace: Trace, section: Section) -> list[str]:
    title = section_title(trace, section)
    rows = []
    for row in section.rows:
        facts = [(fact.name, fact.storage, "; ".join((fact.text, *fact.more))) for fact in row.facts]
        texts = [" ".join(filter(None, fact)) for fact in facts]
        times = f" {row.count}" if row.count else ""
        rows.append((f"{row.line}{times}", code(row.source.strip()), "<br>".join(map(marked, texts))))
    heading = [f"### {marked(title)}", ""] if title else []  # the top level of the script needs none
    return [*heading, *markdown_table(("line", "source", "what happened"), rows)]


def _tensors(trace: Trace, names: Names) -> list[str]:
    table = tensor_table(trace, names)
    if not table.rows:
        return []
    rows = [tuple(code(cell) if position == 0 else marked(cell) for position, cell in enumerate(cells_of(row)))
            for row in table.rows]  # fmt: skip
    return [
        "## Tensors",
        "",
        *markdown_table(HEADINGS, rows),
        *([""] if table_notes(table) else []),
        *table_notes(table),
    ]


def _claims(trace: Trace, options: RenderOptions) -> list[str]:
    if not trace.claims:
        return []
    listed = claims_to_read(trace.claims)
    rows = [
        (
            claim_word(claim),
            str(claim.line),
            code(claim.check),
            "<br>".join(map(marked, claim_details(claim, options.statements))),
        )
        for claim in listed
    ]
    table = markdown_table(("verdict", "line", "check", "seen"), rows) if rows else []
    rest = plain_claims(trace.claims, listed)
    return ["## Claims", "", *table, *([""] if table and rest else []), *([rest] if rest else [])]


def _noticed(title: str, rows: Sequence[tuple[str, str, int]]) -> list[str]:
    if not rows:
        return []
    return [f"## {title}", "", *_items(rows)]


def _items(rows: Sequence[tuple[str, str, int]]) -> Iterator[str]:
    for place, text, count in rows:
        times = f" (x{count})" if count > 1 else ""
        where = f"{code(place)}: " if place else ""
        yield f"- {where}{escaped(' '.join(text.split()))}{times}"
