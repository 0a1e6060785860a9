"""What stands in the cells of a comparison, in whatever form it is shown: answers folded over the inputs, and notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tensorlens.compare.comparison_records import Answer, Comparison, Row
from tensorlens.compare.input_conditions import exceptions, kind, quoted
from tensorlens.render.safe_text import safe

APART = "!="  # the mark of a row in which the operands differ
NOT_ASKED = "-"
LAYOUTS = {"transposed": "transposed", "every_second": "b[..., ::2]", "first_columns": "b[..., :n] of a wider b"}


@dataclass(frozen=True, slots=True)
class Cell:
    """What one operand answers: for the main input, then for the inputs where the answer is another."""

    text: str
    others: tuple[tuple[str, str], ...]  # (labels of the inputs, answer)

    @property
    def lines(self) -> list[str]:
        return [self.text, *(f"{labels}: {text}" for labels, text in self.others)]


class Notes:
    """The error messages of a table, numbered: each is said once, in full, below it."""

    def __init__(self) -> None:
        self._numbers: dict[str, tuple[int, Answer]] = {}

    def shown(self, answers: Sequence[Answer]) -> str:
        """The text of answers of one kind, with the numbers of their errors."""
        numbers: list[int] = []
        for answer in answers:
            if answer.error:
                number, _ = self._numbers.setdefault(quoted(answer.error), (len(self._numbers) + 1, answer))
                numbers += [] if number in numbers else [number]
        text = safe(answers[0].text)
        return f"{text} ({', '.join(map(str, numbers))})" if numbers else text

    def listed(self) -> list[tuple[str, str, str]]:
        """(`(1)`, PyTorch's message as it is quoted, the code of its page) in order."""
        return [(f"({number})", safe(message), answer.code) for message, (number, answer) in self._numbers.items()]


def shown_rows(comparison: Comparison, everything: bool) -> tuple[list[Row], list[Row]]:
    """The rows in which the operands' cells differ, and those in which they agree.

    By default without what costs, details, and what all agree in but the basic rows.
    """
    apart: list[Row] = []
    alike: list[Row] = []
    for row in comparison.rows:
        if row.group == "cost" or (row.level == "detail" and not everything):
            continue
        cells = cells_of(comparison, row, Notes())
        if not (row.differs or everything or row.level == "basic"):
            continue
        (alike if not row.differs and len(set(cells)) == 1 else apart).append(row)
    return apart, alike


def cells_of(comparison: Comparison, row: Row, notes: Notes) -> list[Cell]:
    """One cell an operand. What all agree on for an x without grad, that nothing is in the graph, is left out."""
    answers = [row.answers(operand) for operand in range(len(comparison.operands))]
    dull = {
        place
        for place, spec in enumerate(comparison.inputs)
        if row.group == "graph"
        and not spec.requires_grad
        and place != comparison.main
        and len({each[place].value for each in answers if place in each}) == 1
    }
    places = [place for place in range(len(comparison.inputs)) if place not in dull]
    return [_cell(comparison, each, places, notes) for each in answers]


def main_input(comparison: Comparison) -> str:
    """The input that the table speaks of first, in a few words."""
    if not comparison.inputs:
        return "none"
    main = comparison.inputs[comparison.main]
    traits = [f"{main.dtype}{list(main.shape)}"]
    traits += [] if main.device == "cpu" else [main.device]
    traits.append("requires grad" if main.requires_grad else "no grad")
    traits += ["a leaf"] if main.leaf and main.requires_grad else []
    traits += [LAYOUTS[main.layout]] if not main.contiguous else []
    traits += ["a view"] if main.view else []
    traits += ["values between 0 and 1"] if main.values == "positive" else []
    return ", ".join(traits)


def _cell(comparison: Comparison, answers: dict[int, Answer], places: Sequence[int], notes: Notes) -> Cell:
    main = answers.get(comparison.main)
    like_main = [answers[place] for place in places if place in answers and main and kind(answers[place]) == kind(main)]
    text = notes.shown([main, *like_main]) if main else NOT_ASKED
    found = exceptions(comparison.inputs, answers, comparison.main, places)
    return Cell(text, tuple((words, notes.shown(given)) for words, given in found))
