"""Hours until a bearing fails, from vibration features: Cox proportional hazards with a network (DeepSurv)."""
import argparse

import torch
from torch import nn


def test_bench(n, generator):
    """Features, hours observed, and whether the bearing failed (1) or was taken off the bench (0)."""
    x = torch.randn(n, 6, generator=generator)
    wear = 0.8 * x[:, 0] + 0.6 * x[:, 1].abs() - 0.5 * x[:, 2] * x[:, 3]
    uniform = torch.rand(2, n, generator=generator).clamp_min(1e-7)
    life = 900.0 * (-uniform[0].log() / wear.exp()) ** (1 / 1.5)
    off_bench = 200.0 + 1300.0 * uniform[1]
    return x, torch.minimum(life, off_bench), (life <= off_bench).float()


def by_hours(x, hours, failed):
    order = hours.argsort()
    return x[order], hours[order], failed[order]


def cox_loss(score, failed):
    """Negative log partial likelihood of rows in order of their hours."""
    at_risk = score.flip(0).logcumsumexp(0).flip(0)
    return (at_risk - score)[failed > 0].mean()


def breslow(score, hours, failed):
    """Cumulative baseline hazard at every observed hour."""
    at_risk = score.exp().flip(0).cumsum(0).flip(0)
    return hours, (failed / at_risk).cumsum(0)


class LifeNet(nn.Module):
    def __init__(self, n_features):
        super().__init__()
        self.scale = nn.BatchNorm1d(n_features, affine=False)
        self.body = nn.Sequential(nn.Linear(n_features, 32), nn.Tanh(), nn.Linear(32, 16), nn.Tanh())
        self.out = nn.Linear(16, 1, bias=False)

    def forward(self, x):
        return self.out(self.body(self.scale(x)))[:, 0]


@torch.no_grad()
def assess(model, baseline, x, hours, failed, horizon=800.0):
    """Concordance, and the mean predicted against the observed survival at the horizon."""
    score = model(x)
    earlier = (hours[:, None] < hours) & (failed[:, None] > 0)
    concordance = ((score[:, None] > score) & earlier).sum() / earlier.sum()
    grid, hazard = baseline
    at = torch.searchsorted(grid, torch.tensor(horizon)) - 1
    predicted = torch.exp(-hazard[at] * score.exp()).mean()
    steps = 1 - failed / torch.arange(len(hours), 0, -1)
    kaplan_meier = steps[hours <= horizon].prod()
    return concordance.item(), predicted.item(), kaplan_meier.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bearings", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch", type=int, default=256)
    args = parser.parse_args([])

    torch.manual_seed(3)
    x, hours, failed = test_bench(args.bearings, torch.Generator().manual_seed(3))
    cut = int(0.75 * args.bearings)
    x_train, hours_train, failed_train = by_hours(x[:cut], hours[:cut], failed[:cut])
    test = by_hours(x[cut:], hours[cut:], failed[cut:])

    model = LifeNet(x.shape[1])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    for step in range(args.steps):
        model.train()
        rows = torch.randperm(cut)[:args.batch].sort().values
        loss = cox_loss(model(x_train[rows]), failed_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        if step % 100 == 99:
            model.eval()
            with torch.no_grad():
                baseline = breslow(model(x_train), hours_train, failed_train)
            c, predicted, observed = assess(model, baseline, *test)
            print(f"step {step + 1}: loss {loss.item():.3f}  concordance {c:.3f}  "
                  f"alive at 800 h: {predicted:.3f} predicted, {observed:.3f} observed")


if __name__ == "__main__":
    main()
