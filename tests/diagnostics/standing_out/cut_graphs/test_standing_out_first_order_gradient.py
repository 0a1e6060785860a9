"""Names gradients that entered a loss without a graph, and none that are constants on purpose."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.training_programs import train

NET = """
net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters())
data = torch.rand(16, 2)
y = data.sum(1, keepdim=True)
for step in range(3):
    x = data.clone().requires_grad_()
    u = net(x)
    fit = (u - y).square().mean()
{}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
APPLY = "torch.tanh(data @ fast[0].t() + fast[1]) @ fast[2].t() + fast[3]"

SCALED_NET = NET.replace(
    "optimizer = torch.optim.Adam(net.parameters())",
    "k = nn.Parameter(torch.tensor(0.5))\noptimizer = torch.optim.Adam([*net.parameters(), k])",
)
SECOND = """
    du = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    bend = torch.autograd.grad(du.sum(), x, retain_graph=True)[0][:, 0:1]  # here"""

WRONG = {
    "a differential equation": """
    du = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    u_x, u_t = du[:, 0:1], du[:, 1:2]
    u_xx = torch.autograd.grad(u_x.sum(), x, retain_graph=True)[0][:, 0:1]  # here
    residual = u_t + u * u_x - 0.01 * u_xx
    loss = fit + residual.square().mean()""",
    "a penalty for each sample": """
    slope = torch.autograd.grad(u, x, grad_outputs=torch.ones_like(u), retain_graph=True)[0]  # here
    loss = ((u - y).square().squeeze(1) + 10 * (slope.norm(2, dim=1) - 1) ** 2).mean()""",
    "an inner step": f"""
    params = list(net.parameters())
    grads = torch.autograd.grad(fit, params)  # here
    fast = [p - 0.1 * g for p, g in zip(params, grads)]
    loss = ({APPLY} - y).square().mean()""",
    "an inner step by name": f"""
    names = dict(net.named_parameters())
    inner = (net(data) - y).abs().mean()
    grads = torch.autograd.grad(inner, list(names.values()), allow_unused=True)  # here
    fast = [torch.sub(p, g * 0.05) for p, g in zip(names.values(), grads)]
    loss = ({APPLY} - y).abs().mean()""",
    "a slope as a part of the output": """
    slope = torch.autograd.grad(u.sum(), x, retain_graph=True)[0].sum(1, keepdim=True)  # here
    loss = (u + 0.5 * slope - y).square().mean()""",
}

SCALED_WRONG = {
    "a coefficient": (SECOND + """
    loss = fit + ((k.exp() * bend + y) / 0.5).pow(2).mean()""", "k.exp() * bend"),
    "a coefficient below": (SECOND + """
    residual = du[:, 1:2] + u * du[:, 0:1] - bend / k
    loss = fit + residual.abs().mean()""", "bend / k"),
    "two factors": (SECOND + """
    loss = fit + F.mse_loss(2 * bend.squeeze(1) * k * 3, y.squeeze(1))""", "2 * bend.squeeze(1) * k"),
    "a plain number beside it": (SECOND + """
    loss = fit + (k * bend + 1.0).square().mean()""", "k * bend"),
    "a first derivative": ("""
    rate = torch.autograd.grad(u.sum(), x, retain_graph=True)[0][:, 1:2]  # here
    loss = fit + (k * rate + u - y).square().mean()""", "k * rate"),
}  # fmt: skip

