import torch
import torch.nn.functional as F
from torch import nn


class Curve(nn.Module):
    def __init__(self, width=20):
        super().__init__()
        self.weights = nn.ParameterDict({
            "w1": nn.Parameter(torch.randn(width, 1)),
            "b1": nn.Parameter(torch.randn(width)),
            "w2": nn.Parameter(torch.randn(1, width) / width ** 0.5),
            "b2": nn.Parameter(torch.zeros(1)),
        })

    def forward(self, x):
        p = self.weights
        return F.linear(torch.tanh(F.linear(x, p["w1"], p["b1"])), p["w2"], p["b2"])


def batches(x, y, size):
    return zip(x.split(size), y.split(size))


def descend(model, x, y, epochs, penalty=lambda: 0.0):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(epochs):
        for xb, yb in batches(x, y, 20):
            fit = F.mse_loss(model(xb), yb)
            optimizer.zero_grad()
            (fit + penalty()).backward()
            optimizer.step()
    return fit.item()


def diagonal(model, x, y):
    table = {k: torch.zeros_like(p) for k, p in model.weights.items()}
    parts = 0
    model.zero_grad()
    for xb, yb in batches(x, y, 2):
        model.zero_grad()
        F.mse_loss(model(xb), yb, reduction="sum").backward()
        for k, p in model.weights.items():
            table[k].addcmul_(p.grad, p.grad)
        parts += 1
    return {k: v / parts for k, v in table.items()}


class Anchor:
    def __init__(self, model, precision, strength):
        self.model, self.precision, self.strength = model, precision, strength
        self.mean = {k: p.detach().clone() for k, p in model.weights.items()}

    def __call__(self):
        terms = [(self.precision[k] * (p - self.mean[k]).square()).sum() for k, p in self.model.weights.items()]
        return self.strength * torch.stack(terms).sum()


def main():
    torch.manual_seed(19)
    left = torch.linspace(-3, 0, 80)[torch.randperm(80), None]
    right = torch.linspace(0, 3, 80)[torch.randperm(80), None]
    target = lambda x: torch.sin(2 * x) + 0.3 * x
    model = Curve()
    print(f"left fit {descend(model, left, target(left), 120):.4f}")
    precision = diagonal(model, left, target(left))
    for k, v in precision.items():
        print(f"  precision {k}: mean {v.mean().item():.4f} max {v.max().item():.4f}")
    print(f"right fit {descend(model, right, target(right), 120, Anchor(model, precision, 20.0)):.4f}")
    with torch.no_grad():
        print(f"left after {F.mse_loss(model(left), target(left)).item():.4f}")


if __name__ == "__main__":
    main()
