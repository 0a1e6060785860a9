"""Checks what `--training` says about statistics of a frozen trunk while the head of one of two tasks is trained."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from support.script_under_training import said

from tensorlens.records.source import line_at

START = """
import torch
from torch import nn
from torch.nn import functional as F
torch.manual_seed(0)
x, y = torch.randn(32, 4), torch.randn(32, 1)

class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU())
        self.heads = nn.ModuleDict()
        self.add_head("a")
    def add_head(self, name):
        self.heads[name] = nn.Linear(8, 1)
    def forward(self, x, name):
        return self.heads[name](self.trunk(x))

def fit(model, name, parameters):
    opt = torch.optim.SGD(parameters, lr=0.01)
    model.train()
    for _ in range(4):
        opt.zero_grad()
        F.mse_loss(model(x, name), y).backward()
        opt.step()

@torch.no_grad()
def error(model, name):
    model.eval()
    return F.mse_loss(model(x, name), y).item()

def freeze(model):
    for p in model.parameters():
        p.requires_grad_(False)

model = TwoHeads()
fit(model, "a", model.parameters())
error(model, "a")
freeze(model)
"""
ANOTHER_TASK = {
    "a second head": """
        model.add_head("b")
        trainable = [p for p in model.parameters() if p.requires_grad]
        fit(model, "b", trainable)
        print(error(model, "a"), error(model, "b"))
        """,
    "both heads are evaluated during the training of the second": """
        model.add_head("b")
        trainable = [p for p in model.parameters() if p.requires_grad]
        for _ in range(3):
            fit(model, "b", trainable)
            print([error(model, name) for name in "ab"])
        fit(model, "b", trainable)
        """,
}
ONE_TASK = {
    "the statistics adapt to the only task": """
        model.add_head("b")
        fit(model, "b", [p for p in model.parameters() if p.requires_grad])
        print(error(model, "b"))
        """,
    "a method replaces the head": """
        model.add_head("a")
        fit(model, "a", [p for p in model.parameters() if p.requires_grad])
        print(error(model, "a"))
        """,
    "the trunk runs without a graph": """
        def forward(self, x, name):
            with torch.no_grad():
                features = self.trunk(x)
            return self.heads[name](features)
        TwoHeads.forward = forward
        model.add_head("b")
        fit(model, "b", [p for p in model.parameters() if p.requires_grad])
        print(error(model, "b"))
        """,
    "the statistics adapt while a head outside is trained": """
        head = nn.Linear(8, 1)
        opt = torch.optim.SGD(head.parameters(), lr=0.01)
        model.train()
        for _ in range(4):
            opt.zero_grad()
            F.mse_loss(head(model.trunk(x)), y).backward()
            opt.step()
        print(error(model, "a"))
        """,
    "AdaBN": """
        with torch.no_grad():
            model.train()
            for _ in range(4):
                model(x, "a")
        print(error(model, "a"))
        """,
    "the trunk stays in eval mode": """
        model.add_head("b")
        def train(self, mode=True):
            nn.Module.train(self, mode)
            self.trunk.eval()
            return self
        TwoHeads.train = train
        fit(model, "b", [p for p in model.parameters() if p.requires_grad])
        print(error(model, "a"), error(model, "b"))
        """,
}


@pytest.fixture(autouse=True)
def shows_exceptions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORLENS_DEBUG", "1")


@pytest.mark.parametrize("kind", ANOTHER_TASK)
def test_statistics_that_the_head_of_another_task_needs_are_named(kind: str, tmp_path: Path) -> None:
    found, _ = said(tmp_path, START + textwrap.dedent(ANOTHER_TASK[kind]), "statistics")
    assert [each.text.partition(" change for ")[0] for each in found] == [
        "the running statistics of a frozen `BatchNorm1d`"
    ]
    lines = [line_at((tmp_path / "script.py").read_text(), label.span.line) for label in found[0].labels]
    assert "requires_grad" in lines[1]
    assert "model.train()" in lines[2]


@pytest.mark.parametrize("kind", ONE_TASK)
def test_statistics_that_only_the_trained_task_uses_are_no_news(kind: str, tmp_path: Path) -> None:
    assert said(tmp_path, START + textwrap.dedent(ONE_TASK[kind]), "statistics")[0] == []
