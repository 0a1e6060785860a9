"""Names operations of a loss that broadcast predictions and targets to all pairs, unless a script asks for pairs."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.script_under_training import said
from support.training_programs import train

NET = """
import torch.distributions as D
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(8, 3), torch.randn(8)
for _ in range(3):
    optimizer.zero_grad()
{}
    loss.backward()
    optimizer.step()
"""

WRONG = {
    "a difference": ("    loss = (net(x) - y).square().mean()  # here", "of shape (8, 1) and `y` of shape (8,)"),
    "a module": (
        "    pred = net(x)\n    loss = nn.MSELoss()(pred, y)  # here",
        "`pred` of shape (8, 1) and `y` of shape (8,) to shape (8, 8): 64 elements",
    ),
    "the target has the dimension": (
        "    pred = net(x).squeeze(-1)\n    target = y.view(-1, 1)\n    loss = F.l1_loss(pred, target)  # here",
        "`pred` of shape (8,) and `target` of shape (8, 1)",
    ),
    "values picked by an index": (
        """
    scores = net[0](x)
    q = scores.gather(1, torch.arange(8)[:, None] % 4)
    loss = (q - y).square().mean()  # here""",
        "`q` of shape (8, 1) and `y` of shape (8,) to shape (8, 8)",
    ),
    "the target got it by unsqueeze": (
        "    target = y.unsqueeze(1)\n    loss = ((net(x).flatten() - target) ** 2).sum() / 8  # here",
        "`target` of shape (8, 1) to shape (8, 8)",
    ),
    "cross entropy by hand": (
        """
    p = torch.sigmoid(net(x))
    t = (y > 0).float()
    gain = t * torch.log(p) + (1 - t) * torch.log(1 - p)  # here
    loss = -gain.mean()""",
        "`t` of shape (8,)",
    ),
    "a huber loss of a part": (
        "    err = F.smooth_l1_loss(net(x), y, reduction='none')  # here\n    loss = err.mean() + net[0].weight.norm()",
        "of shape (8, 1) and `y` of shape (8,)",
    ),
    "the target itself is a table": (
        """
    with torch.no_grad():
        goal = y + 0.9 * net(x)  # here
    loss = (net(x) - goal).square().mean()""",
        "`y` of shape (8,) and `0.9 * net(x)` of shape (8, 1) to shape (8, 8)",
    ),
    "a returned gradient": (
        """
    loss = torch.subtract(net(x), y).abs().mean()  # here
    torch.autograd.grad(loss, list(net.parameters()), retain_graph=True)
    loss = net(x).square().mean()""",
        "`y` of shape (8,) to shape (8, 8): 64 elements",
    ),
    "a function of the parameters": (
        """
    values = {name: p.detach() for name, p in net.named_parameters()}
    def pinball(values, x, y):
        miss = torch.sub(y, torch.func.functional_call(net, values, (x,)))  # here
        return torch.maximum(0.6 * miss, -0.4 * miss).mean()
    torch.func.grad_and_value(pinball)(values, x, y)
    loss = net(x).square().mean()""",
        "`y` of shape (8,) to shape (8, 8): 64 elements",
    ),
    "a distribution": (
        "    rate = F.softplus(net(x))\n    loss = -D.Poisson(rate).log_prob(y.abs().round()).mean()  # here",
        "broadcasts `rate` of shape (8, 1) and",
    ),
    "a distribution of zeros and ones": (
        """
    logits = net(x).squeeze(1)
    kinds = (y > 0).float().view(8, 1)
    chosen = D.Bernoulli(logits=logits)
    loss = -chosen.log_prob(kinds).sum() / 8  # here""",
        "broadcasts `logits` of shape (8,) and `kinds` of shape (8, 1) to shape (8, 8)",
    ),
    "images": (
        """
    image = F.conv2d(x.view(4, 1, 2, 3), net[0].weight[:1, :1].reshape(1, 1, 1, 1))
    mask = torch.ones(4, 2, 3)
    loss = (image - mask).abs().mean() + net(x).mean()  # here""",
        "to shape (4, 4, 2, 3): 96 elements",
    ),
}

