"""The report for a terminal or a pipe: the answer first, the evidence second."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tensorlens.analysis.naming.names import names_of
from tensorlens.analysis.story.story import story
from tensorlens.analysis.story.tensor_table import TensorRow, TensorTable, tensor_table
from tensorlens.records.claim import Claim, condition_text
from tensorlens.records.model import Trace
from tensorlens.records.report import Report
from tensorlens.records.source import tree_of
from tensorlens.render.layout import Column, Line, paragraph, table, to_text
from tensorlens.render.options import RenderOptions
from tensorlens.render.report import headline
from tensorlens.render.report import story_lines as source_lines
from tensorlens.render.report.findings import finding
from tensorlens.render.safe_text import safe, wrap

_COLUMNS = (
    Column("name", "name"),
    Column("storage"),
    Column("shares|with", folds=True),
    Column("requires_|grad"),
    Column("grad_fn", folds=True),
    Column("leaf"),
    Column("version"),
    Column("grad", folds=True),
)


def to_terminal(report: Report, options: RenderOptions) -> str:
    """The whole report as text of at most `options.width` cells a line."""
    return to_text(report_lines(report, options), options.color)


def report_lines(report: Report, options: RenderOptions) -> Iterator[Line]:
    """The sections of the report, a blank line between each two."""
    trace, size = report.trace, max(options.width, 40)
    names = names_of(trace)
    sections = [headline_lines(report, size)]
    if options.lesson:
        sections.append(_teaching(trace, size, options.titled))
    sections.append(source_lines.story_lines(trace, story(trace, names), size, options.lesson))
    sections.append(table_lines(tensor_table(trace, names), size))
    if trace.claims or tree_of(headline.script_source(trace)) is not None:  # else no claim could be read
        sections.append(claim_lines(trace.claims, options, size))
    sections += [finding(diagnostic, trace, size) for diagnostic in report.diagnostics]
    sections.append(_noticed("warnings", "warning", headline.warnings_noticed(trace), size))
    sections.append(_noticed("not seen", "note", headline.gaps(trace), size))
    endings = filter(None, (headline.shared_memory(trace), headline.reference(trace), headline.outcome(trace)))
    sections.append([line for text in endings for line in paragraph(safe(text), size, style="quiet")])
    if failed := headline.failed_claims(trace.claims):
        sections[-1] += paragraph(failed, size, style="bad")
    first = True
    for section in filter(None, sections):
        if not first:
            yield []
        first = False
        yield from section


def headline_lines(report: Report, size: int) -> list[Line]:
    parts = [safe(part) for part in headline.headline(report)]
    texts = wrap("   ".join(parts[1:]), size) if len("   ".join(parts)) > size else []
    if texts:
        more: list[Line] = [[(text, "plain")] for text in texts]
        return [*paragraph(parts[0], size, style="heading"), *more]
    line: Line = [(parts[0], "heading")]
    for part in parts[1:]:
        style = "error" if re.match(r"\d+ errors?\b", part) else "plain"
        line += [("   ", "plain"), (part, style)]
    return [line]


def _teaching(trace: Trace, size: int, titled: bool) -> list[Line]:
    """The docstring of a lesson, less its title where that stands above."""
    title, paragraphs = headline.docstring(trace)
    lines = paragraph(safe(title), size, style="heading") if title and not titled else []
    for text in paragraphs:
        lines += [*([[]] if lines else []), *paragraph(safe(text), size)]
    return lines


def cells_of(row: TensorRow) -> tuple[str, ...]:
    """The cells of a row, in the order of the columns, safe."""
    cells = (row.name, row.storage, row.shares, row.requires_grad, row.grad_fn, row.leaf, row.version, row.grad)
    return tuple(map(safe, cells))


def table_lines(tensors: TensorTable, size: int) -> list[Line]:
    """The tensor table, and in words what it leaves out."""
    if not tensors.rows:
        return []
    lines = table(_COLUMNS, [cells_of(row) for row in tensors.rows], size)
    return lines + [line for text in table_notes(tensors) for line in paragraph(text, size, style="quiet")]


def table_notes(tensors: TensorTable) -> list[str]:
    notes = [f"and {tensors.more} more"] if tensors.more else []
    if tensors.stale:
        notes.append(f"as last recorded: {tensors.stale}")
    return notes


def claim_lines(claims: tuple[Claim, ...], options: RenderOptions, size: int) -> list[Line]:
    """The claims that one has to read: false ones, refuted ones and those with a condition; how many others hold."""
    if not claims:
        none = "none: no `#:` line says what has to be so"
        return [[("claims", "heading"), (f"   {none}", "plain")]] if options.lesson else []
    held = sum(claim.as_expected for claim in claims)
    lines: list[Line] = [[("claims", "heading"), (f"   {held} of {len(claims)} as recorded", "plain")]]
    listed = headline.claims_to_read(claims)
    for claim in listed:
        style = "good" if claim.as_expected else "bad"
        first: Line = [(f"  {headline.claim_word(claim):<11}", style), (f"{claim.line:>4}  ", "gutter")]
        lines += paragraph(safe(claim.check), size, first, "code")
        for text in claim_details(claim, options):
            lines += paragraph(safe(text), size, [(" " * 19, "plain")], "quiet")
    if rest := headline.plain_claims(claims, listed):
        lines.append([(f"  {rest}", "quiet")])
    return lines


def claim_details(claim: Claim, options: RenderOptions) -> list[str]:
    """The documented statement, its condition, and what was seen; of a false claim what was expected and what came."""
    statement = options.statements.get(claim.id or "", "")
    details = [f"{claim.id} {statement}".strip()] if claim.id else []
    if claim.condition:
        details.append(condition_text(claim.expected, claim.condition, statement))
    if claim.as_expected and claim.values:
        details.append("seen: " + headline.seen(claim))
    return details if claim.as_expected else [*details, *headline.expected_and_got(claim)]


def _noticed(title: str, style: str, rows: list[tuple[str, str, int]], size: int) -> list[Line]:
    lines: list[Line] = []
    for place, text, number in rows:
        times = f" (x{number})" if number > 1 else ""
        where = f"{place}: " if place else ""
        lines += paragraph(safe(f"{where}{text}{times}"), size, [("  ", "plain")])
    return [[(title, style)], *lines] if lines else []
