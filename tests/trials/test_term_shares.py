"""Checks the share that each term of a loss has of the gradient, which a second run of a program measures."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import jsonschema
import pytest
import torch
from support.folders import DOCS
from support.warm import Warm
from support.warm_runs import WarmRuns

from tensorlens.analysis.training.term_shares import terms_to_measure
from tensorlens.diagnostics import report_on
from tensorlens.records.invariants import validate
from tensorlens.records.report import Report
from tensorlens.records.trace_file import dumps, loads
from tensorlens.render import RenderOptions, render
from tensorlens.render.report.json import to_dict
from tensorlens.runner.second_run import complete

HEAD = """
import math
import torch
from torch import nn

torch.manual_seed(0)
net, head = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
x = torch.randn(8, 3)
{before}
for step in range(5):
    hidden = net(x)
    fit = (head(hidden) - 1).square().mean()
    size = hidden.square().mean()
{loss}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def report_of(warm: Warm, folder: Path, loss: str, before: str = "") -> tuple[Report, int]:
    """Returns the report of a program with what the second run measured, and the number of runs."""
    script = folder / "program.py"
    script.write_text(HEAD.format(loss=textwrap.indent(loss, "    "), before=before))
    runs = WarmRuns(warm, script, training=True)
    first = runs.first()
    assert first.exited.returncode == 0, script.read_text()
    complete(runs, first, terms_to_measure)
    report = report_on(first.trace())
    assert validate(report.trace) == []
    assert repr(loads(dumps(report.trace)).inspection) == repr(report.trace.inspection)
    return report, runs.count


def shares_of(report: Report) -> list[dict[str, list[float]]]:
    data = to_dict(report, RenderOptions())
    jsonschema.validate(data, json.loads((DOCS / "report.schema.json").read_text()))
    (loss,) = data["training"]["losses"]
    return [{each["module"]: each["shares"] for each in term["share"]} for term in loss["terms"]]


def reason_in(report: Report) -> str:
    (unknown,) = report.trace.inspection.terms_unknown
    assert unknown.reason in " ".join(render(report, "table", RenderOptions(width=200)).split())
    assert all(each == {} for each in shares_of(report))
    return unknown.reason


def test_the_shares_are_those_of_the_gradients(warm: Warm, tmp_path: Path) -> None:
    report, count = report_of(warm, tmp_path, "loss = fit + 0.5 * size")
    assert count == 2
    fit, size = shares_of(report)
    assert list(fit) == ["net", "head"]
    assert list(size) == ["net"]
    assert fit["head"] == [1.0, 1.0, 1.0]
    torch.manual_seed(0)
    net, head = torch.nn.Linear(3, 4), torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
    x = torch.randn(8, 3)
    expected: list[float] = []
    for _ in range(5):
        hidden = net(x)
        terms = (head(hidden) - 1).square().mean(), 0.5 * hidden.square().mean()
        grads = [torch.autograd.grad(term, list(net.parameters()), retain_graph=True) for term in terms]
        norms = [float(torch.cat([each.flatten() for each in grad]).norm()) for grad in grads]
        expected.append(norms[0] / sum(norms))
        optimizer.zero_grad()
        sum(terms).backward()
        optimizer.step()
    assert fit["net"] == pytest.approx([expected[0], expected[2], expected[4]], rel=1e-3)
    assert [a + b for a, b in zip(fit["net"], size["net"], strict=True)] == pytest.approx([1.0] * 3)


def test_the_table_shows_the_first_and_the_last_share(warm: Warm, tmp_path: Path) -> None:
    report, _ = report_of(warm, tmp_path, "loss = fit + 0.5 * size")
    (fit, _) = shares_of(report)
    first, last = (f"{100 * share:.3g}" for share in (fit["net"][0], fit["net"][-1]))
    text = " ".join(render(report, "table", RenderOptions(width=120)).split())
    assert f"fit 13 all 2 of net: {first} -> {last} %, all 2 of head" in text
    assert "percent: the norm of the gradient of a term alone" in text
    assert "a second run, to measure each term of the loss" in text


ONE_RUN = {
    "one term": ("loss = fit", ""),
    "a constant": ("loss = fit + size.detach()", ""),
}


@pytest.mark.parametrize("name", ONE_RUN)
def test_a_loss_without_two_terms_that_train_is_not_measured(warm: Warm, tmp_path: Path, name: str) -> None:
    report, count = report_of(warm, tmp_path, *ONE_RUN[name])
    assert count == 1
    assert report.trace.inspection.terms_unknown == ()


