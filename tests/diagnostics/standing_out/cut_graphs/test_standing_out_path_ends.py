"""Checks the sentences about parameters that no gradient ever reached, and where their paths end."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from support.standing_out import marked, report_of, sentences

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import measured_training
from tensorlens.analysis.training.untrained import untrained
from tensorlens.render.report.training_json import training_dict
from tensorlens.render.report.training_section import training_cells

LOOP = """
for step in range(3):
    opt.zero_grad()
    loss = f(torch.randn(8, 4))
    loss.backward()
    opt.step()
"""
TWO = """
enc, head = nn.Linear(4, 4), nn.Linear(4, 1)
"""
BASE = "base = nn.Parameter(torch.ones(4, 1))\n"
BOTH = "opt = torch.optim.SGD([*enc.parameters(), *head.parameters()], lr=0.1)\n"
LIMITED = "a = nn.Parameter(torch.rand(4))\nb = nn.Parameter(torch.rand(4))\nopt = torch.optim.SGD([a, b], lr=0.1)\n"
HEAD_ONLY = "opt = torch.optim.SGD(head.parameters(), lr=0.1)\n"

WRONG = {
    "an optimizer that never steps": (
        TWO + HEAD_ONLY + "other = torch.optim.Adam(enc.parameters())\n"
        "def f(x):\n    return head(enc(x).detach()).square().mean()  #!\n",
        "`enc.weight` and `enc.bias`: `enc(x).detach()` stopped the gradient",
    ),
    "item": (
        TWO + HEAD_ONLY + "def f(x):\n    return (head(x) * enc(x).mean().item()).square().mean()  #!\n",
        "`enc(x).mean().item()` is a plain number; no optimizer holds them",
    ),
    "a list": (
        TWO + HEAD_ONLY + "def f(x):\n    values = enc(x).tolist()  #!\n    return head(torch.tensor(values)).mean()\n",
        "`enc(x).tolist()` is a plain list; no optimizer holds them",
    ),
    "float": (
        "scale = nn.Parameter(torch.tensor(2.0))\nhead = nn.Linear(4, 1)\n" + HEAD_ONLY
        + "def f(x):\n    factor = float(scale)  #!\n    return (head(x) * factor).square().mean()\n",
        "`scale`: `float(scale)` is a plain number; no optimizer holds it",
    ),
    "a new parameter": (
        BASE + "weight = nn.Parameter(base * 2)  #!\n"
        "opt = torch.optim.SGD([weight], lr=0.1)\nf = lambda x: (x @ weight).square().mean()\n",
        "`base`: `nn.Parameter(base * 2)` is a new leaf; no optimizer holds it",
    ),
    "used only under no_grad": (
        TWO + BOTH + "def f(x):\n    with torch.no_grad():\n        enc(x).mean()  #!\n"
        + "    return head(x).square().mean()\n",
        "the script uses them only where gradients are off",
    ),
    "used only under no_grad, and limited": (
        LIMITED + "def f(x):\n    with torch.no_grad():\n        b.clamp_(0, 1)\n        scale = b.exp()  #!\n"
        + "    return (x * a * scale).square().mean()\n",
        "`b`: gradients were switched off",
    ),
}  # fmt: skip

RIGHT = {
    "a linear probe": TWO + HEAD_ONLY + "def f(x):\n    return head(enc(x).detach()).square().mean()\n",
    "a teacher": TWO + HEAD_ONLY
    + "def f(x):\n    with torch.no_grad():\n        y = enc(x)\n    return (head(x) - y).square().mean()\n",
    "a teacher's labels": TWO + HEAD_ONLY
    + "def f(x):\n    return (head(x)[:, 0] - enc(x).argmax(1)).square().mean()\n",
    "a frozen layer": TWO + "enc.requires_grad_(False)\n" + HEAD_ONLY
    + "def f(x):\n    return head(enc(x)).square().mean()\n",
    "a target that follows": "target, head = nn.Linear(4, 1), nn.Linear(4, 1)\n" + HEAD_ONLY
    + "def f(x):\n    target.load_state_dict(head.state_dict())\n"
    "    with torch.no_grad():\n        y = target(x) + 1\n    return (head(x) - y).square().mean()\n",
    "a target whose numbers are used": "target, head = nn.Linear(4, 1), nn.Linear(4, 1)\n" + HEAD_ONLY
    + "def f(x):\n    for slow, fast in zip(target.parameters(), head.parameters()):\n"
    "        slow.data.mul_(0.9).add_(0.1 * fast.data)\n"
    "    return (head(x) - target(x).mean().item() - 1).square().mean()\n",
    "autograd.grad": TWO + HEAD_ONLY
    + "def f(x):\n    grads = torch.autograd.grad(enc(x).sum(), enc.parameters())\n"
    + "    return head(x).square().mean()\n",
    "a metric": TWO + BOTH
    + "def f(x):\n    loss = head(enc(x)).square().mean()\n    print(enc(x).mean().item())\n    return loss\n",
    "a straight-through estimator": TWO + BOTH
    + "def f(x):\n    h = enc(x)\n    return head(h + (h.round() - h).detach()).square().mean()\n",
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_the_line_at_which_the_path_ends_is_named(tmp_path: Path, name: str) -> None:
    body, text = WRONG[name]
    found = [each for each in sentences(tmp_path, body + LOOP) if each.text.startswith("no gradient ever reached")]
    (each,) = found
    assert text in each.text
    assert each.labels[0].span.line == marked(body)


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_kept_from_gradients_on_purpose_is_not_named(tmp_path: Path, name: str) -> None:
    assert sentences(tmp_path, RIGHT[name] + LOOP) == ()


@pytest.mark.parametrize(
    "forward",
    ["return head(enc(x).detach()).square().mean()", "return head(x).mean()", "enc(x); return head(x).square().mean()"],
)
def test_a_finding_is_not_said_again(tmp_path: Path, forward: str) -> None:
    body = f"{TWO}{BOTH}def f(x):\n    {forward}\n{LOOP}"
    report = report_of(tmp_path, body)
    assert [each.code for each in report.diagnostics] == ["branch-detached"]
    assert report.standing_out == ()


def test_a_custom_function_that_a_finding_names_is_not_named_again(tmp_path: Path) -> None:
    body = """
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, s):
            return x * s
        @staticmethod
        def backward(ctx, gradient):
            return gradient, None
    head, s = nn.Linear(4, 1), nn.Parameter(torch.ones(1))
    opt = torch.optim.SGD([*head.parameters(), s], lr=0.1)
    for step in range(3):
        opt.zero_grad()
        Scale.apply(head(torch.randn(8, 4)), s).square().mean().backward()
        opt.step()
    """
    report = report_of(tmp_path, body)
    assert [each.code for each in report.diagnostics] == ["custom-function-none-gradient"]
    assert report.standing_out == ()


def test_a_parameter_that_was_replaced_is_not_named_again(tmp_path: Path) -> None:
    body = """
    head = nn.Linear(4, 1)
    opt = torch.optim.SGD(head.parameters(), lr=0.1)
    new = torch.empty(2, 4)
    with torch.no_grad():
        new[:1] = head.weight
        new[1:] = head.weight
    head.weight = nn.Parameter(new)
    f = lambda x: head(x).square().mean()
    """
    report = report_of(tmp_path, textwrap.dedent(body) + LOOP)
    assert [each.code for each in report.diagnostics] == ["optimizer-holds-replaced-parameter"]
    assert report.standing_out == ()


@pytest.mark.parametrize(
    ("forward", "kind", "shown"),
    [
        ("return head(enc(x).detach()).mean()", "cut", "ends at line 7: detach()"),
        ("return head(x).mean()", "never", "no call uses it"),
        ("enc(x); return head(x).mean()", "unused", "ends at line 7: no loss uses it"),
        ("torch.no_grad()(enc)(x); return head(x).mean()", "unrecorded", "ends at line 7: gradients off"),
    ],
)
@pytest.mark.parametrize("held", [BOTH, HEAD_ONLY])
def test_the_table_shows_every_end(tmp_path: Path, forward: str, kind: str, shown: str, held: str) -> None:
    report = report_of(tmp_path, f"{TWO}{held}def f(x):\n    {forward}\n{LOOP}")
    training = measured_training(TraceIndex(report.trace))
    assert training is not None
    assert {(each.row.name, each.kind) for each in untrained(training)} == {("enc.weight", kind), ("enc.bias", kind)}
    cells = {row[0]: row[3] for row in training_cells(training, False)}
    assert cells["enc"].split("\n") == ["none", shown]


def test_two_parameters_end_at_different_calls(tmp_path: Path) -> None:
    body = "a, b, head = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 1)\n" + HEAD_ONLY
    body += "def f(x):\n    b(x)\n    return head(a(x).detach()).mean()\n" + LOOP
    training = measured_training(TraceIndex(report_of(tmp_path, body).trace))
    assert training is not None
    kinds = {each.row.name: each.kind for each in untrained(training)}
    assert kinds == {"a.weight": "cut", "a.bias": "cut", "b.weight": "unused", "b.bias": "unused"}


ASKED = (
    "a = nn.Parameter(torch.ones(4))\nb = nn.Parameter(torch.ones(4))\nslow = nn.Parameter(torch.ones(4))\n"
    "fast, rest = torch.optim.SGD([a, b], lr=0.1), torch.optim.SGD([slow], lr=0.1)\n"
    "for step in range(3):\n"
    "    loss = (torch.randn(8, 4) * a * b).square().mean()\n"
    "    (a.grad,) = torch.autograd.grad(loss, [a])  #!\n"
    "    fast.step()\n"
    "    rest.zero_grad()\n"
    "    (slow - 2).square().mean().backward()\n"
    "    rest.step()\n"
)


def test_parameters_that_no_line_asks_a_gradient_of_are_named(tmp_path: Path) -> None:
    report = report_of(tmp_path, ASKED)
    (found,) = report.diagnostics
    assert (found.code, found.severity) == ("branch-detached", "warning")
    assert "`b`: `torch.autograd.grad(loss, [a])` does not ask for its gradient" in found.title
    line = marked(ASKED)
    assert found.labels[0].span.line == line
    training = measured_training(TraceIndex(report.trace))
    assert training is not None
    assert {row[0]: row[3] for row in training_cells(training, True)}["b"].split("\n") == [
        "none", f"not asked for at line {line}"]  # fmt: skip
    (shown,) = (row for row in training_dict(report)["parameters"] if row["name"] == "b")
    ends = shown["ends"]
    assert (ends["kind"], ends["op"], ends["line"]["line"]) == ("unasked", "autograd.grad", line)


def test_a_parameter_that_one_of_two_lines_asks_for_is_left_alone(tmp_path: Path) -> None:
    other = ASKED.replace("    fast.step()", "    (b.grad,) = torch.autograd.grad((a * b).sum(), [b])\n    fast.step()")
    assert report_of(tmp_path, other).diagnostics == ()


def test_a_slope_that_a_loss_is_computed_from_asks_for_no_parameter(tmp_path: Path) -> None:
    slope = ASKED.replace("(a.grad,) = torch.autograd.grad(loss, [a])", "loss.backward()").replace(
        "loss = (torch.randn(8, 4) * a * b).square().mean()",
        "x = torch.randn(8, 4, requires_grad=True)\n"
        "    (g,) = torch.autograd.grad((x * a).square().sum() + b.sum(), x, create_graph=True)\n"
        "    loss = g.square().mean()",
    )
    assert [each.title for each in report_of(tmp_path, slope).diagnostics if "ask for" in each.title] == []


def test_a_gradient_that_was_asked_for_is_one(tmp_path: Path) -> None:
    training = measured_training(TraceIndex(report_of(tmp_path, RIGHT["autograd.grad"] + LOOP).trace))
    assert training is not None
    assert untrained(training) == ()


def test_an_error_that_the_script_catches_hides_no_path(tmp_path: Path) -> None:
    body = f"{TWO}{HEAD_ONLY}def f(x):\n    return head(x * enc(x).mean().item()).mean()\n{LOOP}"
    caught = body + "try:\n    torch.ones(2).sum().backward()\nexcept RuntimeError:\n    pass\n"
    assert [each.text[:20] for each in sentences(tmp_path, caught)] == ["no gradient ever rea"]


def test_an_evaluation_after_the_training_does_not_count(tmp_path: Path) -> None:
    body = f"{TWO}{HEAD_ONLY}def f(x):\n    return (head(x) * enc(x).mean().item()).square().mean()  #!\n{LOOP}"
    (found,) = sentences(tmp_path, f"{body}f(torch.randn(8, 4))\n")
    assert "`enc(x).mean().item()` is a plain number" in found.text
    assert found.labels[0].span.line == marked(body)


FORGOTTEN = """\
one, two = nn.Linear(4, 1), nn.Linear(4, 1)
opt = torch.optim.SGD([*one.parameters(), *two.parameters()], lr=0.1)
shown, total = [], 0.0
for _ in range(3):
    x = torch.randn(8, 4)
    first, second = one(x).square().mean(), two(x).square().mean()
    opt.zero_grad()
    first.backward()
    opt.step()
    LOOK
