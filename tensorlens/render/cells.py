"""What stands in the cells of a comparison, in whatever form it is shown: answers folded over the inputs, and notes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tensorlens.compare.records import Answer, Comparison, Row
from tensorlens.render.text import safe

APART = "!="  # the mark of a row in which the operands differ
NOT_ASKED = "-"


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

    def shown(self, answer: Answer) -> str:
        """The answer's text, with the number of its error."""
        if not answer.error:
            return safe(answer.text)
        same = answer.code or re.sub(r"\[[^\]]*\]|\d+", "#", answer.error)
        number, _ = self._numbers.setdefault(same, (len(self._numbers) + 1, answer))
        return f"{safe(answer.text)} ({number})"

    def listed(self) -> list[tuple[str, str, str]]:
        """(`(1)`, PyTorch's message without its advice on other tools, the code of its page) in order."""
        return [
            (f"({number})", safe(answer.error.partition(" Hint: ")[0]), answer.code)
            for number, answer in self._numbers.values()
        ]


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
    traits += ["non-contiguous"] if not main.contiguous else []
    traits += ["a view"] if main.view else []
    return ", ".join(traits)


def _cell(comparison: Comparison, answers: dict[int, Answer], places: Sequence[int], notes: Notes) -> Cell:
    main = answers.get(comparison.main)
    groups: dict[object, list[int]] = {}
    for place in places:
        answer = answers.get(place)
        if answer and place != comparison.main and (main is None or _kind(answer) != _kind(main)):
            groups.setdefault(_kind(answer), []).append(place)
    text = notes.shown(main) if main else NOT_ASKED
    others = (
        (", ".join(comparison.inputs[place].label for place in group), notes.shown(answers[group[0]]))
        for group in groups.values()
    )
    return Cell(text, tuple(others))


def _kind(answer: Answer) -> object:
    """What makes two answers the same: `(3, 2), as x` and `(3, 1), as x` are."""
    return "as x" if answer.text.endswith(", as x") else (answer.value, answer.code)