RIGHT = {
    "a graph": """
    slope = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    loss = ((u - y).square().squeeze(1) + (slope.norm(2, dim=1) - 1) ** 2).mean()""",
    "first order on purpose": f"""
    params = list(net.parameters())
    grads = torch.autograd.grad(fit, params, create_graph=False)
    fast = [p - 0.1 * g for p, g in zip(params, grads)]
    loss = ({APPLY} - y).square().mean()""",
    "first order, as a comment says": f"""
    params = list(net.parameters())  # first-order MAML
    grads = torch.autograd.grad(fit, params)
    fast = [p - 0.1 * g for p, g in zip(params, grads)]
    loss = ({APPLY} - y).square().mean()""",
    "first order by a flag": f"""
    second, params = False, list(net.parameters())
    grads = torch.autograd.grad(fit, params, create_graph=second)
    fast = [p - 0.1 * g for p, g in zip(params, grads)]
    loss = ({APPLY} - y).square().mean()""",
    "detached": f"""
    params = list(net.parameters())
    grads = torch.autograd.grad(fit, params)
    fast = [p - 0.1 * g.detach() for p, g in zip(params, grads)]
    loss = ({APPLY} - y).square().mean()""",
    "an adversarial input": """
    slope = torch.autograd.grad(fit, x)[0]
    loss = (net(x + 0.1 * slope / slope.norm()) - y).square().mean()""",
    "an adversarial hidden layer": """
    hidden = net[0](data)
    slope = torch.autograd.grad((net[2](net[1](hidden)) - y).square().mean(), hidden, retain_graph=True)[0]
    loss = (net[2](net[1](hidden + 0.1 * slope)) - y).square().mean()""",
    "a weight of a term": """
    size = net[2].weight.square().sum()
    one = torch.autograd.grad(fit, net[2].weight, retain_graph=True)[0].norm()
    two = torch.autograd.grad(size, net[2].weight, retain_graph=True)[0].norm()
    loss = fit + (one / (two + 1e-4)).clamp(0, 1) * size""",
    "weights of the samples": """
    weights = torch.zeros(16, 1, requires_grad=True)
    inner = ((u - y).square() * weights).sum() + fit
    chosen = (-torch.autograd.grad(inner, weights, retain_graph=True)[0]).clamp(min=0)
    loss = (chosen * (u - y).square()).sum()""",
    "importances of an earlier task": """
    if step == 0:
        params = list(net[0].parameters())
        importances = [g.square() for g in torch.autograd.grad(fit, params, retain_graph=True)]
        old = [p.detach().clone() for p in params]
    loss = fit + sum((f + (p - o) ** 2).sum() for f, p, o in zip(importances, params, old))""",
    "a finding says it": """
    slope = torch.autograd.grad(u.sum(), x, retain_graph=True)[0]
    loss = fit + (slope.norm(2, dim=1) - 1).square().mean()""",
    "gradients assigned by hand": """
    grads = torch.autograd.grad(fit, list(net.parameters()), retain_graph=True)
    loss = fit + 0.0 * u.mean()""",
    "gradients of a net that this pass does not train": """
    teacher = nn.Linear(2, 1)
    wanted = torch.autograd.grad(teacher(x).sum(), x)[0].sum(1, keepdim=True)
    loss = (u - wanted).square().mean()""",
}

