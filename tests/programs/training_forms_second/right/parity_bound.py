from functools import partial

import torch
import torch.nn.functional as F
from torch import nn


def make_applicants(n, gen):
    group = (torch.rand(n, generator=gen) < 0.4).float()
    x = torch.randn(n, 9, generator=gen)
    x[:, 0] += 1.2 * group
    x[:, 1] -= 0.6 * group
    logit = x[:, 0] + 0.8 * x[:, 2] - 0.5 * x[:, 3]
    y = (torch.rand(n, generator=gen) < torch.sigmoid(logit)).float()
    return x, y, group


def disparity(logits, group):
    p = torch.sigmoid(logits)
    mean_a = (p * group).sum() / group.sum()
    mean_b = (p * (1 - group)).sum() / (1 - group).sum()
    return (mean_a - mean_b).abs()


def lagrangian(fit, gap, weight, slack):
    return fit + weight * (gap - slack)


def train(epochs=6, batch=128, slack=0.05):
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(5)
    x, y, group = make_applicants(1536, gen)
    scorer = nn.Sequential(nn.Linear(9, 24), nn.ELU(), nn.Linear(24, 1))
    raw = nn.Parameter(torch.zeros(()))
    primal = torch.optim.Adam(scorer.parameters(), lr=1e-2)
    dual = torch.optim.SGD([raw], lr=2.0)
    for epoch in range(epochs):
        total = 0.0
        for rows in torch.randperm(len(x), generator=gen).split(batch):
            logits = scorer(x[rows]).squeeze(1)
            fit = F.binary_cross_entropy_with_logits(logits, y[rows])
            gap = disparity(logits, group[rows])
            objective = partial(lagrangian, weight=F.softplus(raw).item(), slack=slack)
            loss = objective(fit, gap)
            primal.zero_grad()
            loss.backward()
            primal.step()

            ascent = -F.softplus(raw) * (gap.detach() - slack)
            dual.zero_grad()
            ascent.backward()
            dual.step()
            total += fit.item()
        with torch.no_grad():
            full = disparity(scorer(x).squeeze(1), group)
        print(f"epoch {epoch}  bce {total / 12:.4f}  gap {full:.4f}  multiplier {F.softplus(raw).item():.3f}")


if __name__ == "__main__":
    train()
