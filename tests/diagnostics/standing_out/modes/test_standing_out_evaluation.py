"""Checks the sentences about batch norm with initial statistics, and about models that are never evaluated."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NET = """\
import copy
x, y = torch.randn(32, 4) + 3, torch.randn(32, 1)
class Net(nn.Module):
    def __init__(self, p=0.5):
        super().__init__()
        self.a, self.norm, self.drop, self.b = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(p), nn.Linear(8, 1)
    def forward(self, x):
        x = self.norm(self.a(x))
        return self.b(self.drop(x))
class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.drop, self.b = nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1)
    def forward(self, x):
        x = torch.relu(self.a(x))
        return self.b(self.drop(x))
def step(model, opt):
    opt.zero_grad()
    (model(x) - y).square().mean().backward()
    opt.step()
model = Net()
opt = torch.optim.SGD(model.parameters(), lr=0.01)
"""
HERE = "x = self.norm(self.a(x))"
EMA = """\
average = copy.deepcopy(model).eval()
@torch.no_grad()
def update():
    for a, b in zip(average.parameters(), model.parameters()):
        a.lerp_(b, 0.1)
for _ in range(4):
    model.train()
    step(model, opt)
    update()
model.eval()
"""
SCORE = "with torch.no_grad():\n    average(x)\n    model(x)\n"
INITIAL = {
    "an average without buffers": (
        NET + EMA + SCORE,
        "eval mode with running means of 0 and variances of 1, their initial values, although lines write its weights",
    ),
    "in a function": (
        NET + "def train():\n    model = Net()\n    opt = torch.optim.SGD(model.parameters(), lr=0.01)\n"
        + textwrap.indent(EMA + SCORE, "    ") + "train()\n",
        "a `BatchNorm1d` runs in eval mode",
    ),
}  # fmt: skip
KEPT = {
    "never evaluated": (
        NET + "for _ in range(4):\n    step(model, opt)\nwith torch.no_grad():\n    model(x[:16])\n",
        "`BatchNorm1d` and `Dropout` run in training mode once where gradients are off, after 4 steps: no line calls",
    ),
    "never evaluated, after each step": (
        NET + "model = Plain()\nopt = torch.optim.SGD(model.parameters(), lr=0.01)\nfor i in range(4):\n"
        "    step(model, opt)\n    with torch.no_grad():\n        model(x)\n",
        "`Dropout` runs in training mode 4 times where gradients are off, after 4 steps",
    ),
    "train() for each epoch": (
        NET + "for i in range(3):\n    model.train()\n    step(model, opt)\n"
        "    with torch.no_grad():\n        model(x)\n",
        "`BatchNorm1d` and `Dropout` run in training mode 3 times where gradients are off, after 3 steps: no line",
    ),
    "a teacher that is never evaluated": (
        NET + "teacher = Plain()\nfor i in range(4):\n    model.train()\n    with torch.no_grad():\n"
        "        y = teacher(x)\n    step(model, opt)\n    model.eval()\n",
        "`Dropout` of a module that no step trains runs in training mode 3 times where gradients are off",
    ),
    "a layer that eval() does not reach": (
        NET + "model.eval()\nmodel = Plain()\ndrop = model.drop\ndel model.drop\nmodel.__dict__['drop'] = drop\n"
        "opt = torch.optim.SGD(model.parameters(), lr=0.01)\nfor _ in range(3):\n    model.train()\n"
        "    step(model, opt)\n    model.eval()\n    with torch.no_grad():\n        model(x)\n",
        "no line calls `eval()` of a module that has it",
    ),
}  # fmt: skip
RIGHT = {
    "eval mode from the start": NET + "model.eval()\nfor _ in range(4):\n    step(model, opt)\n",
    "an average with buffers": NET + EMA + "average.load_state_dict(model.state_dict())\n" + SCORE,
    "statistics computed for the average": NET + EMA
    + "average.train()\nwith torch.no_grad():\n    average(x)\naverage.eval()\n" + SCORE,
    "statistics computed by hand at the end": NET
    + "model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))\n"
    "opt = torch.optim.SGD(model.parameters(), lr=0.01)\nfor _ in range(4):\n    step(model, opt)\n"
    "with torch.no_grad():\n    for part in x.split(16):\n        model(part)\n",
    "an evaluation before the training": NET + "model.eval()\nwith torch.no_grad():\n    model(x)\nmodel.train()\n"
    "for _ in range(4):\n    step(model, opt)\nmodel.eval()\nwith torch.no_grad():\n    model(x)\n",
    "a model that is not trained": NET + "for part in model.modules():\n    if isinstance(part, nn.Linear):\n"
    "        nn.init.zeros_(part.bias)\nmodel.eval()\nmodel(x)\nmodel.train()\n"
    "for _ in range(3):\n    step(model, opt)\n",
    "Monte-Carlo dropout": NET + "model = Plain()\nopt = torch.optim.SGD(model.parameters(), lr=0.01)\n"
    "for _ in range(4):\n    step(model, opt)\nwith torch.no_grad():\n"
    "    torch.stack([model(x) for _ in range(5)]).std(0)\n",
    "train() says that it is meant": NET + "for _ in range(4):\n    step(model, opt)\nmodel.train()\n"
    "with torch.no_grad():\n    model(x)\n",
    "statistics of batch norm that are computed again": NET
    + "for _ in range(3):\n    model.train()\n    step(model, opt)\n    model.eval()\n"
    "model.drop.p = 0\nmodel.train()\nwith torch.no_grad():\n    model(x)\nmodel.eval()\nmodel(x)\n",
    "a teacher that is an average": NET + "teacher = Plain()\nstudent = Plain()\n"
    "opt = torch.optim.SGD(student.parameters(), lr=0.01)\nfor i in range(4):\n    with torch.no_grad():\n"
    "        y = teacher(x)\n    step(student, opt)\n    for a, b in zip(teacher.parameters(), student.parameters()):\n"
    "        a.data.lerp_(b.data, 0.1)\n",
    "Monte-Carlo dropout in batches": NET + "model = Plain()\nopt = torch.optim.SGD(model.parameters(), lr=0.01)\n"
    "for i in range(4):\n    model.train()\n    step(model, opt)\n    model.eval()\nmodel.drop.train()\n"
    "with torch.no_grad():\n    for i in range(3):\n        for part in x.split(16):\n            model(part)\n",
    "data for another model": NET + "other = nn.Linear(1, 1)\nmore = torch.optim.SGD(other.parameters(), lr=0.01)\n"
    "for i in range(4):\n    step(model, opt)\n    with torch.no_grad():\n        made = model(x)\n"
    "    more.zero_grad()\n    (other(made) - y).square().mean().backward()\n    more.step()\n",
    "a teacher in eval mode": NET + "teacher = Plain().eval()\nfor i in range(4):\n    with torch.no_grad():\n"
    "        y = teacher(x)\n    step(model, opt)\nmodel.eval()\n",
    "evaluated": NET + "for _ in range(4):\n    step(model, opt)\nmodel.eval()\nwith torch.no_grad():\n    model(x)\n",
    "a look before the training": NET
    + "with torch.no_grad():\n    model(x)\nfor _ in range(4):\n    step(model, opt)\n",
}  # fmt: skip
BACK = (
    NET
    + """\
