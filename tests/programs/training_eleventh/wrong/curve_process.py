"""Attentive conditional neural process on random periodic curves: context points in, predictive normal out."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal

torch.manual_seed(9)
STEPS, TASKS, DIM = 450, 24, 32


def curves(tasks, points):
    x = torch.rand(tasks, points, 1) * 3 - 1.5
    amplitude = 0.5 + 1.0 * torch.rand(tasks, 1, 1)
    phase = 2 * math.pi * torch.rand(tasks, 1, 1)
    offset = 0.3 * torch.randn(tasks, 1, 1)
    return x, offset + amplitude * torch.sin(1.5 * x + phase) + 0.02 * torch.randn_like(x)


class ContextBlock(nn.Module):
    """One self-attention layer over the context points, so that they can be compared with one another."""

    def __init__(self, dim, heads=4):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = nn.MultiheadAttention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, r):
        h = self.norm1(r)
        r = r + self.attention(h, h, h, need_weights=False)[0]
        return r + self.mlp(self.norm2(r))


class CurveProcess(nn.Module):
    def __init__(self, dim=DIM):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(2, dim), nn.GELU(), nn.Linear(dim, dim))
        self.blocks = nn.Sequential(ContextBlock(dim), ContextBlock(dim))
        self.pool = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, dim))
        self.decoder = nn.Sequential(nn.Linear(dim + 1, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 2))

    def forward(self, x_context, y_context, x_target):
        r = self.blocks(self.embed(torch.cat([x_context, y_context], dim=-1)))
        summary = self.pool(r).mean(dim=1, keepdim=True).expand(-1, x_target.size(1), -1)
        mean, raw = self.decoder(torch.cat([summary, x_target], dim=-1)).chunk(2, dim=-1)
        return Normal(mean, 0.02 + 0.98 * F.softplus(raw))


def episode(tasks):
    n_context = int(torch.randint(4, 11, (1,)))
    x, y = curves(tasks, n_context + 12)
    return x[:, :n_context], y[:, :n_context], x, y


@torch.no_grad()
def evaluate(model, rounds=20):
    model.eval()
    nll, square = 0.0, 0.0
    for _ in range(rounds):
        xc, yc, xt, yt = episode(TASKS)
        dist = model(xc, yc, xt)
        nll += -dist.log_prob(yt).mean().item() / rounds
        square += (dist.mean - yt).pow(2).mean().item() / rounds
    return nll, math.sqrt(square)


model = CurveProcess()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=6e-3, total_steps=STEPS)

for step in range(STEPS):
    model.train()
    xc, yc, xt, yt = episode(TASKS)
    loss = -model(xc, yc, xt).log_prob(yt).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    if (step + 1) % 90 == 0:
        print(f"step {step + 1}: nll {loss.item():.3f}  lr {scheduler.get_last_lr()[0]:.4f}")

nll, rmse = evaluate(model)
print(f"new curves: nll {nll:.3f}  rmse {rmse:.3f}")
