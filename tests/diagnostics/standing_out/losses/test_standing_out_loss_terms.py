"""Names terms of a loss that are constants or that train nothing, and no constants that are meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.training_programs import train

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.summed_terms import losses, term_name

NET = """
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
side = nn.Linear(3, 1)
critic = torch.optim.SGD(side.parameters(), lr=0.1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(8, 3), torch.randn(8, 1)
for _ in range(3):
    optimizer.zero_grad()
    out = net(x)
    fit = (out - y).square().mean()
    size = net[0].weight.square().sum()
{}
    loss.backward()
    optimizer.step()
"""

WRONG = {
    "detached": (
        "    loss = fit + 0.1 * size.detach()  # here",
        "the term `0.1 * size.detach()` of the loss is a constant",
    ),
    "its data": ("    penalty = size.data  # here\n    loss = fit + penalty", "the term `penalty` of the loss"),
    "made again from tensors": (
        "    extra = torch.tensor([size, out.mean()]).sum()  # here\n    loss = torch.stack([fit, extra]).sum()",
        "the term `extra` of the loss is a constant, although it is computed from `net[0].weight`",
    ),
    "a float": ("    loss = fit + 0.1 * float(size)  # here", "the term `float(size)` of the loss is a plain number"),
    "a list": ("    extra = size.tolist()  # here\n    loss = fit + extra", "of the loss is a plain number"),
    "a loss of the output, detached before": (
        """
    still = out.detach()  # here
    smooth = (still[1:] - still[:-1]).abs().mean()
    loss = fit
    loss = loss + smooth""",
        "the term `smooth` of the loss is a constant, although it is computed from",
    ),
    "a net whose gradients are cleared": (
        """
    critic.zero_grad()
    (side(x).square().mean() - 1).square().backward()
    critic.step()
    match = F.l1_loss(side(out.detach().mean(1, keepdim=True).expand(8, 3)), side(x))  # here
    loss = fit + match""",
        "it reaches only `side.weight` and `side.bias`, whose gradients of these passes are cleared before",
    ),
    "a head of its own": (
        "    second = (side(x) - y).abs().mean()  # here\n    loss = fit + second",
        "the term `second` of the loss reaches only `side.weight` and `side.bias`, which no optimizer steps",
    ),
}

RIGHT = {
    "terms that train": "    loss = fit + 0.1 * size + out.abs().mean()",
    "a plain constant": "    loss = fit + 0.1 * size + 3.0",
    "an estimate": "    rounded = out.round().mean()\n    loss = fit + out.mean() + (rounded - out.mean()).detach()",
    "the value of another loss": "    loss = fit - fit.detach() + size.sqrt()",
    "a sum shifted by its maximum": (
        "    top = out.max().detach()\n    loss = fit + (out - top).exp().sum().log() + top"
    ),
    "a sum that begins with zeros": (
        "    total = out.new_zeros(())\n    for part in (fit, size):\n        total = total + part\n    loss = total"
    ),
    "a weight": "    loss = fit * size.detach() + size / fit.item()",
    "a target without a gradient": "    t = side(x).detach()\n    loss = fit + (out - t).square().mean()",
    "what a frozen net says": ("    side.requires_grad_(False)\n    loss = fit + side(x).square().mean()"),
    "a number that is printed": "    shown = float(size)\n    loss = fit + size\n    print(shown, end='')",
    "a finding says it": "    with torch.no_grad():\n        extra = out.abs().mean()\n    loss = fit + extra",
    "a net that another optimizer steps later": (
        "    critic.step()\n    critic.zero_grad()\n    loss = fit + (side(x).square().mean() - 1).square()"
    ),
    "a term through another net": (
        """
    critic.zero_grad()
    (side(x).square().mean() - 1).square().backward()
    critic.step()
    loss = fit + side(out.mean(1, keepdim=True).expand(8, 3)).mean()"""
    ),
    "updated by hand": (
        """
    loss = fit + side(x).abs().mean()
    with torch.no_grad():
        for p in side.parameters():
            if p.grad is not None:
                p -= 0.1 * p.grad
                p.grad = None"""
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_term_is_named(tmp_path: Path, name: str) -> None:
    body, words = WRONG[name]
    ran = train(tmp_path, NET.format(body))
    (found,) = ran.sentences("loss_terms")
    assert words in found.text
    assert found.labels[0].span.line == ran.line("here")


@pytest.mark.parametrize("name", RIGHT)
def test_other_losses_are_left_alone(tmp_path: Path, name: str) -> None:
    assert train(tmp_path, NET.format(RIGHT[name])).sentences("loss_terms") == []


# --- the table -------------------------------------------------------------------------------------------------------

TABLES = {
    "one term": ("    loss = fit", []),
    "a product is one term": ("    loss = 0.5 * fit * size / 2", []),
    "three": (
        "    loss = fit + 0.1 * size - out.mean()",
        [("fit", 4), ("size", 1), ("out.mean()", 4)],
    ),
    "added one by one": (
        "    loss = fit\n    loss += 0.1 * size\n    loss = loss + 1.0\n    loss = (loss + out.abs().mean()) / 3",
        [("fit", 4), ("size", 1), ("out.abs().mean()", 4)],
    ),
    "a sum over parameters is one": (
        "    decay = sum(p.square().sum() for p in net.parameters())\n    loss = fit + 0.01 * decay",
        [("fit", 4), ("decay", 4)],
    ),
    "two on one line": (
        "    loss = F.l1_loss(out, y) + 0.1 * size.sqrt()",
        [("F.l1_loss(out, y)", 4), ("size.sqrt()", 1)],
    ),
    "a sum with a name": (
        "    both = F.l1_loss(out, y) + size.sqrt()\n    loss = fit + both",
        [("fit", 4), ("both", 4)],
    ),
    "a loop": (
        "    loss = 0\n    for o, t in zip(out, y):\n        loss = loss + F.l1_loss(o, t)\n    loss = loss / 8 + size",
        [("loss", 4), ("size", 1)],
    ),
    "a loop over two": (
        "    loss = 0\n    for o, t in zip(out, y):\n        loss += F.l1_loss(o, t) + 0.5 * o.square().mean()",
        [("F.l1_loss(o, t)", 4), ("o.square().mean()", 4)],
    ),
    "one expression for all is one": (
        "    parts = [part.square().mean() for part in out.split(2)]\n    loss = torch.stack(parts).mean()",
        [],
    ),
    "one value for each sample": (
        "    a = out.abs().sum(1)\n    b = (net[0](x)).square().sum(1)\n    loss = (a + 0.5 * b).mean()",
        [("a", 4), ("b", 2)],
    ),
    "a residual connection is no sum of terms": ("    loss = (out + out.tanh()).square().mean()", []),
    "a constant": (
        "    loss = fit + 0.1 * size.detach()",
        [("fit", 4), ("0.1 * size.detach()", None)],
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_the_terms_of_a_loss(tmp_path: Path, name: str) -> None:
    body, expected = TABLES[name]
    facts = TraceIndex(train(tmp_path, NET.format(body)).report.trace)
    (loss,) = losses(facts)
    assert (loss.passes, len(loss.reached)) == (3, 4)
    terms = [(term.terms[0], len(term.reached) if term.requires_grad else None) for term in loss.terms]
    assert [(term_name(facts, term), count) for term, count in terms] == expected