SCALED_RIGHT = {
    "a graph": """
    du = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    bend = torch.autograd.grad(du.sum(), x, create_graph=True)[0][:, 0:1]
    loss = fit + (k * bend + y).square().mean()""",
    "a coefficient alone, as detach says": SECOND + """
    loss = fit + (k * bend.detach() + y).square().mean()""",
    "a coefficient alone, as an argument says": """
    du = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    bend = torch.autograd.grad(du.sum(), x, retain_graph=True, create_graph=False)[0][:, 0:1]
    loss = fit + (k * bend + y).square().mean()""",
    "a coefficient alone, by a pass of its own": SECOND + """
    (k * bend + y).square().mean().backward()
    loss = fit""",
    "weights of a residual for steep places": """
    du = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    bend = torch.autograd.grad(du.sum(), x, create_graph=True)[0][:, 0:1]
    steep = torch.autograd.grad(du.sum(), x, retain_graph=True)[0][:, 0:1].abs()
    loss = fit + ((k * bend + y) / (1 + steep) - 0.1 * y).square().mean()""",
    "a viscosity for steep places": """
    du = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    bend = torch.autograd.grad(du.sum(), x, create_graph=True)[0][:, 0:1]
    steep = torch.autograd.grad(du.sum(), x, retain_graph=True)[0][:, 0:1].abs()
    loss = fit + (du[:, 1:2] - k * steep * bend).square().mean()""",
    "a learned weight of a term": SECOND + """
    loss = (u - y).square().mean() + ((-k).exp() * bend.square() + k).mean()""",
    "the gradient of a critic by actions, as the factor of the actions": """
    moved = torch.autograd.grad(u.sum(), x, retain_graph=True)[0]
    loss = (fit - (moved * (k * data)).sum(1) - y.squeeze(1)).mean()""",
    "the factor of a log probability": SECOND + """
    logp = torch.distributions.Normal(k, 1.0).log_prob(y)
    loss = fit - (logp * bend).mean()""",
    "a learned step": """
    clean = data.flip(1)
    slope = torch.autograd.grad(u.sum(), x, retain_graph=True)[0]
    loss = fit + (x - k * slope - clean).square().mean()""",
    "a learned step from a copy": """
    clean = data.flip(1)
    slope = torch.autograd.grad(u.sum(), x, retain_graph=True)[0]
    loss = fit + (data - k * slope - clean).square().mean()""",
    "a learned step of the output": """
    again = u.detach().requires_grad_()
    slope = torch.autograd.grad((net(torch.cat([again, again], 1)) - y).square().sum(), again)[0]
    loss = fit + (u - k * slope - y).square().mean()""",
    "learned rates of an inner step": """
    weight = net[0].weight
    slope = torch.autograd.grad(fit, weight, retain_graph=True)[0]
    loss = fit + (weight - k * slope - 0.1).square().mean()""",
    "norms that a weight balances": """
    size = torch.autograd.grad(fit, net[0].weight, retain_graph=True)[0].norm()
    loss = k.detach() * fit + (k * size - 1.0).abs()""",
    "norms by a hidden layer that a weight balances": """
    size = torch.autograd.grad(fit, x, retain_graph=True)[0].norm()
    loss = k.detach() * fit + (k * size - size.mean()).abs()""",
    "norms of two terms that their weights balance": """
    terms, weights = (fit, u.abs().mean()), torch.stack([k.exp(), (-k).exp()])
    sizes = torch.stack([torch.autograd.grad(each, net[0].weight, retain_graph=True)[0].norm() for each in terms])
    balance = (weights * sizes - sizes.mean() * torch.tensor([0.5, 2.0])).abs().sum()
    loss = (weights.detach() * torch.stack(terms)).sum() + balance""",
    "importances": """
    params = list(net.parameters())
    fisher = [g.square() for g in torch.autograd.grad(fit, params, retain_graph=True)]
    loss = fit + sum((k.exp() * f * (p - p.detach()) ** 2).sum() for f, p in zip(fisher, params))""",
    "an adversarial input": """
    slope = torch.autograd.grad(fit, x)[0]
    loss = (net(x + k * slope / slope.norm()) - y).square().mean()""",
    "a preconditioner": SECOND + """
    loss = ((u - y) / (1 + k * bend.abs()) - 0.1).square().mean()""",
    "a point on a surface by implicit differentiation": """
    slope = torch.autograd.grad(u.sum(), x, retain_graph=True)[0].sum(1, keepdim=True)
    hit = data - (u - u.detach()) / slope
    loss = fit + (k * hit - y).square().mean()""",
    "a net that this pass does not train": """
    teacher = nn.Linear(2, 1)
    wanted = torch.autograd.grad(teacher(x).tanh().sum(), x)[0].sum(1, keepdim=True)
    loss = (u - k * wanted).square().mean()""",
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_gradient_is_named(tmp_path: Path, name: str) -> None:
    ran = train(tmp_path, NET.format(WRONG[name]))
    (found,) = ran.sentences("first_order_gradient")
    assert "`create_graph` is not set" in found.text
    assert "`net[0].weight`" in found.text
    assert found.labels[0].span.line == ran.line("here")


@pytest.mark.parametrize("name", RIGHT)
def test_other_gradients_are_left_alone(tmp_path: Path, name: str) -> None:
    assert train(tmp_path, NET.format(RIGHT[name])).sentences("first_order_gradient") == []


@pytest.mark.parametrize("name", SCALED_WRONG)
def test_a_derivative_beside_a_trained_coefficient_is_named(tmp_path: Path, name: str) -> None:
    text, entered = SCALED_WRONG[name]
    ran = train(tmp_path, SCALED_NET.format(text))
    (found,) = ran.sentences("first_order_gradient")
    assert f"enters the loss at `{entered}` as a constant" in found.text
    assert "`net[0].weight`" in found.text
    assert "`k`" not in found.text
    assert found.labels[0].span.line == ran.line("here")


@pytest.mark.parametrize("name", SCALED_RIGHT)
def test_other_scaled_gradients_are_left_alone(tmp_path: Path, name: str) -> None:
    assert train(tmp_path, SCALED_NET.format(SCALED_RIGHT[name])).sentences("first_order_gradient") == []