def predict():
    model.train()  #!
    return model(x)
for _ in range(3):
    model.train()
    step(model, opt)
    model.eval()
    with torch.no_grad():
        predict()
"""
)
TEACHER = (
    NET
    + """\
teacher, student = Plain(), Plain()
opt = torch.optim.SGD(teacher.parameters(), lr=0.01)
for _ in range(4):
    step(teacher, opt)
both = nn.ModuleList([teacher.eval(), student])
opt = torch.optim.SGD(student.parameters(), lr=0.01)
for _ in range(4):
    both.train()  #!
    with torch.no_grad():
        wanted = teacher(x)
    opt.zero_grad()
    (student(x) - wanted).square().mean().backward()
    opt.step()
"""
)
WORDS = ("their initial values", "calls `eval()`", "in this mode")


@pytest.mark.parametrize("name", [*INITIAL, *KEPT])
def test_layers_of_the_wrong_mode_are_named(tmp_path: Path, name: str) -> None:
    body, text = (INITIAL | KEPT)[name]
    first = "x = torch.relu(self.a(x))" if "Plain()" in body else HERE
    place = "return self.b(self.drop(x))" if "Plain()" in body else first
    own = body.split("class Plain")
    at = 1 if "Plain()" in own[1] else 0
    own[at] = own[at].replace(place, f"{place}  #!", 1)
    (found,) = (each for each in sentences(tmp_path, body) if any(word in each.text for word in WORDS))
    assert text in found.text
    assert found.labels[0].span.line == marked("class Plain".join(own))


def test_a_line_that_switches_a_model_back_before_it_is_evaluated_is_named(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, BACK) if "where gradients are off" in each.text)
    assert found.text.startswith("`Dropout` runs in training mode 3 times")
    assert found.text.endswith("another line puts it in this mode")
    assert found.labels[0].span.line == marked(BACK)


def test_a_layer_that_no_line_has_switched_is_not_among_those_that_one_has(tmp_path: Path) -> None:
    """Batch norm of another model runs in training mode, too, but no line has put it in this mode."""
    setup = "beside = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))\n"
    setup += "opt.add_param_group({'params': beside.parameters()})\n"
    rounds = "    step(beside, opt)\n    with torch.no_grad():\n        beside(x)\n"
    body = BACK.replace("for _ in range(3):\n", f"{setup}for _ in range(3):\n{rounds}")
    texts = [each.text for each in sentences(tmp_path, body) if "in training mode" in each.text]
    assert any(each.startswith("`Dropout` runs") and each.endswith("puts it in this mode") for each in texts), texts
    assert not any("BatchNorm1d" in each and "in this mode" in each for each in texts)


def test_a_line_that_switches_a_teacher_back_with_its_student_is_named(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, TEACHER) if "where gradients are off" in each.text)
    assert found.text.startswith("`Dropout` runs in training mode 4 times")
    assert found.labels[0].span.line == marked(TEACHER)
    kept = TEACHER.replace("    both.train()  #!\n", "    both.train()\n    teacher.eval()\n")
    assert [each.text for each in sentences(tmp_path, kept) if "where gradients are off" in each.text] == []


@pytest.mark.parametrize("name", RIGHT)
def test_usual_evaluations_are_left_alone(tmp_path: Path, name: str) -> None:
    found = sentences(tmp_path, RIGHT[name])
    assert [each.text for each in found if any(word in each.text for word in WORDS)] == []


@pytest.mark.parametrize(
    ("tools", "use"),
    [
        ("{'drop': nn.Dropout(0.5)}", "self.tools['drop'](self.a(x))"),
        ("(torch.relu, nn.Dropout(0.5))", "self.tools[1](self.tools[0](self.a(x)))"),
        ("lambda h, drop=nn.Dropout(0.5): drop(h)", "self.tools(self.a(x))"),
    ],
)
def test_the_line_that_evaluates_a_model_without_its_dropout_is_named(tmp_path: Path, tools: str, use: str) -> None:
    body = (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        self.a, self.tools = nn.Linear(4, 8), {tools}\n"
        f"    def forward(self, x):\n        return {use}\n"
        "net = Net()\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\nfor i in range(4):\n"
        "    net.train()\n    opt.zero_grad()\n    net(torch.randn(8, 4)).square().mean().backward()\n    opt.step()\n"
        "    net.eval()  #!\n    with torch.no_grad():\n        net(torch.randn(8, 4))\n"
    )
    (found,) = (each for each in sentences(tmp_path, body) if WORDS[1] in each.text)
    assert found.labels[-1].span.line == marked(body)
    listed = body.replace(f"nn.Linear(4, 8), {tools}", f"nn.Linear(4, 8), {tools}\n        self.all = self.tools[-1]")
    if tools.startswith("("):
        assert not [each for each in sentences(tmp_path, listed) if WORDS[1] in each.text]
