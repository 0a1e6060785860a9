"""Makes the cells of a comparison, for all forms: they group answers by input and number the error messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tensorlens.compare.comparison_records import Answer, Comparison, Row
from tensorlens.compare.input_conditions import comparable, exceptions, quoted
from tensorlens.render.safe_text import safe

DIFFERS = "!="  # marks a row in which the operands differ
NOT_ASKED = "-"
LAYOUTS = {"transposed": "transposed", "every_second": "b[..., ::2]", "first_columns": "b[..., :n] of a wider b"}


@dataclass(frozen=True, slots=True)
class Cell:
    """One operand's answer on the main input, and the `others` that it gives on other inputs."""

    text: str
    others: tuple[tuple[str, str], ...]  # (labels of the inputs, answer)

    @property
    def lines(self) -> list[str]:
        return [self.text, *(f"{labels}: {text}" for labels, text in self.others)]


class ErrorNotes:
    """Numbers the error messages of a table: each is printed once, in full, below the table."""

    def __init__(self) -> None:
        self._numbers: dict[str, tuple[int, Answer]] = {}

    def text_of(self, answers: Sequence[Answer]) -> str:
        """Returns the common text of equal answers, with the numbers of their error messages."""
        numbers: list[int] = []
        for answer in answers:
            if answer.error:
                number, _ = self._numbers.setdefault(quoted(answer.error), (len(self._numbers) + 1, answer))
                numbers += [] if number in numbers else [number]
        text = safe(answers[0].text)
        return f"{text} ({', '.join(map(str, numbers))})" if numbers else text

    def listed(self) -> list[tuple[str, str, str]]:
        """Returns (`(1)`, PyTorch's message, the code of its page) for each message, in order."""
        return [(f"({number})", safe(message), answer.code) for message, (number, answer) in self._numbers.items()]


def shown_rows(comparison: Comparison, everything: bool) -> tuple[list[Row], list[Row]]:
    """Returns the rows in which the operands differ, and those in which they agree.

    Leaves out the costs. Without `everything`, also leaves out details, and rows in which the operands agree unless
    the rows are basic.
    """
    differing: list[Row] = []
    agreeing: list[Row] = []
    for row in comparison.rows:
        if row.group == "cost" or (row.level == "detail" and not everything):
            continue
        cells = cells_of(comparison, row, ErrorNotes())
        if not (row.differs or everything or row.level == "basic"):
            continue
        (agreeing if not row.differs and len(set(cells)) == 1 else differing).append(row)
    return differing, agreeing


def cells_of(comparison: Comparison, row: Row, notes: ErrorNotes) -> list[Cell]:
    """Returns one cell per operand. A row about the graph leaves out an x without grad if all operands give the same
    answer for it."""
    answers = [row.answers(operand) for operand in range(len(comparison.operands))]
    obvious = {
        place
        for place, spec in enumerate(comparison.inputs)
        if row.group == "graph"
        and not spec.requires_grad
        and place != comparison.main
        and len({each[place].value for each in answers if place in each}) == 1
    }
    places = [place for place in range(len(comparison.inputs)) if place not in obvious]
    return [_cell(comparison, each, places, notes) for each in answers]


def main_input(comparison: Comparison) -> str:
    """Describes the main input in a few words."""
    if not comparison.inputs:
        return "none"
    main = comparison.inputs[comparison.main]
    traits = [f"{main.dtype}{list(main.shape)}"]
    traits += [] if main.device == "cpu" else [main.device]
    traits.append("requires grad" if main.requires_grad else "does not require grad")
    traits += ["a leaf"] if main.leaf and main.requires_grad else []
    traits += [LAYOUTS[main.layout]] if not main.contiguous else []
    traits += ["a view"] if main.view else []
    traits += ["values between 0 and 1"] if main.values == "positive" else []
    return ", ".join(traits)


def _cell(comparison: Comparison, answers: dict[int, Answer], places: Sequence[int], notes: ErrorNotes) -> Cell:
    main = answers.get(comparison.main)
    like_main = [
        answers[place]
        for place in places
        if place in answers and main and comparable(answers[place]) == comparable(main)
    ]
    text = notes.text_of([main, *like_main]) if main else NOT_ASKED
    others = exceptions(comparison.inputs, answers, comparison.main, places)
    return Cell(text, tuple((labels, notes.text_of(differing)) for labels, differing in others))
