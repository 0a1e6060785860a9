"""Offline model-based planning (after MOPO): an ensemble of dynamics models, a penalty on their spread, random shooting.

The logged data of a buoy on a line cover only the left half; the planner must not trust the models elsewhere.
"""
import copy

import torch
import torch.nn as nn

SEED, MEMBERS, EPOCHS, BATCH, PENALTY = 8, 5, 18, 128, 4.0
torch.manual_seed(SEED)


def dynamics(s, a):
    """Position and speed; right of x = 0.6 a strong current carries the buoy away."""
    x, v = s[..., 0], s[..., 1]
    current = torch.where(x > 0.6, 0.5, 0.0)
    v = 0.85 * v + 0.15 * a.squeeze(-1).clamp(-1, 1) - 0.05 * torch.sin(3 * x) + current
    return torch.stack([x + 0.3 * v, v], -1)


def reward_of(s):
    """The goal lies at x = 0.5; whoever drifts beyond 0.6 pays for it."""
    x = s[..., 0]
    return -(x - 0.5).abs() - 3.0 * (x > 0.6).float()


def log_data(n=2500):
    s = torch.stack([-1.5 + 1.9 * torch.rand(n), 0.3 * torch.randn(n)], -1)
    a = 2 * torch.rand(n, 1) - 1
    return s, a, dynamics(s, a) + 0.01 * torch.randn(n, 2)


class Dynamics(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(3, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, 2)
        )

    def forward(self, s, a):
        return s + self.net(torch.cat([s, a], -1))


class Ensemble(nn.Module):
    """Several dynamics models side by side; predictions are stacked along the first axis."""

    def __init__(self, template, members):
        super().__init__()
        self.members = nn.ModuleList(copy.deepcopy(template) for _ in range(members))

    def forward(self, s, a):
        return torch.stack([m(s, a) for m in self.members])

    def predict(self, s, a):
        preds = self(s, a)
        return preds.mean(0), preds.std(0).norm(dim=-1)


@torch.no_grad()
def plan(model, s, horizon=6, candidates=200):
    """Random shooting in the learned model; returns the first action of the best sequence for each state."""
    n = len(s)
    seqs = 2 * torch.rand(candidates, n, horizon, 1) - 1
    sim, score = s.expand(candidates, n, 2).clone(), torch.zeros(candidates, n)
    for t in range(horizon):
        sim, spread = model.predict(sim, seqs[:, :, t])
        score += reward_of(sim) - PENALTY * spread
    best = score.argmax(0)
    return seqs[best, torch.arange(n), 0]


def main():
    s, a, nxt = log_data()
    model = Ensemble(Dynamics(), MEMBERS)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(EPOCHS):
        total = 0.0
        for idx in torch.randperm(len(s)).split(BATCH):
            preds = model(s[idx], a[idx])
            loss = (preds - nxt[idx]).pow(2).mean((1, 2)).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        if epoch % 8 == 0:
            print(f"epoch {epoch}  model loss {total / len(s) / MEMBERS:.5f}")

    probe = torch.stack([torch.linspace(-1.5, 3.0, 200), torch.zeros(200)], -1)
    with torch.no_grad():
        spread = model.predict(probe, torch.zeros(200, 1))[1]
    inside, outside = spread[probe[:, 0] < 0.4].mean().item(), spread[probe[:, 0] > 0.6].mean().item()
    print(f"ensemble spread: inside the data {inside:.5f}  outside {outside:.5f}")

    state, gained = torch.stack([-1.0 + 0.3 * torch.rand(32), torch.zeros(32)], -1), 0.0
    for _ in range(20):
        state = dynamics(state, plan(model, state))
        gained += reward_of(state).mean().item()
    print(f"real return of the planner {gained:.2f}")
    return model, inside, outside, gained


if __name__ == "__main__":
    model, inside, outside, gained = main()
