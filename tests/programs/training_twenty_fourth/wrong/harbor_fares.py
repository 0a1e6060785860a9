"""Ferry fares by a neural contextual bandit that learns from the revenue; each week's job starts from the last snapshot."""
import argparse
import io

import torch
from torch import nn

FARES = torch.tensor([6.0, 9.0, 12.0, 16.0, 21.0])


class Harbor:
    """Requests with raw features (days ahead, party size, vehicle kg, occupancy) and a hidden willingness to pay."""

    def __init__(self, seed):
        self.gen = torch.Generator().manual_seed(seed)

    def requests(self, n):
        rand = torch.rand(n, 4, generator=self.gen)
        return torch.stack([rand[:, 0] * 60, 1 + 5 * rand[:, 1], 400 + 2400 * rand[:, 2], 30 + 70 * rand[:, 3]], 1)

    @staticmethod
    def buy_probability(x):
        limit = 15 - 0.12 * x[:, 0] + 0.8 * x[:, 1] + 3.0 * (x[:, 2] > 1600) - 0.10 * (100 - x[:, 3])
        return torch.sigmoid((limit.unsqueeze(1) - FARES) / 1.5)

    def revenue(self, x, action):
        p = self.buy_probability(x).gather(1, action.unsqueeze(1)).squeeze(1)
        return FARES[action] * torch.bernoulli(p, generator=self.gen)


class RunningScale(nn.Module):
    """Standardises features by the mean and variance of everything seen so far (Chan's update)."""

    def __init__(self, dim):
        super().__init__()
        self.count = 1e-2
        self.mean = torch.zeros(dim)
        self.var = torch.ones(dim)

    @torch.no_grad()
    def update(self, x):
        n, mean, var = len(x), x.mean(0), x.var(0, unbiased=False)
        total = self.count + n
        delta = mean - self.mean
        self.var = (self.var * self.count + var * n + delta ** 2 * self.count * n / total) / total
        self.mean = self.mean + delta * n / total
        self.count = total

    def forward(self, x):
        return ((x - self.mean) / (self.var + 1e-6).sqrt()).clamp(-5, 5)


class RevenueModel(nn.Module):
    def __init__(self, dim=4, hidden=48):
        super().__init__()
        self.scale = RunningScale(dim)
        self.net = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                                 nn.Linear(hidden, len(FARES)))

    def forward(self, x):
        return FARES * torch.sigmoid(self.net(self.scale(x)))


def build(args):
    model = RevenueModel()
    return model, torch.optim.Adam(model.parameters(), lr=args.lr)


def work_week(model, optimizer, harbor, args, week):
    earned = best = 0.0
    for _ in range(7):
        x = harbor.requests(args.requests)
        if week == 0:
            model.scale.update(x)  # the traffic does not change later, the first week is enough
        with torch.no_grad():
            action = model(x).argmax(1)
        explore = torch.rand(len(x)) < args.epsilon
        action = torch.where(explore, torch.randint(len(FARES), (len(x),)), action)
        reward = harbor.revenue(x, action)
        expected = FARES * harbor.buy_probability(x)
        earned += expected.gather(1, action.unsqueeze(1)).mean().item() / 7
        best += expected.max(1).values.mean().item() / 7
        for _ in range(args.passes):
            for idx in torch.randperm(len(x)).split(64):
                value = model(x[idx]).gather(1, action[idx].unsqueeze(1)).squeeze(1)
                loss = ((value - reward[idx]) / FARES[action[idx]]).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    print(f"week {week}  revenue per request {earned:.3f}  of {best:.3f} possible  ({100 * earned / best:.1f} %)")
    return earned / best


parser = argparse.ArgumentParser()
for flag, default in [("--weeks", 4), ("--requests", 640), ("--passes", 4), ("--lr", 2e-3), ("--epsilon", 0.1), ("--seed", 2)]:
    parser.add_argument(flag, type=type(default), default=default)
args = parser.parse_args()
torch.manual_seed(args.seed)
harbor, snapshot, shares = Harbor(args.seed), None, []
for week in range(args.weeks):
    model, optimizer = build(args)
    if snapshot is not None:
        state = torch.load(io.BytesIO(snapshot))
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    shares.append(work_week(model, optimizer, harbor, args, week))
    buffer = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, buffer)
    snapshot = buffer.getvalue()
