"""Learning to rank: order the fruit lots of an auction day by quality with a pairwise logistic loss."""
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class AuctionDay:
    features: torch.Tensor   # (lots, d)
    grade: torch.Tensor      # (lots,) integer 0..4


def make_days(n_days, seed, d=10):
    rng = np.random.default_rng(seed)
    direction = np.random.default_rng(123).normal(size=d)
    days = []
    for _ in range(n_days):
        lots = int(rng.integers(6, 15))
        x = rng.normal(size=(lots, d))
        quality = x @ direction * 0.4 + 0.8 * np.tanh(x[:, 0] * x[:, 1]) + rng.normal() * 2 + 0.2 * rng.normal(size=lots)
        ranks = quality.argsort().argsort()
        grade = (ranks * 5 // lots).astype(np.int64)
        days.append(AuctionDay(torch.tensor(x, dtype=torch.float32), torch.from_numpy(grade)))
    return days


class Scorer(nn.Module):
    def __init__(self, d=10, hidden=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.out = nn.Linear(hidden, 1, bias=False)

    def forward(self, x):
        return self.out(self.net(x))


def dcg_weights(n):
    return 1.0 / torch.log2(torch.arange(n, dtype=torch.float32) + 2)


def lambda_loss(scores, grade):
    """scores: (lots, 1), grade: (lots,)"""
    diff = scores - scores.squeeze(1)
    better = grade.unsqueeze(1) > grade
    gain = 2.0 ** grade.float() - 1
    with torch.no_grad():
        position = scores.squeeze(1).argsort(descending=True).argsort()
        discount = dcg_weights(len(grade))[position]
        ideal = (gain.sort(descending=True).values * dcg_weights(len(grade))).sum()
        swap = (gain.unsqueeze(1) - gain).abs() * (discount.unsqueeze(1) - discount).abs() / ideal
    return (swap * F.softplus(-diff))[better].sum()


@torch.no_grad()
def ndcg(model, days):
    values = []
    for day in days:
        gain = 2.0 ** day.grade.float() - 1
        order = model(day.features).squeeze(1).argsort(descending=True)
        w = dcg_weights(len(gain))
        values.append(((gain[order] * w).sum() / (gain.sort(descending=True).values * w).sum()).item())
    return float(np.mean(values))


class Fitter:
    def __init__(self, model, lr=3e-3, days_per_step=10):
        self.model, self.days_per_step = model, days_per_step
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)
        self.rng = np.random.default_rng(9)

    def epoch(self, days):
        total = 0.0
        order = self.rng.permutation(len(days))
        for start in range(0, len(order), self.days_per_step):
            self.opt.zero_grad()
            chosen = order[start:start + self.days_per_step]
            for k in chosen:
                loss = lambda_loss(self.model(days[k].features), days[k].grade) / len(chosen)
                loss.backward()
                total += loss.item() * len(chosen)
            self.opt.step()
        return total / len(days)


if __name__ == "__main__":
    torch.manual_seed(0)
    train_days, test_days = make_days(120, seed=1), make_days(60, seed=2)
    fitter = Fitter(Scorer())
    print(f"before training: ndcg {ndcg(fitter.model, test_days):.4f}")
    for epoch in range(1, 11):
        loss = fitter.epoch(train_days)
        if epoch % 2 == 0:
            print(f"epoch {epoch:2d}  loss {loss:.4f}  test ndcg {ndcg(fitter.model, test_days):.4f}")
