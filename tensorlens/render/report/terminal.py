"""Renders the report for a terminal. The answer is at the end, where the reader's eyes are; in a file it comes first.

A report that fits on one screen shows everything. A longer one leaves out the story and the tensors that no finding
names, and says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from rich.console import Group, RenderableType
from rich.text import Text

from tensorlens.analysis.naming.names import Names, names_of
from tensorlens.analysis.sampled_run import sampling_text
from tensorlens.analysis.story.story import Section, story
from tensorlens.analysis.story.tensor_table import TensorTable, tensor_table
from tensorlens.diagnostics.shared.main_finding import main_finding
from tensorlens.diagnostics.shared.named_tensors import named_tensors
from tensorlens.records.claim import Claim
from tensorlens.records.model import Trace
from tensorlens.records.report import Diagnostic, Report
from tensorlens.records.source import tree_of
from tensorlens.render.options import RenderOptions
from tensorlens.render.report import headline
from tensorlens.render.report.claim_texts import claim_details, claim_word, claims_to_read, failed_claims, plain_claims
from tensorlens.render.report.clean_run import module_table, no_problem_found
from tensorlens.render.report.findings import Finding, short_finding
from tensorlens.render.report.headline import count
from tensorlens.render.report.story_table import story_parts, story_size
from tensorlens.render.report.tensor_rows import tensor_parts
from tensorlens.render.report.verdict import ignored_findings, verdict
from tensorlens.render.safe_text import safe
from tensorlens.render.tables import Cell, HouseTable, printed

_MORE_FINDINGS = 2  # shown in full beside the main one; the others are listed
_LONG = 5_000  # sites: the story of a program with more is made only if it is printed


def to_terminal(report: Report, options: RenderOptions) -> str:
    """Returns the report as text of at most `options.width` cells per line."""
    size = max(options.width, 40)
    parts = ReportParts(report, options)
    if not parts.is_whole and parts.least_rows() <= options.height:
        parts.options = replace(options, story=True, tensors=True)
        text = printed(parts.sections(), size, options.color)
        if text.count("\n") < options.height:
            return text
        parts.options = options
    return printed(parts.sections(), size, options.color)


class ReportParts:
    """The sections of a report, in the order in which they are printed. `options` may change between two prints."""

    def __init__(self, report: Report, options: RenderOptions) -> None:
        self.report = report
        self.options = options

    @property
    def is_whole(self) -> bool:
        """Returns whether the story and the table of all tensors are printed."""
        return self.options.lesson or (self.options.story and self.options.tensors)

    @property
    def _trace(self) -> Trace:
        return self.report.trace

    @cached_property
    def _names(self) -> Names:
        return names_of(self._trace)

    @cached_property
    def _story(self) -> Sequence[Section]:
        return story(self._trace, self._names)

    @cached_property
    def _tensors(self) -> TensorTable:
        return tensor_table(self._trace, self._names)

    @property
    def _is_long(self) -> bool:
        """Returns whether the story is too long to be counted. No screen holds it."""
        return len(self._trace.sites) > _LONG

    def least_rows(self) -> int:
        """Returns a lower bound of the rows of the whole report."""
        if self._is_long:
            return _LONG
        return story_size(self._story) + len(self._tensors.rows) + 4 * len(self.report.diagnostics)

    def sections(self) -> Iterator[RenderableType]:
        """Yields the sections of the report."""
        trace, options = self._trace, self.options
        answer, others = list(self._answer()), list(self._other_findings())
        yield headline_text(trace)
        if sampled := sampling_text(trace):
            yield Text(safe(sampled), "quiet")
        if options.findings_first:
            yield from (*answer, *others)
            yield from self._tried()
        if options.lesson:
            yield from docstring_parts(trace, options.titled)
        if options.lesson or options.story:
            yield from _section(story_parts(trace, self._story, options))
        if options.lesson or options.tensors:
            yield from _section(tensor_parts(self._tensors))
        if trace.claims or (options.lesson and tree_of(headline.script_source(trace)) is not None):
            yield claim_list(trace.claims, options)
        yield from _section(_noticed("warnings", headline.warnings_noticed(self.report)))
        yield from _section(_noticed("not seen", headline.gaps(trace)))
        yield from _section(self._training())
        if not options.findings_first:
            yield from (*others, *answer)
            yield from self._tried()
        endings = [headline.shared_memory(trace), headline.reference(trace), headline.eager(trace)]
        endings += [ignored_findings(self.report), self._left_out()]
        yield from _section([Text(safe(text), "quiet") for text in endings if text])
        if failed := failed_claims(trace.claims):
            yield Text(failed, "bad")

    def _answer(self) -> Iterator[RenderableType]:
        """Yields the verdict, the main finding, and the tensors that it names."""
        main = main_finding(self.report)
        text = verdict(self.report)
        if main is None:
            yield from self._all_well(text)
            return
        yield Text(safe(text), main.severity if main.severity != "note" else "heading")
        yield Finding(main, self._trace)
        if not (self.options.lesson or self.options.tensors):
            yield from _section(tensor_parts(self._named_tensors(main)))

    def _training(self) -> Sequence[RenderableType]:
        if self.report.standing_out is None:
            return ()
        from tensorlens.render.report.training_section import training_parts  # not above: most reports have none

        return training_parts(self.report, self.options.story and self.options.tensors)

    def _tried(self) -> Iterator[RenderableType]:
        if self.report.tried is not None:
            from tensorlens.render.report.fix_diffs import TriedFixes  # not above: most reports have none

            yield TriedFixes(self.report)

    def _other_findings(self) -> Iterator[RenderableType]:
        main = main_finding(self.report)
        others = [each for each in self.report.diagnostics if each is not main]
        if self.is_whole:
            yield from (Finding(each, self._trace) for each in others)
            return
        yield from (Finding(each, self._trace) for each in others[:_MORE_FINDINGS])
        yield from _section([short_finding(each, self._trace) for each in others[_MORE_FINDINGS:]])

    def _all_well(self, ended: str) -> Iterator[RenderableType]:
        """Yields the summary of a run without findings."""
        if not headline.is_well(self._trace) or self.options.lesson:
            yield Text(safe(ended), "heading")
            return
        yield Text(safe(no_problem_found(self.report)), "good")
        if not self.options.tensors and self.report.standing_out is None:
            yield from _section(module_table(self._trace, self._names))
        yield Text(safe(ended), "quiet")

    def _named_tensors(self, main: Diagnostic) -> TensorTable:
        return tensor_table(self._trace, self._names, named_tensors(main, self._trace))

    def _left_out(self) -> str:
        """Says what the report leaves out, and which option shows it."""
        options = self.options
        if options.lesson:
            return ""
        if self._is_long:
            rest = [] if options.story else ["what each line did (--story)"]
            rest += [] if options.tensors else ["the table of all tensors (--tensors)"]
            return f"not shown: {' and '.join(rest)}" if rest else ""
        parts = []
        lines = sum(len(section.rows) for section in self._story)
        if lines and not options.story:
            parts.append(f"what {count(lines, 'line')} did (--story)")
        tensors = len(self._tensors.rows) + self._tensors.more
        if tensors and not options.tensors:
            parts.append("the table of all tensors (--tensors)")
        return f"not shown: {' and '.join(parts)}" if parts else ""


def headline_text(trace: Trace) -> Text:
    """Returns the line that names the script: `demo.py   torch 2.13.0   6 calls`."""
    first, *parts = (safe(part) for part in headline.run_parts(trace))
    return Text.assemble((first, "heading"), "".join(f"   {part}" for part in parts))


def docstring_parts(trace: Trace, titled: bool) -> Iterator[RenderableType]:
    """Yields the docstring of a lesson, without its title if that has been printed already."""
    title, paragraphs = headline.docstring(trace)
    if title and not titled:
        yield Text(safe(title), "heading")
    for text in paragraphs:
        yield Text(safe(text))


def claim_list(claims: tuple[Claim, ...], options: RenderOptions) -> RenderableType:
    """Counts the claims, and lists those that a user has to read: in a lesson, where the verdicts are beside their
    lines, those that did not turn out as recorded."""
    if not claims:
        return Text.assemble(("claims", "heading"), "   none: the script has no `#:` lines")
    as_recorded = sum(claim.as_expected for claim in claims)
    head = Text.assemble(("claims", "heading"), f"   {as_recorded} of {len(claims)} as recorded")
    listed = [claim for claim in claims_to_read(claims) if not (options.lesson and claim.as_expected)]
    table = HouseTable(["verdict", "line", "claim"], right=[1])
    for claim in listed:
        text = Text(safe(claim.check))
        for detail in claim_details(claim, options.statements):
            text.append("\n" + safe(detail), "quiet")
        table.add(Text(claim_word(claim), "good" if claim.as_expected else "bad"), str(claim.line), Cell(text))
    parts: list[RenderableType] = [head, table] if listed else [head]
    if not options.lesson and (rest := plain_claims(claims, listed)):
        parts.append(Text(rest, "quiet"))
    return Group(*parts)


def _noticed(title: str, rows: list[tuple[str, str, int]]) -> list[RenderableType]:
    if not rows:
        return []
    table = HouseTable([title, ""], ["gutter"])
    for place, text, number in rows:
        table.add(place, text if number == 1 else f"{text} (x{number})")
    return [table]


def _section(parts: Sequence[RenderableType]) -> Iterator[RenderableType]:
    """Yields the parts as one renderable, unless there are none."""
    if parts:
        yield Group(*parts)
