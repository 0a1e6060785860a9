"""Cloning of tele-operated parcel pushes that go left or right of an obstacle: mixture policy, spread on a fixed plan."""
import math

import torch
import torch.nn.functional as F
from torch import nn

MODES, ACT = 3, 2


class PushPolicy(nn.Module):
    def __init__(self, obs=5, width=64):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.means = nn.Linear(width, MODES * ACT)
        self.gate = nn.Linear(width, MODES)
        self.log_std = nn.Parameter(torch.zeros(ACT), requires_grad=False)
        self.register_buffer("shift", torch.zeros(obs))
        self.register_buffer("scale", torch.ones(obs))

    def fit_scaling(self, obs):
        self.shift.copy_(obs.mean(0))
        self.scale.copy_(obs.std(0).clamp(min=1e-3))

    def forward(self, obs):
        h = self.body((obs - self.shift) / self.scale)
        return self.means(h).view(-1, MODES, ACT), F.log_softmax(self.gate(h), dim=-1)

    def log_prob(self, obs, act):
        means, log_gate = self(obs)
        log_std = self.log_std.clamp(-3.0, 0.5)
        z = (act[:, None] - means) / log_std.exp()
        each = (-0.5 * z ** 2 - log_std - 0.5 * math.log(2 * math.pi)).sum(-1)
        return torch.logsumexp(each + log_gate, dim=1)


def spread_plan(progress, start=0.3, end=-1.6):
    return start + (end - start) * min(1.0, 1.25 * progress)


def demonstrations(n, gen):
    """Goal offset (2), obstacle offset (2), parcel mass (1) -> push direction."""
    obs = torch.randn(n, 5, generator=gen) * torch.tensor([2.0, 1.0, 0.5, 0.5, 0.3]) + torch.tensor([3.0, 0, 1.5, 0, 1.0])
    side = torch.where(torch.rand(n, generator=gen) < torch.sigmoid(3 * obs[:, 3]), -1.0, 1.0)
    heading = torch.atan2(obs[:, 1], obs[:, 0]) + 0.8 * side
    strength = (0.6 + 0.4 * obs[:, 4])[:, None]
    act = strength * torch.stack([heading.cos(), heading.sin()], dim=1)
    return obs, act + 0.2 * torch.randn(n, ACT, generator=gen)


def main(epochs=24, batch=128):
    torch.manual_seed(30)
    gen = torch.Generator().manual_seed(30)
    obs, act = demonstrations(3000, gen)
    held_obs, held_act = demonstrations(1000, gen)
    policy = PushPolicy()
    policy.fit_scaling(obs)
    optimizer = torch.optim.Adam([p for p in policy.parameters() if p.requires_grad], lr=2e-3)
    for epoch in range(epochs):
        policy.log_std.fill_(spread_plan(epoch / epochs))
        total = 0.0
        for idx in torch.randperm(len(obs), generator=gen).split(batch):
            loss = -policy.log_prob(obs[idx], act[idx]).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx) / len(obs)
        if epoch % 4 == 0:
            print(f"{epoch:3d}  nll {total:+.3f}  std {policy.log_std.exp()[0].item():.2f}")
    with torch.no_grad():
        nll = -policy.log_prob(held_obs, held_act).mean().item()
        means, log_gate = policy(held_obs)
        gap = (means - held_act[:, None]).norm(dim=-1).min(dim=1).values.median().item()
        used = log_gate.exp().mean(0)
    return nll, gap, used


if __name__ == "__main__":
    nll, gap, used = main()
    print(f"held-out nll {nll:+.3f}  distance to nearest mode {gap:.3f}  gate {[round(u, 2) for u in used.tolist()]}")
