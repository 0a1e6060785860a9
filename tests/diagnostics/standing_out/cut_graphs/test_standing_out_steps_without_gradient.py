"""Checks what `--training` says about parameters that were trained before, and that later steps find no gradient of."""

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
x, y = torch.randn(16, 4), torch.randn(16, 1)
body, old, head = nn.Linear(4, 6), nn.Linear(6, 1), nn.Linear(6, 1)

def run(opt, loss, steps=4):
    for _ in range(steps):
        opt.zero_grad()
        loss().backward()
        opt.step()

run(torch.optim.SGD([*body.parameters(), *old.parameters()], lr=0.1), lambda: F.mse_loss(old(body(x)), y))
"""
BOTH = "opt = torch.optim.Adam([*body.parameters(), *head.parameters()])\n"
CUT = {
    "inference_mode": """
        @torch.inference_mode()
        def features(x):
            return body(x)  # here
        run(opt, lambda: F.mse_loss(head(features(x).clone()), y))
        """,
    "no_grad": """
        def loss():
            with torch.no_grad():
                h = body(x)  # here
            return F.mse_loss(head(h), y)
        run(opt, loss)
        """,
    "detach": """
        run(opt, lambda: F.mse_loss(head(body(x).detach()), y))  # here
        """,
    "whole numbers": """
        run(opt, lambda: F.mse_loss(head((body(x) > 0).float()), y))  # here
        """,
    "a draw": """
        run(opt, lambda: F.mse_loss(head(torch.distributions.Normal(body(x), 1.0).sample()), y))  # here
        """,
}
USUAL = {
    "the next phase trains them too": "run(opt, lambda: F.mse_loss(head(body(x)), y))\n",
    "they are frozen": """
        body.requires_grad_(False)
        run(opt, lambda: F.mse_loss(head(body(x).detach()), y))
        """,
    "the optimizer does not hold them": """
        opt = torch.optim.Adam(head.parameters())
        run(opt, lambda: F.mse_loss(head(body(x).detach()), y))
        """,
    "two of three phases use no head": """
        opt = torch.optim.Adam([*body.parameters(), *head.parameters(), *old.parameters()])
        run(opt, lambda: F.mse_loss(head(body(x)), y))
        """,
    "for some steps only": """
        run(opt, lambda: F.mse_loss(head(body(x).detach()), y))
        run(opt, lambda: F.mse_loss(head(body(x)), y))
        """,
    "one step": "run(opt, lambda: F.mse_loss(head(body(x).detach()), y), 1)\n",
    "the script loads them": """
        state = {k: v.clone() for k, v in body.state_dict().items()}
        def loss():
            body.load_state_dict(state)
            return F.mse_loss(head(body(x).detach()), y)
        run(opt, loss)
        """,
}


@pytest.fixture(autouse=True)
def shows_exceptions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORLENS_DEBUG", "1")


@pytest.mark.parametrize("kind", CUT)
def test_steps_that_find_no_gradient_are_named(kind: str, tmp_path: Path) -> None:
    found, _ = said(tmp_path, START + BOTH + textwrap.dedent(CUT[kind]), "none of the")
    wanted = "none of the 4 steps of `Adam` finds a gradient of `body.weight` and `body.bias`: "
    assert [each.text[: len(wanted)] for each in found] == [wanted]
    assert "# here" in line_at((tmp_path / "script.py").read_text(), found[0].labels[0].span.line)
    assert found[0].labels[-1].role == "optimizer_made_here"


@pytest.mark.parametrize("kind", USUAL)
def test_usual_phases_are_no_news(kind: str, tmp_path: Path) -> None:
    assert said(tmp_path, START + BOTH + textwrap.dedent(USUAL[kind]), "none of the")[0] == []
