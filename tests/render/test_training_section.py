"""Reads the section that `--training` adds to a report, in every form."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
import torch
from support.commands import run_command
from support.folders import DOCS

import tensorlens
from tensorlens.diagnostics import report_on
from tensorlens.render import RenderOptions, render
from tensorlens.render.report.training_section import sparkline

EXAMPLE = DOCS / "examples" / "attention_pooling.py"


def report_of(folder: Path, *options: str) -> tensorlens.Report:
    saved = folder / "trace.json"
    assert run_command("explain", *options, "-o", saved, EXAMPLE).returncode == 0
    return report_on(tensorlens.load(saved))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tensorlens.Report:
    return report_of(tmp_path_factory.mktemp("training"), "--training")


def test_the_document_shows_what_the_command_prints(report: tensorlens.Report) -> None:
    shown = re.findall(r"```text\n(.*?)\n```", (DOCS / "training.md").read_text(), re.S)
    assert shown[0].splitlines()[1:] == render(report, "table", RenderOptions(width=80)).rstrip().splitlines()[1:]


def test_json_has_the_sentences_and_the_parameters(report: tensorlens.Report) -> None:
    data = json.loads(render(report, "json"))
    jsonschema.validate(data, json.loads((DOCS / "report.schema.json").read_text()))
    training = data["training"]
    assert [each["labels"][0]["line"] for each in training["standing_out"]] == [20, 14, 21]
    by_name = {each["name"]: each for each in training["parameters"]}
    assert by_name["head.weight"]["optimizer"] is None
    assert by_name["pool.score.weight"]["gradients"]["zero"] == 20
    assert by_name["pool.score.weight"]["moved_by"] == ["decay"]
    assert training["optimizers"][0]["line"] == {"file": "attention_pooling.py", "line": 21}


def test_markdown_has_the_table(report: tensorlens.Report) -> None:
    text = render(report, "markdown")
    assert "## Training" in text
    assert "| `head` | 2 |" in text


def test_every_parameter_has_a_row_with_all(report: tensorlens.Report) -> None:
    text = render(report, "table", RenderOptions(width=100, story=True, tensors=True))
    assert "pool.score.weight" in text[text.index("training   20 backward passes") :]


def test_a_run_without_the_option_has_no_such_section(tmp_path: Path) -> None:
    plain = report_of(tmp_path)
    assert plain.standing_out is None
    assert json.loads(render(plain, "json"))["training"] is None
    assert "gradient norm" not in render(plain, "table", RenderOptions(width=80))


def test_a_sparkline_has_at_most_eight_bars() -> None:
    assert sparkline([0.0, 1.0]) == "▁█"
    assert sparkline([0.0, 0.0]) == "▁▁"
    assert len(sparkline(list(map(float, range(100))))) == 8


def test_gradients_that_are_not_finite_are_counted_in_the_table(tmp_path: Path) -> None:
    with tensorlens.trace(training=True) as lens:
        weight = torch.nn.Parameter(torch.tensor([0.0, 1.0]))
        optimizer = torch.optim.SGD([weight], lr=0.1)
        for power in (2.0, 0.5):
            optimizer.zero_grad()
            (weight * 0 + weight.detach()).pow(power).sum().backward()
            optimizer.step()
    assert "not finite: 1 of 2" in render(lens.report(), "table", RenderOptions(width=120))


@pytest.mark.parametrize("is_alternating", [False, True])
def test_a_norm_that_is_not_known_is_explained(tmp_path: Path, is_alternating: bool) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import torch\nnet = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 1))\n"
        "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\nfor step in range(4):\n    optimizer.zero_grad()\n"
        f"    out = net[0](torch.ones(2, 3)) if {is_alternating} and step % 2 else net(torch.ones(2, 3))\n"
        "    out.square().sum().backward()\n    optimizer.step()\n"
    )
    printed = run_command("explain", "--training", program).stdout
    assert ("?: not measured, or not at the same steps" in printed) is is_alternating


TARGET = """
import copy, torch
net = torch.nn.Linear(4, 1)
target, fixed = copy.deepcopy(net), copy.deepcopy(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    x = torch.randn(8, 4)
    opt.zero_grad()
    (net(x) - target(x).detach() - fixed(x).detach()).square().mean().backward()
    opt.step()
    with torch.no_grad():
        for p, q in zip(target.parameters(), net.parameters()):
            p.lerp_(q, 0.1)
"""


def moved_of(folder: Path, name: str, *options: str) -> str:
    """Returns the end of the row of a module of `TARGET`."""
    script, saved = folder / "script.py", folder / "trace.json"
    script.write_text(TARGET)
    assert run_command("explain", "--training", *options, "-o", saved, script).returncode == 0
    rows = render(report_on(tensorlens.load(saved)), "table").splitlines()
    (row,) = (row for row in rows if row.startswith(f"{name} "))
    return row.split("  ")[-1].strip()


def test_a_row_says_which_line_sets_what_no_optimizer_holds(tmp_path: Path) -> None:
    assert moved_of(tmp_path, "target") == "set, line 13"
    assert moved_of(tmp_path, "fixed") == "no"


def test_a_sampled_run_does_not_know_what_steps_set_that_it_has_not_recorded(tmp_path: Path) -> None:
    assert moved_of(tmp_path, "fixed", "--steps", "2:3") == "?"
