"""Checks what `--training` says about modules that steps train in eval mode, and about statistics of frozen layers."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from support.script_under_training import said

from tensorlens.records.source import line_at

START = """
import copy, torch
from torch import nn
from torch.nn import functional as F
torch.manual_seed(0)
x, y = torch.randn(32, 4), torch.randn(32, 1)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU())
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(8, 1)
    def forward(self, x):
        return self.head(self.drop(self.body(x)))

def epoch(net, opt, steps=3):
    for _ in range(steps):
        opt.zero_grad()
        F.mse_loss(net(x), y).backward()
        opt.step()

def evaluate(net):
    with torch.no_grad():
        return F.mse_loss(net(x), y).item()
"""
BEGIN = "net = Net(); opt = torch.optim.Adam(net.parameters(), lr=0.01)\n"

LEFT_IN_EVAL = {
    "evaluated before the first step": (
        "is in eval mode at each of 6 steps of `Adam`, and in training mode at none: it was evaluated before",
        """
        net.eval()  # here
        evaluate(net)
        epoch(net, opt)
        epoch(net, opt)
        """,
    ),
    "evaluation that never switches back": (
        "run in eval mode for 6 of 9 steps of `Adam`, first for step 4, and in training mode for the others",
        """
        for _ in range(3):
            epoch(net, opt)
            net.eval()  # here
            evaluate(net)
        """,
    ),
    "a function that tests": (
        "run in eval mode for 3 of 6 steps of `Adam`, first for step 4",
        """
        def test(model):
            model.train(False)  # here
            return evaluate(model)
        net.train()
        epoch(net, opt)
        test(net)
        epoch(net, opt)
        """,
    ),
    "evaluation in the middle of an epoch": (
        "run in eval mode for 4 of 12 steps of `Adam`, first for step 3",
        """
        for _ in range(2):
            net.train()
            epoch(net, opt, 2)
            net.eval()  # here
            evaluate(net)
            epoch(net, opt, 2)
            net.train()
            epoch(net, opt, 2)
        """,
    ),
    "a part of the model": (
        "`BatchNorm1d` of `Sequential` runs in eval mode for 3 of 6 steps of `Adam`",
        """
        epoch(net, opt)
        for part in net.children():
            part.eval() if part is net.body else None  # here
        evaluate(net)
        epoch(net, opt)
        """,
    ),
    "a wrapper with one of two optimizers": (
        "run in eval mode for 2 of 5 steps of `SGD`, and in training mode before",
        """
        head = nn.Linear(1, 1)
        other, model = torch.optim.SGD(net.parameters(), lr=0.01), nn.Sequential(net, head)
        epoch(model, other, 3)
        model.eval()  # here
        evaluate(model)
        last = torch.optim.Adam(head.parameters())
        epoch(model, last, 1)
        epoch(model, other, 2)
        """,
    ),
}
USUAL_MODES = {
    "fine-tuning without dropout": """
        net.body[1] = nn.Identity()
        net.eval()
        evaluate(net)
        opt = torch.optim.SGD(net.parameters(), lr=0.01)
        epoch(net, opt, 6)
        """,
    "train() after each evaluation": """
        for _ in range(3):
            net.train()
            epoch(net, opt)
            net.eval()
            evaluate(net)
        """,
    "a function that restores the mode": """
        def test(model):
            was = model.training
            model.eval()
            try:
                return evaluate(model)
            finally:
                model.train(was)
        for _ in range(3):
            epoch(net, opt)
            test(net)
        """,
    "batch norm in eval mode from the start": """
        for _ in range(2):
            net.train()
            net.body[1].eval()
            epoch(net, opt)
            net.eval()
            evaluate(net)
        """,
    "batch norm is fixed after an epoch": """
        epoch(net, opt)
        evaluate(net)
        for part in net.modules():
            if isinstance(part, nn.BatchNorm1d):
                part.eval()
        evaluate(net)
        epoch(net, opt)
        """,
    "the body is fixed after an epoch": """
        epoch(net, opt)
        net.body.eval()
        epoch(net, opt)
        """,
    "a train() that fixes the body after an epoch": """
        class Tuned(Net):
            fixed = False
            def train(self, mode=True):
                super().train(mode)
                if self.fixed:
                    self.body.eval()
                return self
        net = Tuned(); opt = torch.optim.Adam(net.parameters())
        epoch(net, opt)
        net.fixed = True
        net.train()
        evaluate(net)
        epoch(net, opt)
        """,
    "a train() that leaves the body in eval mode": """
        class Tuned(Net):
            def train(self, mode=True):
                super().train(mode)
                self.body.eval()
                return self
        net = Tuned(); opt = torch.optim.Adam(net.parameters())
        for _ in range(2):
            net.train()
            epoch(net, opt)
            net.eval()
            evaluate(net)
        """,
    "dropout that samples": """
        for _ in range(2):
            net.train()
            epoch(net, opt)
            net.eval()
            net.drop.train()
            samples = [evaluate(net) for _ in range(3)]
            net.train()
        """,
    "a teacher that was trained before": """
        epoch(net, opt)
        net.eval()
        evaluate(net)
        student = Net(); opt = torch.optim.Adam(student.parameters())
        for _ in range(4):
            opt.zero_grad()
            F.mse_loss(student(x), net(x).detach()).backward()
            opt.step()
        """,
    "evaluation at the end": """
        epoch(net, opt, 6)
        net.eval()
        print(evaluate(net), F.mse_loss(net(x), y).item())
        """,
    "two modes in one step": """
        for _ in range(4):
            net.eval()
            target = net(x).detach()
            net.train()
            opt.zero_grad()
            F.mse_loss(net(x), target).backward()
            opt.step()
        """,
}
FROZEN = {
    "a loop over the parameters": """
        for p in net.body.parameters():
            p.requires_grad = False
        opt = torch.optim.SGD(net.head.parameters(), lr=0.01)
        epoch(net, opt)
        """,
    "requires_grad_ of a module, train() in each epoch": """
        net.body.requires_grad_(False)
        opt = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.01)
        for _ in range(2):
            net.train()
            epoch(net, opt, 2)
            net.eval()
            evaluate(net)
        """,
    "a backbone that was trained before": """
        epoch(net, opt)
        net.body.requires_grad_(False)
        head = nn.Linear(8, 1)
        opt = torch.optim.SGD(head.parameters(), lr=0.01)
        epoch(nn.Sequential(net.body, head), opt)
        """,
    "a teacher under no_grad": """
        teacher = copy.deepcopy(net).requires_grad_(False)
        for _ in range(3):
            with torch.no_grad():
                target = teacher(x)
            opt.zero_grad()
            F.mse_loss(net(x), target).backward()
            opt.step()
        """,
}
NOT_FROZEN = {
    "statistics that adapt to new data": """
        body, head = net.body, nn.Linear(8, 1)
        for p in body.parameters():
            p.requires_grad = False
        opt = torch.optim.SGD(head.parameters(), lr=0.01)
        body.train()
        epoch(nn.Sequential(body, head), opt, 6)
        """,
    "the backbone is in eval mode": """
        net.body.requires_grad_(False)
        opt = torch.optim.SGD(net.head.parameters(), lr=0.01)
        net.train()
        net.body.eval()
        epoch(net, opt)
        """,
    "only the affine parameters are frozen": """
        net.body[1].requires_grad_(False)
        opt = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.01)
        epoch(net, opt)
        """,
    "an averaged teacher": """
        teacher = copy.deepcopy(net).requires_grad_(False)
        for _ in range(3):
            with torch.no_grad():
                target = teacher(x)
            opt.zero_grad()
            F.mse_loss(net(x), target).backward()
            opt.step()
            with torch.no_grad():
                for a, b in zip(teacher.parameters(), net.parameters()):
                    a.lerp_(b, 0.1)
        """,
    "a teacher that loads": """
        teacher = copy.deepcopy(net).requires_grad_(False)
        for _ in range(3):
            with torch.no_grad():
                target = teacher(x)
            opt.zero_grad()
            F.mse_loss(net(x), target).backward()
            opt.step()
            teacher.load_state_dict(net.state_dict())
        """,
    "frozen for a while": """
        net.body.requires_grad_(False)
        epoch(net, opt)
        net.body.requires_grad_(True)
        epoch(net, opt)
        """,
    "a generator that is frozen in turn": """
        critic = nn.Sequential(nn.Linear(1, 1))
        other = torch.optim.SGD(critic.parameters(), lr=0.01)
        for _ in range(3):
            net.requires_grad_(False)
            for _ in range(3):
                other.zero_grad(); critic(net(x)).mean().backward(); other.step()
            net.requires_grad_(True)
            opt.zero_grad(); critic(net(x)).mean().backward(); opt.step()
        """,
    "no parameters of its own": """
        net.body[1] = nn.BatchNorm1d(8, affine=False)
        net.body.requires_grad_(False)
        opt = torch.optim.SGD(net.head.parameters(), lr=0.01)
        epoch(net, opt)
        """,
}


@pytest.fixture(autouse=True)
def shows_exceptions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORLENS_DEBUG", "1")


@pytest.mark.parametrize("kind", LEFT_IN_EVAL)
def test_steps_in_eval_mode_are_named(kind: str, tmp_path: Path) -> None:
    sentence, script = LEFT_IN_EVAL[kind]
    found, _ = said(tmp_path, START + BEGIN + textwrap.dedent(script), "eval mode")
    assert [sentence in each.text for each in found] == [True], [each.text for each in found]
    assert "# here" in line_at((tmp_path / "script.py").read_text(), found[0].labels[0].span.line)


@pytest.mark.parametrize("kind", USUAL_MODES)
def test_usual_modes_are_no_news(kind: str, tmp_path: Path) -> None:
    assert said(tmp_path, START + BEGIN + textwrap.dedent(USUAL_MODES[kind]), "eval mode", "statistics")[0] == []


@pytest.mark.parametrize("kind", FROZEN)
def test_statistics_of_a_frozen_layer_are_named(kind: str, tmp_path: Path) -> None:
    found, _ = said(tmp_path, START + BEGIN + textwrap.dedent(FROZEN[kind]), "statistics")
    assert [each.text.partition(" change for ")[0] for each in found] == [
        "the running statistics of a frozen `BatchNorm1d`"
    ]
    lines = [line_at((tmp_path / "script.py").read_text(), label.span.line) for label in found[0].labels]
    assert "requires_grad" in lines[1]


@pytest.mark.parametrize("kind", NOT_FROZEN)
def test_statistics_that_belong_to_training_are_no_news(kind: str, tmp_path: Path) -> None:
    assert said(tmp_path, START + BEGIN + textwrap.dedent(NOT_FROZEN[kind]), "statistics")[0] == []


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
def test_torchscript_still_compiles_the_layers(tmp_path: Path) -> None:
    script = """
    net = torch.jit.script(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.BatchNorm1d(4), nn.Linear(4, 1)))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    epoch(net, opt)
    net.eval()
    evaluate(net)
    net.train()
    epoch(net, opt)
    """
    assert said(tmp_path, START + textwrap.dedent(script), "eval mode", "statistics")[0] == []


READER = """
class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 1)
    def forward(self, x):
        return self.net(x * (torch.rand_like(x) > 0.3) if self.training else x)

