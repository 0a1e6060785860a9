"""Choosing which lab measurements to order: a classifier over a clinic table with learned on/off gates per column."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

COLUMNS = 20
USEFUL = (1, 4, 7, 12)


def clinic_table(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, COLUMNS)).astype(np.float32)
    score = 1.6 * x[:, 1] - 1.3 * x[:, 4] + 1.2 * x[:, 7] * x[:, 12] + 0.6 * x[:, 12]
    y = (score + 0.4 * rng.normal(size=n) > 0).astype(np.float32)
    return torch.from_numpy(x), torch.from_numpy(y)


class ColumnGates(nn.Module):
    """Gates that are exactly 0 or 1 in the forward pass."""

    def __init__(self, columns):
        super().__init__()
        self.logit = nn.Parameter(torch.full((columns,), 1.0))

    def forward(self, x):
        p = torch.sigmoid(self.logit)
        hard = (p > 0.5).float()
        gate = hard - p.detach() + p
        return x * gate

    def expected_open(self):
        return torch.sigmoid(self.logit).sum()

    @torch.no_grad()
    def chosen(self):
        return (torch.sigmoid(self.logit) > 0.5).nonzero().flatten().tolist()


class GatedClassifier(nn.Module):
    def __init__(self, columns, hidden=32):
        super().__init__()
        self.gates = ColumnGates(columns)
        self.body = nn.Sequential(
            nn.Linear(columns, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, 1)
        )

    def forward(self, x):
        return self.body(self.gates(x)).squeeze(-1)


def run_epoch(model, opt, x, y, price, order):
    model.train()
    total = 0.0
    for idx in order.split(64):
        fit = F.binary_cross_entropy_with_logits(model(x[idx]), y[idx])
        loss = fit + price * model.gates.expected_open()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += fit.item() * len(idx)
    return total / len(x)


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return ((model(x) > 0).float() == y).float().mean().item()


def main():
    torch.manual_seed(5)
    gen = torch.Generator().manual_seed(5)
    x, y = clinic_table(1500, 1)
    xt, yt = clinic_table(500, 2)
    model = GatedClassifier(COLUMNS)
    opt = torch.optim.Adam([
        {"params": model.gates.parameters(), "lr": 1e-2},
        {"params": model.body.parameters(), "lr": 2e-3},
    ])
    for epoch in range(30):
        order = torch.randperm(len(x), generator=gen)
        fit = run_epoch(model, opt, x, y, price=0.004, order=order)
        if epoch % 6 == 5:
            print(f"epoch {epoch} fit {fit:.3f} open {len(model.gates.chosen())}")
    acc = accuracy(model, xt, yt)
    print(f"columns {model.gates.chosen()} accuracy {acc:.3f}")
    return model, acc


if __name__ == "__main__":
    model, acc = main()
