"""Pendulum dynamics with a small ensemble, kept in the style of the JAX original.

The module is only a template: an ensemble of stacked parameter arrays lives in a dict, is run with vmap, and is
trained by an update chain with per-label rules (multi_transform). The scaled output of one random net that is never
trained (a randomised prior) is added to every member.
"""
import torch
import torch.nn as nn
from torch.func import functional_call, vmap

torch.manual_seed(17)

MEMBERS = 4
DT = 0.1
PRIOR_SCALE = 0.3
STEPS = 700


def pendulum_step(state, torque):
    theta, omega = state.unbind(-1)
    for _ in range(5):
        omega = omega + (DT / 5) * (-9.0 * torch.sin(theta) - 0.3 * omega + 4.0 * torque)
        theta = theta + (DT / 5) * omega
    return torch.stack([theta, omega], dim=-1)


def make_data(n):
    state = torch.stack([(torch.rand(n) - 0.5) * 4.0, torch.randn(n) * 2.0], dim=-1)
    torque = torch.rand(n) * 2 - 1
    delta = pendulum_step(state, torque) - state
    x = torch.cat([state[:, :1].sin(), state[:, :1].cos(), state[:, 1:], torque[:, None]], dim=-1)
    return x, delta + 0.02 * torch.randn_like(delta)


class Dynamics(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.hidden1 = nn.Linear(4, width)
        self.hidden2 = nn.Linear(width, width)
        self.out = nn.Linear(width, 2)

    def forward(self, x):
        x = torch.tanh(self.hidden1(x))
        return self.out(torch.tanh(self.hidden2(x)))


template = Dynamics().requires_grad_(False)


def init_params():
    fresh = Dynamics()
    return {name: p.detach() for name, p in fresh.named_parameters()}


def apply(params, x):
    return functional_call(template, params, (x,))


members = [init_params() for _ in range(MEMBERS)]
params = {name: torch.stack([m[name] for m in members]).requires_grad_() for name in members[0]}
prior = init_params()


def ensemble(params, x):
    """x: (members, batch, 4) -> (members, batch, 2)"""
    with torch.no_grad():
        offset = apply(prior, x)
    return vmap(apply)(params, x) + PRIOR_SCALE * offset


def label(name):
    return "kernel" if name.endswith("weight") else "bias"


rules = {"kernel": dict(lr=4e-3, decay=1e-4), "bias": dict(lr=2e-3, decay=0.0)}
moments = {name: (torch.zeros_like(p), torch.zeros_like(p)) for name, p in params.items()}


def update(params, grads, moments, count, b1=0.9, b2=0.99, eps=1e-8):
    """One AdamW step; gives back new arrays and leaves the old ones as they were."""
    new_params, new_moments = {}, {}
    cool = 1.0 - (count - 1) / STEPS
    with torch.no_grad():
        for name, p in params.items():
            g, (m, v), rule = grads[name], moments[name], rules[label(name)]
            m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
            direction = (m / (1 - b1 ** count)) / ((v / (1 - b2 ** count)).sqrt() + eps) + rule["decay"] * p
            new_params[name] = (p - cool * rule["lr"] * direction).requires_grad_()
            new_moments[name] = (m, v)
    return new_params, new_moments


train_x, train_y = make_data(1500)
test_x, test_y = make_data(500)

for count in range(1, STEPS + 1):
    idx = torch.randint(len(train_x), (MEMBERS, 64))
    errors = (ensemble(params, train_x[idx]) - train_y[idx]).pow(2).mean(dim=(1, 2))
    grads = dict(zip(params, torch.autograd.grad(errors.sum(), tuple(params.values()))))
    params, moments = update(params, grads, moments, count)
    if count % 140 == 0:
        print(f"step {count}: member errors", " ".join(f"{e:.4f}" for e in errors.tolist()))

with torch.no_grad():
    prediction = ensemble(params, test_x.expand(MEMBERS, -1, -1))
    rmse = (prediction.mean(0) - test_y).pow(2).mean().sqrt().item()
    spread = prediction.std(0).mean().item()
print(f"test rmse {rmse:.4f} (target spread {test_y.std():.4f}), disagreement {spread:.4f}")