@torch.no_grad()
def preview(net):
    net.eval()  # here
    return net(x).mean()

net = Masked()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
epoch(net, opt)
"""
READS = "`Masked`, which reads `self.training`, is in eval mode at"


def test_a_module_that_reads_its_mode_is_named(tmp_path: Path) -> None:
    found, _ = said(tmp_path, START + READER + "preview(net)\nepoch(net, opt)\n", READS)
    (each,) = found
    assert each.text == f"{READS} 3 steps of `SGD`, first at step 4, and was in training mode before"
    assert "# here" in line_at((tmp_path / "script.py").read_text(), found[0].labels[0].span.line)


def test_a_function_that_switches_the_mode_before_it_stops_recording_evaluates(tmp_path: Path) -> None:
    inner = READER.replace("@torch.no_grad()\n", "").replace(
        "    return net(x).mean()", "    with torch.no_grad():\n        return net(x).mean()"
    )
    found, _ = said(tmp_path, START + inner + "preview(net)\nepoch(net, opt)\n", READS)
    assert len(found) == 1


@pytest.mark.parametrize(
    "end",
    [
        "preview(net)\nnet.train()\nepoch(net, opt)\n",
        "preview(net)\n",
        "preview(copy.deepcopy(net))\nepoch(net, opt)\n",
        "net.eval()\nepoch(net, opt)\n",
    ],
)
def test_a_module_that_is_trained_in_its_mode_is_left_alone(end: str, tmp_path: Path) -> None:
    assert said(tmp_path, START + READER + end, READS)[0] == []


def test_a_module_that_reads_an_attribute_training_of_something_else_is_left_alone(tmp_path: Path) -> None:
    other = READER.replace("self.training", "Options.training") + "preview(net)\nepoch(net, opt)\n"
    assert said(tmp_path, START + "class Options:\n    training = True\n\n" + other, READS)[0] == []


NOISE = """
class Noise(nn.Module):
    def forward(self, x):
        return self.disturbed(x)
    def disturbed(self, x):
        return x + torch.randn_like(x) if self.training else x

