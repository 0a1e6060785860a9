"""Renders the report for a terminal: the answer first, the evidence second."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tensorlens.analysis.naming.names import names_of
from tensorlens.analysis.story.story import story
from tensorlens.analysis.story.tensor_table import TensorTable, tensor_table
from tensorlens.records.claim import Claim
from tensorlens.records.model import Trace
from tensorlens.records.report import Report
from tensorlens.records.source import tree_of
from tensorlens.render.layout import Line, paragraph, table, to_text
from tensorlens.render.options import RenderOptions
from tensorlens.render.report import headline
from tensorlens.render.report.claim_texts import claim_details, claim_word, claims_to_read, failed_claims, plain_claims
from tensorlens.render.report.findings import finding
from tensorlens.render.report.story_lines import story_lines
from tensorlens.render.report.tensor_cells import COLUMNS, cells_of, table_notes
from tensorlens.render.safe_text import safe, wrap


def to_terminal(report: Report, options: RenderOptions) -> str:
    """Returns the report as text of at most `options.width` cells per line."""
    return to_text(report_lines(report, options), options.color)


def report_lines(report: Report, options: RenderOptions) -> Iterator[Line]:
    """Yields the sections of the report, separated by blank lines."""
    trace, size = report.trace, max(options.width, 40)
    names = names_of(trace)
    sections = [headline_lines(report, size)]
    if options.lesson:
        sections.append(_docstring(trace, size, options.titled))
    sections.append(story_lines(trace, story(trace, names), size, options.lesson))
    sections.append(_tensor_table(tensor_table(trace, names), size))
    if trace.claims or tree_of(headline.script_source(trace)) is not None:  # a script with a syntax error has no claims
        sections.append(claim_lines(trace.claims, options, size))
    sections += [finding(diagnostic, trace, size) for diagnostic in report.diagnostics]
    sections.append(_noticed("warnings", "warning", headline.warnings_noticed(trace), size))
    sections.append(_noticed("not seen", "note", headline.gaps(trace), size))
    endings = filter(None, (headline.shared_memory(trace), headline.reference(trace), headline.outcome(trace)))
    sections.append([line for text in endings for line in paragraph(safe(text), size, style="quiet")])
    if failed := failed_claims(trace.claims):
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


def _docstring(trace: Trace, size: int, titled: bool) -> list[Line]:
    """Shows the docstring of a lesson, without its title if that has been printed already."""
    title, paragraphs = headline.docstring(trace)
    lines = paragraph(safe(title), size, style="heading") if title and not titled else []
    for text in paragraphs:
        lines += [*([[]] if lines else []), *paragraph(safe(text), size)]
    return lines


def _tensor_table(tensors: TensorTable, size: int) -> list[Line]:
    """Draws the tensor table, and says below it which tensors it leaves out."""
    if not tensors.rows:
        return []
    lines = table(COLUMNS, [cells_of(row) for row in tensors.rows], size)
    return lines + [line for text in table_notes(tensors) for line in paragraph(text, size, style="quiet")]


def claim_lines(claims: tuple[Claim, ...], options: RenderOptions, size: int) -> list[Line]:
    """Lists the claims that a user has to read, and counts the others."""
    if not claims:
        none = "none: the script has no `#:` lines"
        return [[("claims", "heading"), (f"   {none}", "plain")]] if options.lesson else []
    as_recorded = sum(claim.as_expected for claim in claims)
    lines: list[Line] = [[("claims", "heading"), (f"   {as_recorded} of {len(claims)} as recorded", "plain")]]
    listed = claims_to_read(claims)
    for claim in listed:
        style = "good" if claim.as_expected else "bad"
        first: Line = [(f"  {claim_word(claim):<11}", style), (f"{claim.line:>4}  ", "gutter")]
        lines += paragraph(safe(claim.check), size, first, "code")
        for text in claim_details(claim, options.statements):
            lines += paragraph(safe(text), size, [(" " * 19, "plain")], "quiet")
    if rest := plain_claims(claims, listed):
        lines.append([(f"  {rest}", "quiet")])
    return lines


def _noticed(title: str, style: str, rows: list[tuple[str, str, int]], size: int) -> list[Line]:
    lines: list[Line] = []
    for place, text, number in rows:
        times = f" (x{number})" if number > 1 else ""
        where = f"{place}: " if place else ""
        lines += paragraph(safe(f"{where}{text}{times}"), size, [("  ", "plain")])
    return [[(title, style)], *lines] if lines else []
