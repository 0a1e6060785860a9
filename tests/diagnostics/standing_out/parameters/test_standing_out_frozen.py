"""Checks the sentences about frozen parameters that move, about parameters of no optimizer, and the table's words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.standing_out import marked, report_of, sentences

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import measured_training
from tensorlens.render import render
from tensorlens.render.report.training_section import training_cells

TWO = "body, head = nn.Linear(4, 4), nn.Linear(4, 1)\nf = lambda x: head(body(x)).square().mean()\n"
LOOP = """
for step in range(4):
    opt.zero_grad()
    f(torch.randn(8, 4)).backward()
    opt.step()
"""
SGD = "opt = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1, momentum=0.9, weight_decay=0.1)\n"
HEAD_ONLY = "opt = torch.optim.SGD(head.parameters(), lr=0.1)\n"
LATER = """
for step in range(4):
    opt.zero_grad()
    if step == 2:
        {}  #!
    f(torch.randn(8, 4)).backward()
    {}
    opt.step()
"""
BODY = "body = nn.Linear(4, 1)\nopt = torch.optim.SGD(body.parameters(), lr=0.1)\n"
STILL = "frozen, and steps of `SGD` still change"

FROZEN = {
    "a gradient set by hand": (
        TWO + SGD + LATER.format("body.weight.requires_grad_(False)", "body.weight.grad = torch.zeros(4, 4)"),
        f"`body.weight` is {STILL} it",
    ),
    "gradients of zeros": (
        TWO + SGD + LATER.format("body.requires_grad_(False)",
                                 "[setattr(p, 'grad', torch.zeros_like(p)) for p in body.parameters()]"),
        f"`body.weight` and `body.bias` are {STILL} them",
    ),
    "an optimizer that moves everything": (
        TWO + "class Pull(torch.optim.SGD):\n    @torch.no_grad()\n    def step(self, closure=None):\n"
        "        for p in self.param_groups[0]['params']:\n            p.mul_(0.9)\n"
        + SGD.replace("torch.optim.SGD", "Pull") + LATER.format("body.bias.requires_grad = False", "pass"),
        "`body.bias` is frozen, and steps of `Pull` still change it",
    ),
    "frozen in a function": (
        TWO + SGD + "def freeze(p):\n    p.requires_grad = False  #!\n    p.grad = torch.zeros(4)\n"
        "for step in range(4):\n    f(torch.randn(8, 4)).backward()\n    if step == 2:\n        freeze(body.bias)\n"
        "    opt.step()\n    head.zero_grad()\n",
        f"`body.bias` is {STILL} it",
    ),
}  # fmt: skip
MOVED = {
    "written with numpy": (
        TWO + "slow = nn.Linear(4, 4)\nopt = torch.optim.SGD([*slow.parameters(), *head.parameters()], lr=0.1)  #!\n"
        "array = slow.weight.detach().numpy()\n" + LOOP + "    array *= 0.9\n",
        "`slow.weight` had no gradient at any step, and is moved in a way that is not recorded",
    ),
    "an optimizer without gradients": (
        TWO + "class Pull(torch.optim.SGD):\n    @torch.no_grad()\n    def step(self, closure=None):\n"
        "        for p in self.param_groups[0]['params']:\n            p.mul_(0.9)\n"
        "slow = nn.Linear(4, 4)\nopt = Pull([*slow.parameters(), *head.parameters()], lr=0.1)  #!\n" + LOOP,
        "`slow.weight` and `slow.bias` had no gradient at any step, and are moved by `Pull` itself",
    ),
}
LEFT_OUT = {
    "a layer made later": (
        "body = nn.Linear(4, 4)\nopt = torch.optim.SGD(body.parameters(), lr=0.1)\nhead = nn.Linear(4, 1)  #!\n"
        "f = lambda x: head(body(x)).square().mean()\n" + LOOP,
        "`head.weight` and `head.bias` are in no optimizer, but get gradients: they are made after the optimizer",
    ),
    "a parameter made later": (
        "body = nn.Linear(4, 1)\nopt = torch.optim.SGD(body.parameters(), lr=0.1)\n"
        "scale = nn.Parameter(torch.ones(1))  #!\nf = lambda x: (body(x) * scale).square().mean()\n" + LOOP,
        "`scale` is in no optimizer, but gets gradients: it is made after the optimizer",
    ),
    "a layer left out": (
        "body = nn.Linear(4, 4)\nhead = nn.Linear(4, 1)  #!\nopt = torch.optim.SGD(body.parameters(), lr=0.1)\n"
        "f = lambda x: head(body(x)).square().mean()\n" + LOOP,
        "`head.weight` and `head.bias` are in no optimizer, but get gradients",
    ),
    "a layer that joins after the first step": (
        BODY + "head = nn.Linear(4, 1)  #!\n"
        "for step in range(4):\n    x = torch.randn(8, 4)\n    y = body(x) + head(x) if step else body(x)\n"
        "    opt.zero_grad()\n    y.square().mean().backward()\n    opt.step()\n",
        "`head.weight` and `head.bias` are in no optimizer, but get gradients",
    ),
    "a plain tensor": (
        "body = nn.Linear(4, 4)\nshift = torch.zeros(4, requires_grad=True)  #!\n"
        "opt = torch.optim.SGD(body.parameters(), lr=0.1)\nf = lambda x: (body(x) + shift).square().mean()\n" + LOOP,
        "`shift` is in no optimizer, but gets gradients",
    ),
}
WRONG = FROZEN | MOVED | LEFT_OUT
RIGHT = {
    "frozen": TWO + "body.requires_grad_(False)\n" + SGD + LOOP,
    "gradients by hand alone": TWO + "body.requires_grad_(False)\nhead.requires_grad_(False)\n" + SGD
    + "for step in range(4):\n    for p in [*body.parameters(), *head.parameters()]:\n"
    "        p.grad = torch.randn_like(p)\n    opt.step()\n",
    "frozen later": TWO + SGD + LATER.format("body.requires_grad_(False)", "pass"),
    "frozen for a while": TWO + SGD + LATER.format("body.requires_grad_(False)", "body.requires_grad_(step != 2)"),
    "a frozen copy": TWO + "import copy\nslow = copy.deepcopy(body).requires_grad_(False)\n" + SGD + LOOP
    + "    for s, b in zip(slow.parameters(), body.parameters()):\n        s.mul_(0.9).add_(b.detach(), alpha=0.1)\n",
    "frozen and written to": TWO + "body.requires_grad_(False)\n" + HEAD_ONLY + LOOP + "    body.weight.mul_(0.9)\n",
    "added to the optimizer": TWO + HEAD_ONLY + "opt.add_param_group({'params': body.parameters()})\n" + LOOP,
    "updated by hand": TWO + HEAD_ONLY + LOOP
    + "    with torch.no_grad():\n        for p in body.parameters():\n            p -= 0.1 * p.grad\n"
    "            p.grad = None\n",
    "inputs of a penalty": "model = nn.Linear(4, 1)\nopt = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    "def f(x):\n    x.requires_grad_()\n    y = model(x).tanh()\n"
    "    return torch.autograd.grad(y.sum(), x, create_graph=True)[0].square().mean() + y.mean()\n" + LOOP,
    "points of an equation": "model = nn.Linear(1, 1)\nopt = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    "points = torch.rand(8, 1, requires_grad=True)\ndef f(x):\n    y = model(points).tanh()\n"
    "    return torch.autograd.grad(y.sum(), points, create_graph=True)[0].square().mean() + y.mean()\n" + LOOP,
    "an offset that is set at the end": "a, b = nn.Linear(1, 4), nn.Linear(4, 1)\n"
    "opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)\ndef f(x):\n"
    "    points = torch.rand(8, 1, requires_grad=True)\n    y = b(a(points).tanh())\n"
    "    return (torch.autograd.grad(y.sum(), points, create_graph=True)[0] - 1).square().mean()\n" + LOOP
    + "with torch.no_grad():\n    b.bias.add_(1 - b(a(torch.zeros(1, 1)).tanh()).mean())\n",
    "an encoder that is the average of another one": TWO + "import copy\nslow = copy.deepcopy(body)\n"
    "slow.requires_grad_(False)\nopt = torch.optim.SGD([*slow.parameters(), *body.parameters(), *head.parameters()],"
    " lr=0.1)\n" + LOOP + "    with torch.no_grad():\n        for s, b in zip(slow.parameters(), body.parameters()):\n"
    "            s.data = s.data * 0.9 + b.data * 0.1\n",
    "a copy that is loaded again and again": TWO + "import copy\nslow = copy.deepcopy(body)\n"
    "opt = torch.optim.SGD([*slow.parameters(), *body.parameters(), *head.parameters()], lr=0.1)\n"
    "def f(x):\n    with torch.no_grad():\n        aim = slow(x)\n"
    "    return (head(body(x)) - aim.mean()).square().mean()\n" + LOOP
    + "    slow.load_state_dict(body.state_dict())\n",
    "a bias that balances the load": TWO + "bias = nn.Parameter(torch.zeros(4))\n"
    "opt = torch.optim.SGD([bias, *body.parameters(), *head.parameters()], lr=0.1)\n"
    "def f(x):\n    global top\n    z = body(x)\n    top = (z + bias).argmax(1)\n"
    "    return head(z * nn.functional.one_hot(top, 4)).square().mean()\n" + LOOP
    + "    with torch.no_grad():\n        bias.add_((2.0 - torch.bincount(top, minlength=4)).sign(), alpha=1e-3)\n",
    "gradients of the data": TWO + SGD + "x = torch.rand(8, 4, requires_grad=True)\nfor step in range(3):\n"
    "    opt.zero_grad()\n    f(x).backward()\n    opt.step()\n    print(x.grad.abs().mean().item())\n",
    "the Fisher information of a copy": "import copy\n" + BODY + "f = lambda x: body(x).square().mean()\n" + LOOP
    + "old = copy.deepcopy(body)\nfisher = [torch.zeros_like(p) for p in old.parameters()]\nfor _ in range(3):\n"
    "    old.zero_grad()\n    old(torch.randn(1, 4)).square().mean().backward()\n"
    "    for each, p in zip(fisher, old.parameters()):\n        each += p.grad ** 2\n" + LOOP,
    "gradients of clients": "import copy\n" + BODY + "for _ in range(3):\n    grads = []\n    for _ in range(2):\n"
    "        client = copy.deepcopy(body)\n        client(torch.randn(8, 4)).square().mean().backward()\n"
    "        grads.append([p.grad for p in client.parameters()])\n"
    "    means = [torch.stack(each).mean(0) for each in zip(*grads)]\n"
    "    for p, g in zip(body.parameters(), means):\n        p.grad = g\n    opt.step()\n",
    "a saliency before training": "a = nn.Linear(4, 1)\nx = torch.randn(8, 4, requires_grad=True)\n"
    "a(x).sum().backward()\nkept = x.grad.abs()\n" + BODY + "f = lambda x: body(x * kept).square().mean()\n" + LOOP,
    "an adversarial patch": "model = nn.Linear(4, 1)\ndelta = torch.zeros(4, requires_grad=True)\n"
    "opt = torch.optim.Adam([delta])\nf = lambda x: -model(x + delta).square().mean()\n" + LOOP,
    "a layer trained afterwards": "a, b = nn.Linear(4, 1), nn.Linear(4, 1)\n"
    "opt = torch.optim.SGD(a.parameters(), lr=0.1)\nf = lambda x: a(x).square().mean()\n" + LOOP
    + "b(torch.randn(8, 4)).square().mean().backward()\nprint(b.weight.grad)\n",
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_the_parameter_and_its_line_are_named(tmp_path: Path, name: str) -> None:
    body, text = WRONG[name]
    found = [each for each in sentences(tmp_path, body) if text in each.text]
    assert len(found) == 1
    assert found[0].labels[0].span.line == marked(body)


@pytest.mark.parametrize("name", RIGHT)
def test_nothing_is_said_of_a_usual_training(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name])] == []


def test_the_table_says_what_froze_a_parameter(tmp_path: Path) -> None:
    report = report_of(
        tmp_path, TWO + "body.weight.requires_grad_(False)\nbody.bias.requires_grad = False\n" + SGD + LOOP
    )
    training = measured_training(TraceIndex(report.trace))
    assert training is not None
    cells = {row[0]: row[5] for row in training_cells(training, False)}
    assert cells == {"body": "frozen, line 6\nSGD, line 8\nfrozen, line 7", "head": "SGD, line 8"}
    by_name = {each["name"]: each for each in json.loads(render(report, "json"))["training"]["parameters"]}
    assert by_name["body.weight"]["frozen_at"]["line"] == 6
    assert by_name["head.weight"]["frozen_at"] is None


def test_what_a_finding_says_of_a_frozen_parameter_is_not_said_again(tmp_path: Path) -> None:
    body = LATER.format("body.requires_grad_(False)", "pass").replace("opt.zero_grad()", "head.zero_grad()")
    report = report_of(tmp_path, TWO + SGD + body)
    assert "frozen-parameter-still-updated" in {each.code for each in report.diagnostics}
    assert [each.text for each in report.standing_out or () if STILL in each.text] == []


JUDGED = (
    TWO
    + """
opt, second = torch.optim.Adam(body.parameters(), lr=0.01), torch.optim.Adam(head.parameters(), lr=0.01)
for step in range(4):
    made = body(torch.randn(8, 4))
    opt.zero_grad()
    second.zero_grad()
    head.requires_grad_(True)
    (head(made.detach()) - head(torch.randn(8, 4))).mean().backward()
    BETWEEN
    head.requires_grad_(False)
    (-head(made)).mean().backward()
    opt.step()
    second.step()
"""
)


def test_a_judge_that_is_frozen_for_the_other_loss_may_move(tmp_path: Path) -> None:
    """Its step uses the gradient that its own loss has made in the same round."""
    clipped = "nn.utils.clip_grad_norm_(head.parameters(), 1.0)"
    report = report_of(tmp_path, JUDGED.replace("BETWEEN", clipped))
    assert [each.code for each in report.diagnostics] == []
    assert [each.text for each in report.standing_out or () if "frozen" in each.text] == []


def test_a_judge_that_is_stepped_again_while_frozen_is_named(tmp_path: Path) -> None:
    report = report_of(tmp_path, JUDGED.replace("BETWEEN", "second.step()"))
    assert [each.code for each in report.diagnostics] == ["frozen-parameter-still-updated"]