net = nn.Sequential(nn.Sequential(Noise()), nn.Linear(4, 4), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
@torch.no_grad()
def preview(net):
    net.eval()  # here
    return net(x).mean()
epoch(net, opt)
"""
NOISE_READS = "which reads `self.training`"


def test_a_module_without_parameters_that_reads_its_mode_is_named(tmp_path: Path) -> None:
    (found,) = said(tmp_path, START + NOISE + "preview(net)\nepoch(net, opt)\n", NOISE_READS)[0]
    assert found.text.startswith(f"`Noise` of `Sequential`, {NOISE_READS}, is in eval mode at 3 steps of `SGD`")
    assert "# here" in line_at((tmp_path / "script.py").read_text(), found.labels[0].span.line)


@pytest.mark.parametrize(
    "end",
    [
        "preview(net)\nnet[2].train()\nepoch(net, torch.optim.SGD(net[2].parameters(), lr=0.1))\n",  # a probe
        "preview(net)\nhead = nn.Linear(1, 1)\nepoch(nn.Sequential(net, head), torch.optim.SGD(head.parameters()))\n",
        "preview(net[0])\nepoch(net, opt)\n",  # no noise in the last epoch
        "preview(net)\nnet.train()\nepoch(net, opt)\n",
    ],
)
def test_a_module_without_parameters_that_is_meant_to_be_in_eval_mode_is_left_alone(end: str, tmp_path: Path) -> None:
    assert said(tmp_path, START + NOISE + end, NOISE_READS)[0] == []
