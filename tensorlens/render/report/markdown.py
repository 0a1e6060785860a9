"""Renders the report as Markdown, to be pasted into an issue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tensorlens.analysis.naming.names import Names, names_of
from tensorlens.analysis.sampled_run import sampling_text
from tensorlens.analysis.story.story import Section, story
from tensorlens.analysis.story.tensor_table import tensor_table
from tensorlens.analysis.trace_index import index_of
from tensorlens.records.model import Trace
from tensorlens.records.report import Diagnostic, Report
from tensorlens.render.markdown_text import code, escaped, fenced, markdown_table, marked
from tensorlens.render.options import RenderOptions
from tensorlens.render.report import headline
from tensorlens.render.report.claim_texts import claim_details, claim_word, claims_to_read, failed_claims, plain_claims
from tensorlens.render.report.clean_run import MODULE_HEADINGS, module_cells, no_problem_found
from tensorlens.render.report.findings import Finding
from tensorlens.render.report.story_table import section_title, story_size
from tensorlens.render.report.tensor_rows import HEADINGS, cells_of, table_notes
from tensorlens.render.report.verdict import ignored_findings, verdict
from tensorlens.render.safe_text import safe
from tensorlens.render.tables import printed

_SNIPPET_WIDTH = 100


def to_markdown(report: Report, options: RenderOptions) -> str:
    """Returns the report: the verdict, the findings, then the story and the tensors, folded if they are long."""
    trace = report.trace
    names = names_of(trace)
    script, *parts = headline.run_parts(trace)
    blocks = [[f"# {escaped(script)}", "", marked(", ".join(parts))]]
    blocks.append([marked(sampled)] if (sampled := sampling_text(trace)) else [])
    if options.lesson:
        title, paragraphs = headline.docstring(trace)
        blocks.append([f"**{marked(title)}**", "", *map(marked, paragraphs)])
    blocks += _answer(report, names, options)
    blocks += _tried(report)
    sections = story(trace, names)
    lines = sum(len(section.rows) for section in sections)
    parts_of_story = [_section(trace, section) for section in sections]
    if story_size(sections) > options.height // 2 and not (options.lesson or options.story):
        blocks += _unfolding(f"What {lines} lines did", parts_of_story)
        blocks += _unfolding("Tensors", [_tensors(trace, names)])
    else:
        blocks += [["## What happened"], *parts_of_story] if sections else []
        blocks.append(["## Tensors", "", *tensors] if (tensors := _tensors(trace, names)) else [])
    blocks.append(_claims(trace, options))
    blocks.append(_noticed("Warnings", headline.warnings_noticed(report)))
    blocks.append(_noticed("Not seen", headline.gaps(trace)))
    blocks += _training(report, options)
    blocks.append([headline.shared_memory(trace)] if headline.shared_memory(trace) else [])
    blocks.append([marked(headline.reference(trace))] if trace.reference else [])
    blocks.append([marked(headline.eager(trace))] if trace.eager else [])
    blocks.append([marked(ignored)] if (ignored := ignored_findings(report)) else [])
    blocks.append([failed] if (failed := failed_claims(trace.claims)) else [])
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _answer(report: Report, names: Names, options: RenderOptions) -> Iterator[list[str]]:
    """Yields the verdict and the findings, or the summary of a run without any."""
    trace = report.trace
    if report.diagnostics or options.lesson or headline.final_failure(trace) is not None:
        yield [marked(verdict(report))]
        yield from (_finding(diagnostic, trace) for diagnostic in report.diagnostics)
        return
    yield [f"**{marked(no_problem_found(report))}**"]
    if report.standing_out is None and (modules := module_cells(trace, names)):
        yield markdown_table(MODULE_HEADINGS, [(code(name), *cells) for name, *cells in modules])
    yield [marked(headline.outcome(trace))]


def _training(report: Report, options: RenderOptions) -> Iterator[list[str]]:
    """Yields what `--training` measured."""
    if report.standing_out is None:
        return
    from tensorlens.analysis.training.measured import measured_training  # not above: most reports have none
    from tensorlens.render.report import training_losses, training_section

    training = measured_training(index_of(report.trace))
    assert training is not None
    stands_out = [f"- {marked(text)}" for text in training_section.sentences(report)]
    yield ["## Training", "", marked(training_section.summary(training)), *(["", *stands_out] if stands_out else [])]
    cells = training_section.training_cells(training, options.story and options.tensors)
    rows = [(code(name), *(marked(cell.replace("\n", "; ")) for cell in others)) for name, *others in cells]
    yield markdown_table(training_section.HEADINGS, rows) if rows else []
    headings, losses = training_losses.losses_cells(training)
    lines = [[marked(cell) for cell in cells] for cells in losses]
    yield markdown_table(headings, lines) if lines else []
    memory = training_section.memory_text(training)
    yield [] if memory is None else [marked(memory)]


def _tried(report: Report) -> Iterator[list[str]]:
    """Yields the fixes that were tried, with what each changes."""
    if report.tried is None:
        return
    from tensorlens.render.report.fix_diffs import summary, tried_fixes, verdict_text  # not above: most have none

    yield ["## Tried", "", *map(marked, summary(report))]
    for tried in tried_fixes(report):
        yield [
            f"**{marked(tried.title)}**: {marked(verdict_text(tried.fix))}",
            "",
            *fenced([safe(line) for line in tried.diff], "diff"),
        ]


def _unfolding(title: str, blocks: Sequence[list[str]]) -> Iterator[list[str]]:
    """Yields blocks that a reader unfolds with a click on their title."""
    if any(blocks):
        yield [f"<details><summary>{title}</summary>"]
        yield from blocks
        yield ["</details>"]


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
