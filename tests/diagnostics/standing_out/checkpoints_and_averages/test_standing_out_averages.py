"""Checks what `--training` says about averages of parameters that are the parameters' own memory."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from support.script_under_training import said

from tensorlens.records.source import line_at

START = """
import copy, torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(16, 4)
net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)

def train(after, steps=3):
    for _ in range(steps):
        opt.zero_grad()
        net(x).square().mean().backward()
        opt.step()
        after()
"""
ONE_MEMORY = {
    "a dict of an object": """
        class Ema:
            def __init__(self, model):
                self.shadow = {name: p.data for name, p in model.named_parameters()}
            @torch.no_grad()
            def update(self, model):
                for name, p in model.named_parameters():
                    self.shadow[name].mul_(0.9).add_(p.data, alpha=0.1)  # here
        ema = Ema(net)
        train(lambda: ema.update(net))
        """,
    "a list of an object": """
        class Ema:
            def __init__(self, model):
                self.model, self.shadow = model, [p.detach() for p in model.parameters()]
            def update(self):
                with torch.no_grad():
                    for s, p in zip(self.shadow, self.model.parameters()):
                        s.sub_(0.1 * (s - p))  # here
        ema = Ema(net)
        train(ema.update)
        """,
    "two lines by position": """
        class Mean:
            def __init__(self, model):
                self.kept = [p.detach() for p in model.parameters()]
            def update(self, model):
                with torch.no_grad():
                    for i, p in enumerate(model.parameters()):
                        self.kept[i] *= 0.9
                        self.kept[i] += 0.1 * p  # here
        mean = Mean(net)
        train(lambda: mean.update(net))
        """,
    "a kept state dict": """
        class Mean:
            def __init__(self, model):
                self.state = model.state_dict()
            def update(self, model):
                for key, value in model.state_dict().items():
                    self.state[key].copy_(0.9 * self.state[key] + 0.1 * value)  # here
        mean = Mean(net)
        train(lambda: mean.update(net))
        """,
    "lerp of an item": """
        class Mean:
            def __init__(self, model):
                self.params = dict((k, v.data) for k, v in model.named_parameters())
            def update(self, model):
                for k, v in model.named_parameters():
                    self.params[k].lerp_(v.data, 0.1)  # here
        mean = Mean(net)
        train(lambda: mean.update(net))
        """,
}
USUAL = {
    "clones": """
        class Ema:
            def __init__(self, model):
                self.shadow = {name: p.data.clone() for name, p in model.named_parameters()}
            @torch.no_grad()
            def update(self, model):
                for name, p in model.named_parameters():
                    self.shadow[name].mul_(0.9).add_(p.data, alpha=0.1)
        ema = Ema(net)
        train(lambda: ema.update(net))
        """,
    "a copied model": """
        average = copy.deepcopy(net)
        def update():
            with torch.no_grad():
                for a, p in zip(average.parameters(), net.parameters()):
                    a.mul_(0.9).add_(p, alpha=0.1)
        train(update)
        """,
    "weights that are clipped through an alias": """
        class Clip:
            def __init__(self, model):
                self.weights = [p.data for p in model.parameters()]
            def __call__(self):
                for i in range(len(self.weights)):
                    self.weights[i].clamp_(-1, 1)
        train(Clip(net))
        """,
    "weight decay by hand": """
        kept = {name: p.data for name, p in net.named_parameters()}
        def decay():
            for name in kept:
                kept[name].mul_(0.99)
        train(decay)
        """,
    "an item without an alias": """
        params = list(net.parameters())
        def decay():
            with torch.no_grad():
                for i in range(len(params)):
                    params[i].sub_(0.01 * params[i])
        train(decay)
        """,
    "weights pulled to their first values": """
        first = {name: p.detach().clone() for name, p in net.named_parameters()}
        def pull():
            with torch.no_grad():
                for name, p in net.named_parameters():
                    p.lerp_(first[name], 0.1)
        train(pull)
        """,
    "new tensors": """
        shadow = {name: p.data for name, p in net.named_parameters()}
        def update():
            for name, p in net.named_parameters():
                shadow[name] = 0.9 * shadow[name] + 0.1 * p.data
        train(update)
        """,
}


@pytest.fixture(autouse=True)
def shows_exceptions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORLENS_DEBUG", "1")


@pytest.mark.parametrize("kind", ONE_MEMORY)
def test_an_average_in_the_memory_of_parameters_is_named(kind: str, tmp_path: Path) -> None:
    found, _ = said(tmp_path, START + textwrap.dedent(ONE_MEMORY[kind]), "share their memory")
    assert len(found) == 1
    assert "# here" in line_at((tmp_path / "script.py").read_text(), found[0].labels[0].span.line)


@pytest.mark.parametrize("kind", USUAL)
def test_usual_averages_are_no_news(kind: str, tmp_path: Path) -> None:
    assert said(tmp_path, START + textwrap.dedent(USUAL[kind]), "share their memory", "shares memory")[0] == []


def test_slow_weights_that_data_is_set_to_are_named(tmp_path: Path) -> None:
    """The first comparison is one of two tensors, all later ones are with itself."""
    body = """
        slow = [p.detach().clone() for p in net.parameters()]
        def interpolate():
            for p, s in zip(net.parameters(), slow):
                d = p.data - s  # here
                s.add_(d, alpha=0.5)
                p.data = s
        train(interpolate, steps=4)
        """
    (found,), _ = said(tmp_path, START + textwrap.dedent(body), "compares a tensor with itself")
    often = "in each of the last 12 times that it runs"
    assert found.text == f"`p.data - s` compares a tensor with itself {often}: `p` and `s` share their memory"
    text = (tmp_path / "script.py").read_text()
    assert ["# here" in line_at(text, label.span.line) for label in found.labels] == [True, False]
    assert line_at(text, found.labels[1].span.line).strip() == "p.data = s"