UNKNOWN = {
    "a term of another": ("loss = fit + fit.sqrt() + size", "", 2, "do not add up"),
    "a hook": ("loss = fit + size", "net.weight.register_hook(lambda g: g)", 1, "the run has hooks"),
    "another seed": ("loss = fit + size", "import os\nx = x + int.from_bytes(os.urandom(2), 'little')", 2,
                     "has other values"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_report_says_why_the_shares_are_not_known(warm: Warm, tmp_path: Path, name: str) -> None:
    loss, before, runs, reason = UNKNOWN[name]
    report, count = report_of(warm, tmp_path, loss, before)
    assert count == runs
    assert reason in reason_in(report)


def test_one_second_run_searches_for_nan_too(warm: Warm, tmp_path: Path) -> None:
    report, count = report_of(warm, tmp_path, "loss = fit + size / (0.0 if step == 4 else 1.0)")
    assert count == 2
    (origin,) = report.trace.inspection.origins
    assert origin.kind == "forward"
    assert report.trace.inspection.term_gradients


CRITIC = """
G, D = nn.Linear(4, 2), nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
generator = torch.optim.Adam(G.parameters(), lr=1e-3)
critic = torch.optim.Adam(D.parameters(), lr=1e-3)
for step in range(4):
    real, fake = torch.randn(16, 2) + 2, G(torch.randn(16, 4)).detach()
    mix = (0.5 * real + 0.5 * fake).requires_grad_()
    (slope,) = torch.autograd.grad(D(mix).sum(), mix, create_graph=True)
    penalty = (slope.norm(dim=1) - 1).square().mean()
    loss = D(fake).mean() - D(real).mean() + 10 * penalty
    critic.zero_grad()
    loss.backward()
    critic.step()
    generator.zero_grad()
    (-D(G(torch.randn(16, 4))).mean()).backward()
    generator.step()
"""


def _standing_out(warm: Warm, tmp_path: Path, body: str) -> Report:
    script = tmp_path / "critic.py"
    script.write_text("import torch\nfrom torch import nn\n\ntorch.manual_seed(0)\n" + body)
    runs = WarmRuns(warm, script, training=True)
    first = runs.first()
    complete(runs, first, terms_to_measure)
    report = report_on(first.trace())
    assert [each.code for each in report.diagnostics if each.severity == "warning"] == []
    return report


def test_terms_that_cancel_are_named(warm: Warm, tmp_path: Path) -> None:
    shifted = CRITIC.replace("D(fake).mean() - D(real).mean()", "(D(fake) + s).mean() - (D(real) + s).mean()").replace(
        "D.parameters()", "[*D.parameters(), s]"
    )
    report = _standing_out(warm, tmp_path, "s = nn.Parameter(torch.zeros(1))\n" + shifted)
    (found,) = report.standing_out or ()
    assert found.text == (
        "the gradient of `s` is exactly zero at each of 4 steps: the gradients of `(D(fake) + s).mean()` and "
        "`(D(real) + s).mean()` cancel"
    )


def test_a_bias_of_a_trained_layer_may_cancel(warm: Warm, tmp_path: Path) -> None:
    report = _standing_out(warm, tmp_path, CRITIC)
    assert report.standing_out == ()
    assert {each["name"] for each in to_dict(report, RenderOptions())["training"]["parameters"]} == {
        "G.weight", "G.bias", "D[0].weight", "D[0].bias", "D[2].weight", "D[2].bias"
    }  # fmt: skip


TINY = "policy = ((head(hidden).flatten() - head(net(x)).flatten()) * torch.arange(8.0)).mean()\nloss = policy + size"


def test_a_term_that_cancels_is_named(warm: Warm, tmp_path: Path) -> None:
    report, _ = report_of(warm, tmp_path, TINY)
    (found,) = (each for each in report.standing_out or () if "measured passes" in each.text)
    assert found.text.startswith(
        "the term `policy` of the loss gives `net` less than 0.1 % of the gradient at each of 3"
    )


def test_terms_that_give_next_to_nothing_share_a_sentence(warm: Warm, tmp_path: Path) -> None:
    loss = TINY.replace(
        "\nloss", "\nother = (policy.new_ones(8) * (head(hidden) - head(net(x))).flatten()).mean()\nloss"
    )
    report, _ = report_of(warm, tmp_path, loss + " + other")
    (found,) = (each for each in report.standing_out or () if "measured passes" in each.text)
    assert found.text.startswith("each of the terms `policy` and `other` of the loss gives `net` less than 0.1 %")
    assert len({label.span.line for label in found.labels}) == 3


MEANT = {
    "a small weight": ("loss = fit + 1e-7 * size", ""),
    "a small weight inside": ("low = size * RATE\nloss = fit + low", "RATE = 1e-7"),
    "a weight that no line says": ("loss = fit + weight[0] * size", "weight = [float('1e-7')]"),
    "a large weight of the other": ("loss = 1e6 * fit + size", ""),
    "the size of the parameters": ("size = sum(p.pow(2).sum() for p in net.parameters())\nloss = fit + size * 1e-5",
                                    ""),
    "an entropy": ("ent = -(hidden.softmax(1) * hidden.log_softmax(1)).sum(1).mean()\nloss = fit - 1e-3 * ent", ""),
    "a hinge that is not reached": ("over = torch.relu(hidden.norm(dim=1) - 100).mean()\nloss = fit + over", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", MEANT)
def test_a_term_that_is_meant_to_be_small_is_left_alone(warm: Warm, tmp_path: Path, name: str) -> None:
    report, _ = report_of(warm, tmp_path, *MEANT[name])
    assert [each.text for each in report.standing_out or () if "measured passes" in each.text] == []


def test_a_small_weight_is_left_alone(warm: Warm, tmp_path: Path) -> None:
    report, _ = report_of(warm, tmp_path, "loss = fit + 0.02 * size")
    assert report.standing_out == ()
