from dataclasses import dataclass, field
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(5)


@dataclass
class Run:
    enc: nn.Module
    dec: nn.Module
    raw: torch.Tensor
    weights: dict = field(default_factory=dict)
    budget: float = 0.15


def setup():
    enc = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 8))
    dec = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 12))
    raw = torch.zeros((), requires_grad=True)
    run = Run(enc, dec, raw)
    return run


def terms(run, x):
    mu, logvar = run.enc(x).chunk(2, dim=-1)
    z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
    error = F.mse_loss(run.dec(z), x)
    rate = 0.5 * (mu.square() + logvar.exp() - 1 - logvar).sum(-1).mean()
    return rate, error - run.budget


run = setup()
primal = torch.optim.Adam([*run.enc.parameters(), *run.dec.parameters()], lr=4e-3)
dual = torch.optim.SGD([run.raw], lr=0.5)
basis = torch.randn(4, 12)
for step in range(150):
    x = torch.randn(64, 4) @ basis * 0.6
    rate, gap = terms(run, x)
    run.weights["error"] = F.softplus(run.raw).item()
    loss = rate + run.weights["error"] * gap * 10
    primal.zero_grad()
    loss.backward()
    primal.step()
    dual.zero_grad()
    (-F.softplus(run.raw) * gap.detach()).backward()
    dual.step()
    if step % 30 == 29:
        print(f"{step + 1}: rate {rate.item():.3f} gap {gap.item():.3f} multiplier {F.softplus(run.raw).item():.3f}")
