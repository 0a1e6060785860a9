"""The forms of a comparison: what is said, that it fits, and that nothing a user typed is obeyed."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
from support.folders import DOCS
from support.probing import probe

from tensorlens.compare import Comparison
from tensorlens.compare.comparison_records import Answer, from_dict
from tensorlens.errors import UsageError
from tensorlens.records.source import width
from tensorlens.render.comparison import RENDERERS, render_comparison
from tensorlens.render.options import RenderOptions

SCHEMA = json.loads((DOCS / "comparison.schema.json").read_text())


@pytest.fixture(scope="module")
def pair() -> Comparison:
    return probe("detach", "data")


@pytest.fixture(scope="module")
def many() -> Comparison:
    return probe("detach", "detach_", "data", "clone", "x.copy_", "requires_grad_", "no_grad")


@pytest.mark.parametrize("operands", [("clone", "copy_"), ("x.numpy()", "split"), ("map_", "no_grad", "x += 1")])
def test_the_json_is_what_the_schema_says(operands: tuple[str, ...]) -> None:
    texts = tuple("x.view(7)" if each == "map_" else each for each in operands)
    comparison = probe(*texts)
    told = json.loads(render_comparison(comparison, "json"))
    jsonschema.Draft202012Validator(SCHEMA).validate(told)
    assert from_dict(told) == comparison


@pytest.mark.parametrize("size", [60, 80, 100, 120, 200])
def test_no_line_is_wider_than_the_terminal(pair: Comparison, many: Comparison, size: int) -> None:
    for comparison in (pair, many):
        text = render_comparison(comparison, "table", RenderOptions(width=size))
        assert max(width(line) for line in text.splitlines()) <= size
        assert not re.search(r"[ \t]+$", text, re.MULTILINE)


def test_the_differences_come_first_and_are_marked(pair: Comparison) -> None:
    lines = render_comparison(pair).splitlines()
    differing = lines.index(next(line for line in lines if line.strip().startswith("they differ")))
    agreeing = lines.index("    they agree")
    marked = [index for index, line in enumerate(lines) if line.startswith("!=  ")]
    assert differing < marked[0] < agreeing
    assert [line.split("  ")[1] for line in lines if line.startswith("!=  shares")] == ["shares the version counter"]
    assert any(re.fullmatch(r"    shares memory with x +yes", line) for line in lines[agreeing:])


def test_both_gradients_and_the_errors_page_are_shown(pair: Comparison) -> None:
    text = render_comparison(pair, "table", RenderOptions(width=400))
    assert "silently wrong: gradient [[-0.5, 3], [1, 3]" in text
    assert "is silently wrong (gradient [[-0.5, 3], [1, 3], [1.5, 0.5]], right is [[-1.5, 2]" in text
    assert "(1) RuntimeError: one of the variables needed for gradient computation" in text
    assert "[saved-tensor-modified-inplace]" in text


def test_many_operands_stand_beside_the_answer_they_give(many: Comparison) -> None:
    text = render_comparison(many, "table", RenderOptions(width=100))
    assert "no_grad         with torch.no_grad(): r = x * 2" in text
    givers = r"!=  shares memory with x +yes +detach, detach_, data,\n +x.copy_, requires_grad_\n +no +clone, no_grad"
    assert re.search(givers, text)


@pytest.mark.parametrize("size", [80, 100, 120])
def test_no_word_is_broken(pair: Comparison, many: Comparison, size: int) -> None:
    for comparison in (pair, many):
        typed = " ".join(operand.operand for operand in comparison.operands)
        whole = words(typed + " " + render_comparison(comparison, "table", RenderOptions(width=1000)))
        narrow = words(render_comparison(comparison, "table", RenderOptions(width=size)))
        assert narrow - whole <= {
            "answer",
            "given",
            "by",
        }


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def test_columns_where_they_fit() -> None:
    comparison = probe("x.exp()", "x.cos()", "x.sin()", "x.sqrt()")
    wide, narrow = (render_comparison(comparison, "table", RenderOptions(width=size)) for size in (200, 60))
    assert re.search(r"^!=  grad_fn +ExpBackward0 +CosBackward0 +SinBackward0 +SqrtBackward0$", wide, re.MULTILINE)
    assert re.search(r"^!=  grad_fn +ExpBackward0 +x\.exp\(\)$", narrow, re.MULTILINE)


def test_nothing_relies_on_colour(pair: Comparison) -> None:
    plain = render_comparison(pair, "table", RenderOptions(color=False))
    coloured = render_comparison(pair, "table", RenderOptions(color=True))
    assert "\x1b[" not in plain
    assert "\x1b[" in coloured
    bare = re.sub(r"\x1b\[[\d;]*m", "", coloured)
    assert [line.rstrip() for line in bare.splitlines()] == plain.splitlines()


@pytest.mark.parametrize("format", sorted(RENDERERS))
def test_what_the_user_typed_is_shown_and_not_obeyed(pair: Comparison, format: str) -> None:
    evil = "x[1:] # \x1b[31m[bold]red[/] \u202e <script> | `a`\n"
    operands = (replace(pair.operands[0], operand=evil, call=evil), pair.operands[1])
    text = render_comparison(replace(pair, operands=operands, summary=f"`{evil}` is"), format)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[bold]red[/]" in text


@pytest.mark.parametrize("color", [False, True])
@pytest.mark.parametrize("several", [1, 3])
def test_markup_in_an_answer_or_an_error_is_shown(pair: Comparison, color: bool, several: int) -> None:
    evil = "[red]a[/red] :smile: \x1b]8;;http://x\x07 \r"
    rows = [
        replace(
            row, evidence=tuple(replace(each, answer=Answer(each.answer.value, evil, evil)) for each in row.evidence)
        )
        for row in pair.rows
    ]
    hostile = replace(pair, operands=pair.operands * several, rows=tuple(rows))
    text = render_comparison(hostile, "table", RenderOptions(width=120, color=color))
    assert "[red]a[/red] :smile: \\x1b]8;;http://x\\x07" in text
    assert "\x1b]" not in text
    assert "\r" not in text


def test_markdown_is_a_table_with_as_many_cells_in_every_row(many: Comparison) -> None:
    rows = [line for line in render_comparison(many, "markdown").splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {len(many.operands) + 3}


def test_an_unknown_format_is_a_usage_error(pair: Any) -> None:
    with pytest.raises(UsageError, match="no such format: yaml"):
        render_comparison(pair, "yaml")


def test_wide_characters_keep_their_columns() -> None:
    text = render_comparison(probe("x.clone() # 中文字符", "x.detach()"))
    lines = text.splitlines()
    head = next(line for line in lines if "they differ" in line)
    row = next(line for line in lines if line.startswith("!=  requires grad"))
    assert width(head[: head.index("x.detach()")]) == width(row[: row.rindex("no")])


def test_by_default_what_differs_and_five_basic_rows(pair: Comparison) -> None:
    short, full = (
        render_comparison(pair, "table", RenderOptions(width=120, everything=every)) for every in (False, True)
    )
    assert "cost, on a large x" not in short
    assert "nodes added to the graph" not in short
    assert all(label in short for label in ("values", "shares memory", "changes x", "gradient reaches x"))
    assert re.search(r"^    values +equal: those of x$", short, re.MULTILINE)
    assert all(row.label in full for row in pair.rows if len(row.label) < 25)


def test_an_error_is_quoted_as_it_was_raised_at_that_cell() -> None:
    comparison = probe("split", "x.detach()")
    text = render_comparison(comparison, "table", RenderOptions(width=300, everything=True))
    assert re.search(r"Output 0 of Split\w* is a view and is being modified inplace", text)
    assert "its base or another view of its base has been modified inplace" in text
    assert "which is output 0 of" not in text
