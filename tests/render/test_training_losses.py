"""Reads the table of losses that `--training` adds to a report, in every form."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from support.folders import DOCS
from support.training_programs import Ran, train

from tensorlens.render import RenderOptions, render

TERMS = """
net, head = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
x = torch.randn(8, 3)
for _ in range(3):
    hidden = net(x)
    fit = (head(hidden) - 1).square().mean()
    size = hidden.square().mean()
    loss = fit + 0.1 * size + fit.new_tensor(2.0).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
other = head(hidden.detach()).mean()
other.backward()
"""

HELPER = """
a, b = nn.Linear(3, 1), nn.Linear(3, 1)
optimizer = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)
x = torch.randn(8, 3)
def error(out):
    return (out - 1).square().mean()
for _ in range(3):
    fit_a = error(a(x))
    fit_b = error(b(x))
    size = a.weight.square().mean()
    TOTAL
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.fixture
def ran(tmp_path: Path) -> Ran:
    return train(tmp_path, TERMS)


def test_the_table_has_a_row_for_each_term(ran: Ran) -> None:
    lines = render(ran.report, "table", RenderOptions(width=80)).splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("line  passes  term"))
    assert [line.split(maxsplit=3) for line in lines[start + 2 : start + 4]] == [
        ["17", "3", "fit", "13    all 2 of net, all 2 of head"],
        ["size", "14", "all", "2 of net"],
    ]
    assert lines[start + 4].endswith("15    none: constant")
    assert lines[start + 5].split() == ["20", "1", "all", "2", "of", "head"]


def test_markdown_has_it_too(ran: Ran) -> None:
    text = render(ran.report, "markdown")
    assert "| loss line | passes | term | line | parameters reached |" in text
    assert "all 2 of net, all 2 of head |" in text


def test_json_has_the_ids_of_what_is_reached(ran: Ran) -> None:
    data = json.loads(render(ran.report, "json"))
    jsonschema.validate(data, json.loads((DOCS / "report.schema.json").read_text()))
    first, second = data["training"]["losses"]
    names = {each["id"]: each["name"] for each in data["training"]["parameters"]}
    assert (first["passes"], first["line"]["line"]) == (3, 17)
    assert [each["name"] for each in first["terms"]][:2] == ["fit", "size"]
    assert [len(each["reached"]) for each in first["terms"]] == [4, 2, 0]
    assert [each["constant"] for each in first["terms"]] == [False, False, True]
    assert {names[number] for number in second["reached"]} == {"head.weight", "head.bias"}
    assert second["terms"] == []


@pytest.mark.parametrize(
    ("total", "name"),
    [
        ("loss = fit_a + fit_b + size", "fit_a, fit_b"),
        ("loss = size + 0.5 * (fit_a + fit_b)", "fit_a, fit_b"),
        ("loss = fit_a\n    loss = loss + fit_b + size", "loss, fit_b"),
        ("fits = fit_a + fit_b; loss = fits + size", "fit_a, fit_b"),
        ("loss = size + fit_a", "fit_a"),
        ("loss = size\n    for net in (a, b):\n        loss = loss + error(net(x))", "(out - 1).square().mean()"),
        ("loss = error(a(x)) + error(b(x)) + size", "(out - 1).square().mean()"),
        ("c, d = error(a(-x)), error(b(-x))\n    loss = fit_a + fit_b + c + d + size", "fit_a and 3 others"),
    ],
)
def test_terms_of_one_line_of_a_function_have_the_names_of_all(tmp_path: Path, total: str, name: str) -> None:
    program = train(tmp_path, HELPER.replace("TOTAL", total))
    (loss,) = json.loads(render(program.report, "json"))["training"]["losses"]
    (found,) = (each["name"] for each in loss["terms"] if each["name"] != "size")
    assert found == name
