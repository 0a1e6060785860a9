"""Every cell and every closing sentence of comparisons of many operands, checked by other means than they were made by.

The operands are torch's own samples of its operations and random expressions in x and y. Every day a few of them; all
with `-m complete`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest
import torch
from support import recomputed
from support.probing import probe

from tensorlens.compare import Comparison
from tensorlens.compare.comparison_records import Input, Row
from tensorlens.compare.input_conditions import comparable, exceptions
from tensorlens.compare.probe.samples import operations, samples
from tensorlens.errors import UsageError

PAIRS = 100  # of a sample and an expression: 200 operands
EVERY_DAY = 4
OTHERWISE = {"values", "changes_setting", "bytes_allocated", "time_ratio", "cost_grows"}  # tested elsewhere, or below

UNARY = (
    "{}.exp()", "{}.sin()", "{}.neg()", "{}.abs()", "{}.relu()", "{}.sigmoid()", "{}.floor()", "{}.clamp(min=0.3)",
    "{}.unsqueeze(0)", "{}.flatten()", "{}.reshape(-1)", "{}.contiguous()", "{}[..., :1]", "{}.sum()", "{}.double()",
    "{}.detach()", "{}.data", "{}.clone()", "{}.requires_grad_()",
    "{}.add_(1)", "{}.mul_(2)", "{}.zero_()", "{}.detach_()",
    "{}.mT.contiguous()", "{}.expand(2, *{}.shape)", "{}.unbind()", "{}.max()", "{}.tanh()", "{}.softmax(-1)",
    "F.dropout({})", "torch.zeros_like({})", "nn.Parameter({})", "{}.to(torch.float32)", "{}.view_as({})",
    "{}.cumsum(-1)",
)  # fmt: skip
BINARY = (
    "({} + {})",
    "({} * {})",
    "torch.where(x > 0, {}, {})",
    "torch.maximum({}, {})",
    "{}.copy_({})",
    "{}.add_({})",
)


def expression(draw: random.Random, depth: int) -> str:
    """A random expression in x, and sometimes y."""
    if depth == 0:
        return draw.choice(("x", "x", "x", "y"))
    if draw.random() < 0.7:
        return draw.choice(UNARY).replace("{}", expression(draw, depth - 1))
    return draw.choice(BINARY).format(expression(draw, depth - 1), expression(draw, draw.randrange(depth)))


def pairs() -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """(a sample of torch's, an expression, the shape of x), the operations in a mixed order."""
    draw = random.Random(14)
    names = sorted({info.name for info in operations()})
    draw.shuffle(names)
    for name in names:
        fitting = [each for each in samples(name) if len(each[0]) < 4 and 0 < torch.Size(each[0]).numel() < 200]
        found = next((each for each in fitting if torch.Size(each[0]).numel() > 1), next(iter(fitting), None))
        if found and "empty" not in name:
            yield found[1], expression(draw, draw.choice((1, 1, 2, 3))), found[0]


def measured(first: str, second: str, shape: tuple[int, ...]) -> Comparison | None:
    try:
        return probe(first, second, shape=shape)
    except UsageError:
        return None


def check(comparison: Comparison) -> None:
    wrong = [
        (row.probe, comparison.operands[operand].call, comparison.inputs[place].id, cell, expected)
        for row in comparison.rows
        if row.probe not in OTHERWISE
        for operand in range(len(comparison.operands))
        for place, cell, expected in differing(comparison, row, operand)
    ]
    assert not wrong
    check_conditions(comparison)
    check_sentences(comparison)


def differing(comparison: Comparison, row: Row, operand: int) -> Iterator[tuple[int, Any, Any]]:
    call, ran = comparison.operands[operand].call, comparison.row("runs")
    assert ran is not None
    answers = row.answers(operand)
    for place, spec in enumerate(comparison.inputs):
        runs = ran.answers(operand)[place].value
        if (not runs and row.probe != "runs") or (place and row.probe in MAIN_ONLY):
            continue
        expected = recomputed.answer(row.probe, call, spec)
        cell = answers[place].value if place in answers else recomputed.NOT_ASKED
        if not agree(row.probe, cell, expected):
            yield place, cell, expected


MAIN_ONLY = {
    "warns", "integer_dtype", "promoted_dtype", "result_device", "gradient_reaches_y", "gradient_of_sum",
    "later_gradient", "use_in_graph",
    "allowed_on_leaf_requiring_grad", "allowed_under_no_grad",
}  # fmt: skip
IF_USED = {"gradient_reaches_y", "promoted_dtype"}  # asked only where the operand names y


def agree(name: str, cell: Any, expected: Any) -> bool:
    if name in IF_USED and cell == recomputed.NOT_ASKED:
        return True
    if name == "integer_dtype" and expected is None:
        return True
    if name == "changes_source":
        return bool((set(cell.split(", ")) if cell else set()) == expected)
    if name in ("gradient_of_sum", "later_gradient") and not isinstance(expected, str):
        return same_numbers(cell, expected)
    if isinstance(expected, set):
        return all(each in cell or cell.endswith("...") for each in expected)
    return bool(cell == expected)


def same_numbers(text: str, expected: torch.Tensor | None) -> bool:
    """Returns whether a printed gradient is that tensor: `1 everywhere`, nested lists, or the first of many values."""
    if expected is None:
        return text in ("none reaches x", "None")
    if expected.is_complex():
        return True  # printed as it is
    flat = expected.double().flatten()
    if "everywhere" in text:
        return torch.allclose(flat, torch.tensor(float(text.split()[0])).double(), rtol=1e-3, atol=1e-6, equal_nan=True)
    numbers = torch.tensor(
        [float(each) for each in re.findall(r"-?(?:\d[\d.]*(?:e[+-]\d+)?|nan|inf)", text.split("of shape")[0])]
    )
    return torch.allclose(numbers.double(), flat[: len(numbers)], rtol=1e-3, atol=1e-6, equal_nan=True)


# --- the words that say for which inputs an answer holds --------------------------------------------------------------

WORDS: dict[str, Callable[[Input], bool]] = {
    "leaf": lambda x: x.leaf and x.requires_grad,
    "non-leaf": lambda x: not x.leaf,
    "non-contiguous": lambda x: x.layout != "contiguous",
    "contiguous": lambda x: x.layout == "contiguous",
    "transposed": lambda x: x.layout == "transposed",
    "float64": lambda x: x.dtype == "float64",
    "that requires grad": lambda x: x.requires_grad,
    "without grad": lambda x: not x.requires_grad,
    "with gaps in memory": lambda x: x.layout in ("every_second", "first_columns"),
    "without gaps in memory": lambda x: x.layout not in ("every_second", "first_columns"),
    "x = b[..., ::2]": lambda x: x.layout == "every_second",
    "x = b[..., :n]": lambda x: x.layout == "first_columns",
    "that is a view": lambda x: x.view,
    "that is not a view": lambda x: not x.view,
    "whose last dimension is 1": lambda x: x.shape[-1:] == (1,),
    "whose last dimension is not 1": lambda x: x.shape[-1:] != (1,),
    "with several elements": lambda x: torch.Size(x.shape).numel() > 1,
    "with one element": lambda x: torch.Size(x.shape).numel() == 1,
    "of a dtype other than float64": lambda x: x.dtype != "float64",
}


def fits(words: str, spec: Input) -> bool:
    """Returns whether an input is one of those that the words name."""
    return any(_fits(term, spec) for term in words.split(", or "))


def _fits(term: str, spec: Input) -> bool:
    for known in sorted(WORDS, key=len, reverse=True):
        while re.search(rf"(?<![\w-]){re.escape(known)}(?![\w-])", term):
            if not WORDS[known](spec):
                return False
            term = re.sub(rf"(?<![\w-]){re.escape(known)}(?![\w-])", "", term)
    assert not set(term.split()) - {"a", "an", "x", "and"}, term
    return True


def check_conditions(comparison: Comparison) -> None:
    """A sub-row about some inputs is true for each input that the words name, and for no other that was asked."""
    everywhere = range(len(comparison.inputs))
    for row in comparison.rows:
        for operand in range(len(comparison.operands)):
            answers = row.answers(operand)
            for words, given in exceptions(comparison.inputs, answers, comparison.main, everywhere):
                for place, answer in answers.items():
                    assert fits(words, comparison.inputs[place]) == (comparable(answer) == comparable(given[0])), (
                        row.probe,
                        words,
                    )


# --- the closing sentences --------------------------------------------------------------------------------------------

SENTENCES: list[tuple[str, dict[str, tuple[Any, ...]]]] = [
    (r"returns x itself", {"same_object": (True,)}),
    (r"a view of x", {"is_view": (True,), "same_object": (False,)}),
    (r"(another tensor|a Parameter) on x's memory", {"shares_storage": (True,), "is_view": (False,)}),
    (r"a copy of x", {"shares_storage": (False, None), "values": ("=x",)}),
    (r"a new tensor|new memory", {"shares_storage": (False, None)}),
    (r"gradient flows back to x unchanged", {"gradient_reaches_source": (True,), "gradient_is_identity": (True,)}),
    (r"gradient flows back to x", {"gradient_reaches_source": (True,), "requires_grad": (True,)}),
    (r"flows back to x and y|carries gradient to y", {"gradient_reaches_y": (True,)}),
    (r"is a new leaf: its gradient stays in the result", {"trains": (True,), "gradient_reaches_source": (False,)}),
    (r"constant for autograd: no gradient reaches x", {"requires_grad": (False,), "gradient_reaches_source": (False,)}),
    (r"requires grad, but no gradient reaches x", {"requires_grad": (True,), "gradient_reaches_source": (False,)}),
    (r"zeros", {"gradient_reaches_source": ("zeros",)}),
    (r"You may write to the result", {"write_result_then_backward": ("fine",)}),
    (r"in place is refused", {"write_result_then_backward": ("write refused",)}),
    (r"is a write to x: backward raises", {"write_result_then_backward": ("error",), "shares_storage": (True,)}),
    (r"A write to the result makes backward raise", {"write_result_then_backward": ("error",)}),
    (r"Beware: use x before", {"earlier_use_then_backward": ("silently wrong",)}),
    (r"Beware: write the result", {"write_result_then_backward": ("silently wrong",)}),
    (r"Beware: write x after", {"write_source_then_backward": ("silently wrong",)}),
    (r"can't be used in a graph", {"use_in_graph": ("error",)}),
    (r"backward through it raises", {"gradient_reaches_source": ("error",)}),
    (r"returns None", {"returns": ("None",)}),
]


def check_sentences(comparison: Comparison) -> None:
    """Each sentence about an operand, without what it says of other inputs, against the cells of the main input."""
    lines = comparison.summary.splitlines()
    for operand, line in enumerate(lines[: len(comparison.operands)]):
        call = f"`{comparison.operands[operand].call}`"
        assert line.startswith(call)
        exempt = "; ".join(re.findall(r"\(but ([^()]*)\)", line.removeprefix(call)))
        for but, _, words in (each.rpartition(" for ") for each in exempt.split("; ") if each):
            places = [place for place, spec in enumerate(comparison.inputs) if fits(words, spec)]
            ran = [place for place in places if at(comparison, "runs", operand, place)]
            assert ran
            for place in ran:
                check_text(comparison, operand, place, but)
        main = re.sub(r" \(but [^()]*\)", "", line.removeprefix(call))
        of_graph = re.search(r"; for an x that requires grad, ([^.]*)", main)
        if of_graph:
            main = main.replace(of_graph[0], "")
            grad = (place for place, spec in enumerate(comparison.inputs) if spec.requires_grad)
            check_text(
                comparison, operand, next(each for each in grad if at(comparison, "runs", operand, each)), of_graph[1]
            )
        refused = re.search(r"It raises an error for (.*?)\.(?: |$)(?!\.)", main)
        only = re.search(r"It runs only for (.*?)\.(?: |$)", main)
        if at(comparison, "runs", operand, 0):
            check_text(comparison, operand, 0, main)
        for place, spec in enumerate(comparison.inputs):
            if refused and "[" not in refused[1]:
                assert fits(refused[1], spec) == (not at(comparison, "runs", operand, place)), line
            if only and "[" not in only[1]:
                assert fits(only[1], spec) == bool(at(comparison, "runs", operand, place)), line
        assert "constant" not in main or not at(comparison, "requires_grad", operand, 0)
    nothing = any("Nothing that was measured" in line for line in lines)
    assert nothing == (not any(row.differs for row in comparison.rows if row.group != "cost"))


def at(comparison: Comparison, name: str, operand: int, place: int) -> Any:
    row = comparison.row(name)
    found = row.answers(operand).get(place) if row else None
    if name == "values" and found:
        return "=x" if found.text.startswith("those of x") else found.value
    return found.value if found else None


def check_text(comparison: Comparison, operand: int, place: int, text: str) -> None:
    text = re.sub(r"`[^`]*`", "", text)
    for phrase, cells in SENTENCES:
        if not re.search(phrase, text):
            continue
        for name, values in cells.items():
            if name in ("gradient_reaches_y", "values") and place:
                continue  # asked of the main input alone
            if "gradient" in name and not comparison.inputs[place].requires_grad:
                continue  # what is said of gradients is said of an x that requires grad
            assert at(comparison, name, operand, place) in values, (text, name, at(comparison, name, operand, place))


@pytest.mark.filterwarnings("ignore")
def test_cells_and_sentences_of_a_few_operands() -> None:
    """The first samples and expressions, and those in which a reader found something wrong."""
    draw = list(islice(pairs(), EVERY_DAY))
    for first, second, shape in draw:
        comparison = measured(first, second, shape)
        if comparison:
            check(comparison)
    check(probe("nn.Parameter(x)", "x.requires_grad_()"))
    check(probe("x.data.copy_(y)", "x.detach().requires_grad_()"))
    check(probe("x.reshape(-1)", "x.softmax(0)"))


@pytest.mark.complete
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(10))
def test_cells_and_sentences_of_200_operands(part: int) -> None:
    checked = 0
    for first, second, shape in islice(pairs(), part, PAIRS * 10 // 8, 10):
        comparison = measured(first, second, shape)
        if comparison:
            check(comparison)
            checked += 2
    assert checked >= 20


def test_a_condition_is_read_as_it_is_written() -> None:
    x = Input("x", "x", (3, 2), "float32", "cpu", True, False)
    assert fits("a non-leaf x", x)
    assert fits("a contiguous x that requires grad and that is not a view", x)
    assert not fits("a transposed x, or x = b[..., ::2]", x)
