"""Clipped policy objectives that take the wrong one of their two products."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.script_under_training import said

SCRIPT = """
    import torch
    net = torch.nn.Linear(4, 2)
    opt = torch.optim.Adam(net.parameters())
    x, a, adv = torch.randn(32, 4), torch.randint(0, 2, (32, 1)), torch.randn(32)
    old = net(x).log_softmax(1).gather(1, a).squeeze(1).detach()
    for _ in range(3):
        ratio = (net(x).log_softmax(1).gather(1, a).squeeze(1) - old).exp()
        clipped = ratio.clamp(0.8, 1.2)
        order = torch.randperm(32)
        one, two = ratio * adv, clipped * adv
        loss = {loss}
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
WRONG = (
    "-torch.max(one, two).mean()",
    "torch.min(-adv * ratio, -adv * clipped).mean()",
    "-1.0 * torch.stack([one, two]).max(0).values.mean()",
    "-torch.where(one > two, one, two).mean()",
    "-torch.max(ratio * adv[order], clipped * adv[order]).mean()",
)
RIGHT = (
    "-torch.min(one, two).mean()",
    "torch.max(-adv * ratio, -adv * clipped).mean()",
    "-torch.max(torch.min(one, two), 3 * adv).mean()",
    "-torch.where(one < two, one, two).mean()",
    "-torch.max(ratio * adv[order], clipped * adv[order.flip(0)]).mean()",
)


@pytest.mark.parametrize("loss", WRONG)
def test_the_greater_product_is_named(loss: str, tmp_path: Path) -> None:
    [found], _ = said(tmp_path, SCRIPT.format(loss=loss), "clipped ratio")
    assert "adv" in found.text
    assert found.labels[0].span.line == 14


@pytest.mark.parametrize("loss", RIGHT)
def test_the_lesser_product_is_no_news(loss: str, tmp_path: Path) -> None:
    assert said(tmp_path, SCRIPT.format(loss=loss), "clipped ratio")[0] == []


STEPS = {
    "a step up by hand": "for p in net.parameters(): p.data += 0.1 * p.grad",
    "a step up by a method": "for p in net.parameters(): p.data.add_(p.grad, alpha=0.1)",
    "a step by hand that reads a name": "for p in net.parameters(): g = p.grad; p.data += 0.1 * g",
    "a gradient that is turned": "for p in net.parameters(): p.grad.neg_()\n        opt.step()",
    "a gradient that is set": "for p in net.parameters(): p.grad = -p.grad\n        opt.step()",
}


@pytest.mark.parametrize("name", STEPS)
def test_a_step_up_along_the_gradient_is_no_news(name: str, tmp_path: Path) -> None:
    script = SCRIPT.format(loss="torch.min(one, two).mean()").replace("opt.step()", STEPS[name])
    assert said(tmp_path, script, "clipped ratio")[0] == []
