"""Draws the steps of `--step` and the questions of `--quiz`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from tensorlens.analysis.story.line_events import LineEvent
from tensorlens.lessons.course.questions import DONT_KNOW, Question
from tensorlens.lessons.course.steps import Step, TensorState
from tensorlens.records.claim import Claim
from tensorlens.render.layout import Column, Line, paragraph, table
from tensorlens.render.options import RenderOptions
from tensorlens.render.report.claim_texts import claim_details
from tensorlens.render.safe_text import safe, wrap

_COLUMNS = (
    Column(" "),
    Column("name", "name"),
    Column("storage"),
    Column("requires_|grad"),
    Column("grad_fn", folds=True),
    Column("version"),
    Column("grad", folds=True),
)


def source_lines(lines: Sequence[str], first: int, last: int, size: int, marked: range = range(0)) -> list[Line]:
    """Draws lines of a script with their numbers, without claims and without empty lines at the start."""
    numbers = [number for number in range(first, last + 1) if not lines[number - 1].lstrip().startswith("#:")]
    while numbers and not lines[numbers[0] - 1].strip():
        numbers.pop(0)
    shown: list[Line] = []
    for number in numbers:
        text = safe(lines[number - 1])
        indent = len(text) - len(text.lstrip())
        pieces = wrap(text.lstrip(), size - indent - 12)
        mark = ">" if number in marked else " "
        shown.append([(f"{mark}{number:>4}  ", "gutter"), (" " * indent + pieces[0], "code")])
        shown += [[(" " * (indent + 11) + piece, "code")] for piece in pieces[1:]]
    return shown


def step_lines(step: Step, before: Sequence[TensorState], options: RenderOptions) -> list[Line]:
    """Draws the events of a step, the tensors after it if any changed, and its claims."""
    size = options.width
    lines: list[Line] = fact_lines(step.facts, size, "  ")
    changed = tuple(step.tensors) != tuple(before)
    if changed:
        lines += [[], *_tensor_lines(step.tensors, before, size)]
    elif not step.facts:
        lines.append([("  no tensor changed", "quiet")])
    if step.claims:
        lines.append([])
    for claim in step.claims:
        lines += claim_lines(claim, options)
    return lines


def fact_lines(facts: Iterable[LineEvent], size: int, head: str) -> list[Line]:
    """Draws events one after the other; the first begins with `head`."""
    lines: list[Line] = []
    indent = len(head)
    for fact in facts:
        first: Line = [(head, "gutter")]
        head = " " * indent
        if fact.name:
            first += [(f"{safe(fact.name)}  ", "name"), (f"{fact.storage}  " if fact.storage else "", "gutter")]
        style = fact.kind if fact.kind in ("error", "warning") else "plain"
        lines += paragraph(safe("; ".join((fact.text, *fact.more))), size, first, style, hang=indent + 2)
    return lines


def _tensor_lines(tensors: Sequence[TensorState], before: Sequence[TensorState], size: int) -> list[Line]:
    """Draws the tensors, marks new and changed ones, and says which of them share memory."""
    known = {state.name: state for state in before}
    rows = []
    sharing: dict[str, list[str]] = defaultdict(list)
    for state in tensors:
        mark = "+" if state.name not in known else "" if known[state.name] == state else "*"
        cells = (state.name, state.storage, state.requires_grad, state.grad_fn, state.version, state.grad)
        rows.append((mark, *map(safe, cells)))
        if state.storage.startswith("#"):
            sharing[state.storage].append(safe(state.name))
    lines = table(_COLUMNS, rows, size)
    for storage, names in sharing.items():
        if len(names) > 1:
            lines += paragraph(f"{', '.join(names)} share the memory {storage}", size, [("   ", "plain")])
    return lines


def claim_lines(claim: Claim, options: RenderOptions) -> list[Line]:
    """Draws a claim with its verdict, its statement and the values seen."""
    style = "good" if claim.as_expected else "bad"
    first: Line = [(f"  {claim.verdict:<9}", style), (f"{claim.line:>4}  ", "gutter")]
    lines = paragraph(safe(claim.check), options.width, first, "code")
    for text in claim_details(claim, options.statements):
        lines += paragraph(safe(text), options.width, [(" " * 17, "plain")], "quiet")
    return lines


def question_lines(asked: Sequence[Question], number: int, options: RenderOptions) -> list[Line]:
    """Draws question `number` without its last line. First comes the documented statement that it tests, unless that
    would answer a later question."""
    question, later = asked[number], asked[number + 1 :]
    lines: list[Line] = []
    head: Line = [(f"{number + 1} of {len(asked)}  ", "gutter")]
    ends = any(each.kind == "ending" and each.claim.id == question.claim.id for each in later)
    stated = options.statements.get(question.claim.id or "", "") if question.kind == "verdict" and not ends else ""
    if stated:
        lines += paragraph(safe(f"an article states: {stated}; here:"), options.width, head, "quiet", hang=4)
        head = [("    ", "plain")]
    text = question.prompt.rpartition("\n")[0]
    return [*lines, *paragraph(safe(text), options.width, head, "code", hang=4)]


def wrong_lines(question: Question, answer: str, options: RenderOptions) -> list[Line]:
    """Draws a wrong answer at the end of the quiz: the right answer, and the values seen."""
    yours = "" if answer == DONT_KNOW else f"; you wrote {answer}"
    lines = paragraph(safe(f"line {question.last}: {question.measured}{yours}"), options.width, hang=4)
    for text in claim_details(question.claim, options.statements):
        if text.startswith("seen: ") and question.kind == "verdict":
            lines += paragraph(safe(text), options.width, [("    ", "plain")], "quiet")
    return lines


def answer_lines(asked: Sequence[Question], number: int, answer: str, options: RenderOptions) -> list[Line]:
    """Draws whether an answer is right, and why, without what would answer a later question."""
    question, later = asked[number], asked[number + 1 :]
    right = question.is_right(answer)
    word = "right" if right else "the answer" if answer == DONT_KNOW else "wrong"
    head: Line = [(f"    {word}: ", "good" if right else "bad")]
    lines = paragraph(safe(question.measured), options.width, head, hang=6)
    hidden = []
    if any(each.last == question.last for each in later) or (
        question.kind == "value" and len(question.claim.values) < 2
    ):
        hidden.append("seen: ")
    statement_is_above = question.kind == "verdict"
    if question.claim.id and (statement_is_above or any(each.claim.id == question.claim.id for each in later)):
        hidden.append(question.claim.id)
    for text in claim_details(question.claim, options.statements):
        if not text.startswith(tuple(hidden)):
            lines += paragraph(safe(text), options.width, [("      ", "plain")], "quiet")
    return lines