RIGHT = {
    "a distribution for each sample": "    loss = -D.Poisson(F.softplus(net(x)[:, 0])).log_prob(y.round().abs()).sum()",
    "a choice of as many as samples": "    loss = -D.Categorical(logits=net(x)[:, 0]).log_prob(torch.arange(8)).mean()",
    "a broadcast that is written": """
    one, other = torch.broadcast_tensors(net(x), y)
    loss = (one - other).square().mean()""",
    "a grid of times as long as the batch": """
    basis = torch.sin(6.28 * torch.linspace(0, 1, 8))
    loss = F.mse_loss(net(x) * basis, x[:, :1] * basis)""",
    "as many draws as samples": """
    draws = net(x) + 0.1 * torch.randn(8)
    loss = (draws - x.sum(1, keepdim=True)).square().mean()""",
    "as many quantiles as samples": """
    taus = (torch.arange(8) + 0.5) / 8
    miss = y.view(8, 1) - (net(x) + torch.erfinv(2 * taus - 1))
    loss = torch.max(taus * miss, (taus - 1) * miss).mean()""",
    "equal shapes": "    loss = (net(x).squeeze(1) - y).square().mean()",
    "a target from another net": "    with torch.no_grad():\n        goal = y[:, None] + net(x)\n"
    "    loss = (net(x) - goal).square().mean()",
    "one sample": "    loss = (net(x[:1]) - y[:1]).square().mean()",
    "a target for all": "    loss = (net(x) - y.mean()).square().mean()",
    "other sizes": "    loss = (net(x) - y[:5]).square().mean()",
    "a weight for each column": "    loss = (net[0](x) * torch.ones(4)).square().mean()",
    "pairs on purpose": "    s = net(x).squeeze(1)\n    loss = F.relu(1 - (s[:, None] - y)).mean()",
    "pairs with a view": "    s = net(x).flatten()\n    loss = (s.view(-1, 1) - y).abs().mean()",
    "pairs of both shapes": "    loss = (net(x) - y.view(1, -1)).abs().mean()",
    "pairs of embeddings": (
        "    z = net[0](x)\n    other = torch.randn(8, 4)\n    a = z.unsqueeze(1)\n"
        "    loss = -torch.logsumexp(-(a - other).square().sum(2), 1).mean()"
    ),
    "pairs with the targets, used by rows": (
        "    s = net(x).squeeze(1)\n    t = y.unsqueeze(1)\n    loss = (s - t).abs().min(dim=1).values.mean()"
    ),
    "pairs of predictions": "    s = net(x)\n    loss = (s - s.squeeze(1)).square().mean()",
    "a returned gradient of an input": """
    t = torch.rand(8, 3, requires_grad=True)
    u = t[:, :1] * net(t)
    (slope,) = torch.autograd.grad(u.sum(), t, create_graph=True)
    loss = (slope[:, 0] - y).square().mean()""",
    "a function of one sample": """
    values = {name: p.detach() for name, p in net.named_parameters()}
    def miss(values, x, y):
        return (torch.func.functional_call(net, values, (x[None],))[0] - y).square().sum()
    torch.func.vmap(torch.func.grad(miss), in_dims=(None, 0, 0))(values, x, y)
    loss = net(x).square().mean()""",
    "a learned scale": (
        "    scale = net[0].bias\n    loss = (scale.view(4, 1) * torch.ones(4)).mean() + net(x).square().mean()"
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_broadcast_is_named(tmp_path: Path, name: str) -> None:
    body, words = WRONG[name]
    ran = train(tmp_path, NET.format(body))
    (found,) = ran.sentences("broadcast_in_loss")
    assert words in found.text
    assert found.labels[0].span.line == ran.line("here")


@pytest.mark.parametrize("name", RIGHT)
def test_other_losses_are_left_alone(tmp_path: Path, name: str) -> None:
    assert train(tmp_path, NET.format(RIGHT[name])).sentences("broadcast_in_loss") == []


EVALUATED = """
    import torch
    import torch.nn.functional as F
    from torch import nn

    torch.manual_seed(0)
    x = torch.randn(40, 4)
    y = (x[:, 0] > 0).float()
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for index in torch.randperm(40).split(20):
        loss = F.binary_cross_entropy_with_logits(net(x[index]).squeeze(1), y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        out = net(x[:12])
        METRIC
"""


@pytest.mark.parametrize(
    ("metric", "count"),
    [
        ("accuracy = ((out > 0).float() == y[:12]).float().mean().item()", 1),
        ("right = (torch.sigmoid(out).round() == y[:12]).sum().item() / 12", 1),
        ("error = (out - y[:12]).abs().mean().item()", 1),
        ("accuracy = ((out.squeeze(1) > 0).float() == y[:12]).float().mean().item()", 0),
        ("accuracy = ((out > 0).float() == y[:12, None]).float().mean().item()", 0),
        ("same = y[:12].unsqueeze(1) == y[:12]\n        share = same.float().mean().item()", 0),
        ("score = out.view(-1)\n        rank = ((score[:, None] - score) > 0).float().mean().item()", 0),
        ("gini = (out - out.squeeze(1)).abs().mean().item()", 0),
        ("spread = (out - net(x[12:24]).flatten()).abs().mean().item()", 0),
        ("y = y[:12]\n        energy = 2 * (out - y).abs().mean() - (y[:, None] - y).abs().mean()", 0),
        ("energy = 2 * (out - y[:12]).abs().mean() - torch.cdist(out, out).mean()", 0),
        ("out = net(torch.randn(12, 4)).numpy()\n        y = y[:12].numpy()\n        cross = abs(out - y).mean()", 0),
        ("out = out.numpy()\n        y = y[:12].numpy()\n        cross = abs(out - y).mean()", 1),
        ("gap = (out - y[:12]).abs()\n        nearest = gap.min(dim=1).values.mean().item()", 0),
    ],
)
def test_answers_that_are_compared_with_all_labels_are_named(tmp_path: Path, metric: str, count: int) -> None:
    assert len(said(tmp_path, EVALUATED.replace("METRIC", metric), "compares each of")[0]) == count
