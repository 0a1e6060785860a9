"""Draws the steps of `--step` and the questions of `--quiz`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from tensorlens.analysis.story.line_events import LineEvent
from tensorlens.lessons.course.questions import DONT_KNOW, Question
from tensorlens.lessons.course.steps import Step, TensorState
from tensorlens.records.claim import Claim
from tensorlens.render.highlight import source_line
from tensorlens.render.options import RenderOptions
from tensorlens.render.report.claim_texts import claim_details
from tensorlens.render.safe_text import safe
from tensorlens.render.tables import Cell, HouseTable, hanging

_HEADINGS = ("", "name", "storage", "requires_\ngrad", "grad_fn", "version", "grad")
_CLAIM = 17  # cells in front of the details of a claim


class SourceLines:
    """Lines of a script with their numbers, without claims and without empty lines at the start.

    The lines `marked` have a `>`. With `squeezed`, successive empty lines become one, and those at the end are left
    out.
    """

    def __init__(
        self, lines: Sequence[str], first: int, last: int, marked: range = range(0), squeezed: bool = False
    ) -> None:
        self._lines, self._marked = lines, marked
        self.numbers = [number for number in range(first, last + 1) if not lines[number - 1].lstrip().startswith("#:")]
        while self.numbers and self._is_empty(self.numbers[0]):
            self.numbers.pop(0)
        while squeezed and self.numbers and self._is_empty(self.numbers[-1]):
            self.numbers.pop()
        if squeezed:
            pairs = zip([0, *self.numbers], self.numbers, strict=False)
            self.numbers = [n for before, n in pairs if not (before and self._is_empty(before) and self._is_empty(n))]

    def _is_empty(self, number: int) -> bool:
        return not self._lines[number - 1].strip()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        source = "\n".join(self._lines)
        for number in self.numbers:
            text = source_line(source, number, console)
            indent = len(text.plain) - len(text.plain.lstrip())
            mark = ">" if number in self._marked else " "
            yield hanging(Text(f"{mark}{number:>4}  ", "gutter"), Cell(text, hang=indent + 4))


def step_parts(step: Step, before: Sequence[TensorState], options: RenderOptions) -> Iterator[RenderableType]:
    """Draws the events of a step, the tensors after it if any changed, and its claims."""
    yield from fact_parts(step.facts, "  ")
    if tuple(step.tensors) != tuple(before):
        yield Text()
        yield from _tensor_parts(step.tensors, before)
    elif not step.facts:
        yield Text("  no tensor changed", "quiet")
    if step.claims:
        yield Text()
    for claim in step.claims:
        yield from claim_parts(claim, options)


def fact_parts(facts: Iterable[LineEvent], head: str) -> Iterator[RenderableType]:
    """Draws events one after the other; the first begins with `head`."""
    indent = len(head)
    for fact in facts:
        body = Text()
        if fact.name:
            body.append(f"{safe(fact.name)}  ", "name").append(f"{fact.storage}  " if fact.storage else "", "gutter")
        style = fact.kind if fact.kind in ("error", "warning") else "plain"
        body.append(safe("; ".join((fact.text, *fact.more))), style)
        yield hanging(Text(head, "gutter"), Cell(body, hang=2))
        head = " " * indent


def _tensor_parts(tensors: Sequence[TensorState], before: Sequence[TensorState]) -> Iterator[RenderableType]:
    """Draws the tensors, marks new and changed ones, and says which of them share memory."""
    known = {state.name: state for state in before}
    table = HouseTable(_HEADINGS, ["plain", "name"])
    sharing: dict[str, list[str]] = defaultdict(list)
    for state in tensors:
        mark = "+" if state.name not in known else "" if known[state.name] == state else "*"
        table.add(mark, state.name, state.storage, state.requires_grad, state.grad_fn, state.version, state.grad)
        if state.storage.startswith("#"):
            sharing[state.storage].append(state.name)
    yield table
    for storage, names in sharing.items():
        if len(names) > 1:
            yield Padding(Cell(f"{', '.join(names)} share the memory {storage}"), (0, 0, 0, 3))


def claim_parts(claim: Claim, options: RenderOptions) -> Iterator[RenderableType]:
    """Draws a claim with its verdict, its statement and the values seen."""
    verdict = (f"  {claim.verdict:<9}", "good" if claim.as_expected else "bad")
    yield hanging(Text.assemble(verdict, (f"{claim.line:>4}  ", "gutter")), Cell(claim.check, "code"))
    for text in claim_details(claim, options.statements):
        yield _detail(text, _CLAIM)


def question_parts(asked: Sequence[Question], number: int, options: RenderOptions) -> Iterator[RenderableType]:
    """Draws question `number` without its last line. First comes the documented statement that it tests, unless that
    would answer a later question."""
    question, later = asked[number], asked[number + 1 :]
    head = Text(f"{number + 1} of {len(asked)}  ", "gutter")
    ends = any(each.kind == "ending" and each.claim.id == question.claim.id for each in later)
    stated = options.statements.get(question.claim.id or "", "") if question.kind == "verdict" and not ends else ""
    if stated:
        yield _begun(head, f"an article states: {stated}; here:", "quiet", 4)
        head = Text("    ")
    yield _begun(head, question.prompt.rpartition("\n")[0], "code", 4)


def wrong_parts(question: Question, answer: str, options: RenderOptions) -> Iterator[RenderableType]:
    """Draws a wrong answer at the end of the quiz: the right answer, and the values seen."""
    yours = "" if answer == DONT_KNOW else f"; you wrote {answer}"
    yield Cell(f"line {question.last}: {question.measured}{yours}", hang=4)
    for text in claim_details(question.claim, options.statements):
        if text.startswith("seen: ") and question.kind == "verdict":
            yield _detail(text, 4)


def answer_parts(
    asked: Sequence[Question], number: int, answer: str, options: RenderOptions
) -> Iterator[RenderableType]:
    """Draws whether an answer is right, and why, without what would answer a later question."""
    question, later = asked[number], asked[number + 1 :]
    right = question.is_right(answer)
    word = "right" if right else "the answer" if answer == DONT_KNOW else "wrong"
    yield _begun(Text(f"    {word}: ", "good" if right else "bad"), question.measured, "plain", 6)
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
            yield _detail(text, 6)


def _detail(text: str, indent: int) -> RenderableType:
    return Padding(Cell(safe(text), "quiet"), (0, 0, 0, indent))


def _begun(head: Text, text: str, style: str, hang: int) -> RenderableType:
    """Puts `head` before a text whose further lines are indented by `hang`."""
    return Cell(head.copy().append(safe(text), style), hang=hang)
