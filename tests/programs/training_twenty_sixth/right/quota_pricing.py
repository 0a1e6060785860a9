"""Demand model with an equity quota: minimise the loss subject to a bound on the group gap (augmented Lagrangian).

The multiplier is a learned variable of its own. The saddle point is sought by descending on the weights while the
multiplier climbs on the same objective.
"""
import argparse

import torch
import torch.nn.functional as F
from torch import nn


class Multiplier(nn.Module):
    """Non-negative Lagrange multiplier, kept feasible by projection."""

    def __init__(self):
        super().__init__()
        self.value = nn.Parameter(torch.zeros(()))

    @torch.no_grad()
    def project(self):
        self.value.clamp_(min=0.0)

    def forward(self, violation):
        return self.value * violation


def make_customers(n, seed):
    g = torch.Generator().manual_seed(seed)
    group = (torch.rand(n, generator=g) < 0.4).long()
    x = torch.randn(n, 6, generator=g)
    x[:, 0] += 1.2 * group
    logit = 1.5 * x[:, 0] - x[:, 1] + 0.5 * x[:, 2] * x[:, 3] - 0.5
    y = (torch.rand(n, generator=g) < logit.sigmoid()).float()
    return x, y, group


def rate_gap(scores, group):
    """Difference in mean predicted acceptance between the two groups."""
    p = scores.sigmoid()
    return (p[group == 1].mean() - p[group == 0].mean()).abs()


def build_model():
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1), nn.Flatten(0))


def train(args):
    torch.manual_seed(args.seed)
    x, y, group = make_customers(args.customers, args.seed)
    model, multiplier = build_model(), Multiplier()
    descent = torch.optim.Adam(model.parameters(), lr=args.lr)
    ascent = torch.optim.SGD(multiplier.parameters(), lr=args.dual_lr, maximize=True)

    for step in range(1, args.steps + 1):
        scores = model(x)
        bce = F.binary_cross_entropy_with_logits(scores, y)
        violation = rate_gap(scores, group) - args.max_gap
        barrier = 0.5 * args.rho * violation.clamp(min=0.0).pow(2)
        lagrangian = bce + multiplier(violation) + barrier

        descent.zero_grad()
        ascent.zero_grad()
        lagrangian.backward()
        descent.step()
        ascent.step()
        multiplier.project()

        if step % 75 == 0:
            print(f"step {step:4d}  bce {bce.item():.4f}  gap {violation.item() + args.max_gap:.4f}  "
                  f"multiplier {multiplier.value.item():.3f}")
    return model, multiplier


@torch.no_grad()
def report(model, args):
    x, y, group = make_customers(args.customers, args.seed + 1)
    scores = model(x)
    accuracy = ((scores > 0).float() == y).float().mean().item()
    gap = rate_gap(scores, group).item()
    print(f"fresh customers: accuracy {accuracy:.3f}, gap {gap:.3f} (allowed {args.max_gap})")
    return accuracy, gap


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--customers", type=int, default=4000)
    parser.add_argument("--steps", type=int, default=375)
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--dual-lr", type=float, default=0.1)
    parser.add_argument("--rho", type=float, default=2.0)
    parser.add_argument("--max-gap", type=float, default=0.10)
    parser.add_argument("--seed", type=int, default=4)
    args = parser.parse_args()
    model, multiplier = train(args)
    return model, multiplier, report(model, args)


if __name__ == "__main__":
    model, multiplier, (accuracy, gap) = main()