print(total, shown)
"""


@pytest.mark.parametrize(
    "look",
    ["print(second.item())", "print(f'{second.item():.2f}')", "total += second.item()", "shown.append(second.item())"],
)
def test_a_number_that_is_only_shown_is_not_where_a_path_ends(tmp_path: Path, look: str) -> None:
    found = [each for each in report_of(tmp_path, FORGOTTEN.replace("LOOK", look)).diagnostics if "two" in each.title]
    assert found
    assert not any("plain number" in each.title for each in found)


def test_a_number_that_a_loss_is_made_of_is_where_a_path_ends(tmp_path: Path) -> None:
    body = FORGOTTEN.replace("first.backward()", "(first * second.item()).backward()").replace("LOOK", "pass")
    found = [each for each in report_of(tmp_path, body).diagnostics if "two" in each.title]
    assert any("`second.item()` is a plain number" in each.title for each in found)


FORCES = """\
from torch.func import functional_call, grad, vmap
net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
weights = {k: v.detach().clone().requires_grad_() for k, v in net.named_parameters()}
opt = torch.optim.SGD(weights.values(), lr=0.1)
for _ in range(3):
    x = torch.randn(16, 2)
    force = vmap(grad(lambda p: -functional_call(net, weights, (p,)).squeeze()))(x)
    loss = (force - x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def test_the_constant_of_an_energy_under_vmap_is_left_alone(tmp_path: Path) -> None:
    assert [each.title for each in report_of(tmp_path, FORCES).diagnostics] == []


def test_weights_whose_forces_no_loss_uses_are_named(tmp_path: Path) -> None:
    unused = FORCES.replace("(force - x).square().mean()", "(extra * x).square().mean()").replace(
        "opt =", "extra = nn.Parameter(torch.ones(2))\nopt =").replace(
        "weights.values()", "[extra, *weights.values()]")  # fmt: skip
    titles = [each.title for each in report_of(tmp_path, unused).diagnostics]
    assert any("no gradient ever reached" in each for each in titles)


def test_the_constant_of_an_energy_is_left_alone(tmp_path: Path) -> None:
    body = """
        net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            x = torch.randn(8, 2, requires_grad=True)
            (slope,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
            loss = (slope - x.detach()).square().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """
    report = report_of(tmp_path, body)
    assert report.standing_out == ()
    assert [each.code for each in report.diagnostics] == []


AT_THE_END = """\
import copy
enc, head = nn.Linear(4, 4), nn.Linear(4, 1)
net = nn.ModuleList([enc, head])
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    opt.zero_grad()
    loss = head(enc(torch.randn(8, 4)).detach()).square().mean()  #!
    loss.backward()
    opt.step()
    best = copy.deepcopy(net.state_dict())
"""


def test_values_that_are_loaded_after_the_training_hide_no_path(tmp_path: Path) -> None:
    report = report_of(tmp_path, AT_THE_END + "net.load_state_dict(best)\n")
    assert [each.code for each in report.diagnostics] == ["branch-detached"]


def test_values_that_are_loaded_while_it_trains_hide_the_path(tmp_path: Path) -> None:
    report = report_of(tmp_path, AT_THE_END + "    net.load_state_dict(best)\n")
    assert report.diagnostics == ()
    assert [each.text for each in report.standing_out or () if "no gradient ever reached" in each.text] == []
