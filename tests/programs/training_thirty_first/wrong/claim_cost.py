"""Estimate the log cost of motor claims from a sample in which one kind of claim is over-represented.

Claims of a pilot region were collected far more often than they occur in the portfolio. Each claim
carries the inverse of its sampling rate as a weight, so that the fit serves the portfolio.
"""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FEATURES = 5


def true_log_cost(x):
    trend = 0.8 * x[:, 0] - 0.5 * x[:, 1] + 0.3 * x[:, 2]
    bend = 1.2 * torch.relu(x[:, 3]) - 0.9 * x[:, 3] * (x[:, 0] > 0).float()
    return trend + bend


def portfolio(count, generator):
    x = torch.randn(count, FEATURES, generator=generator)
    y = true_log_cost(x) + 0.3 * torch.randn(count, generator=generator)
    return x, y.unsqueeze(1)


def collected_sample(count, generator):
    """A sample that takes every claim of the pilot region and few of the others, with its weights."""
    x, y = portfolio(6 * count, generator)
    rate = torch.where(x[:, 3] > 0.5, 0.95, 0.05)
    taken = torch.rand(len(x), generator=generator) < rate
    x, y, rate = x[taken][:count], y[taken][:count], rate[taken][:count]
    weight = 1.0 / rate
    return x, y, weight / weight.mean()


class CostModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("center", torch.zeros(FEATURES))
        self.register_buffer("scale", torch.ones(FEATURES))
        self.linear = nn.Linear(FEATURES, 1)

    def standardize(self, x):
        self.center.copy_(x.mean(dim=0))
        self.scale.copy_(x.std(dim=0))

    def forward(self, x):
        return self.linear((x - self.center) / self.scale)


def weighted_loss(prediction, target, weight):
    per_claim = F.mse_loss(prediction, target, reduction="none")
    return (weight * per_claim).mean()


def train(model, loader, epochs=12):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.85)
    curve = []
    for epoch in range(epochs):
        total, seen = 0.0, 0
        for x, y, weight in loader:
            optimizer.zero_grad()
            loss = weighted_loss(model(x), y, weight)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(x)
            seen += len(x)
        schedule.step()
        curve.append(total / seen)
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1:2d}  loss {curve[-1]:.4f}  lr {schedule.get_last_lr()[0]:.4f}")
    return curve


@torch.no_grad()
def portfolio_report(model, x, y):
    prediction = model(x)
    return F.mse_loss(prediction, y).item(), (prediction - y).mean().item()


if __name__ == "__main__":
    torch.manual_seed(17)
    generator = torch.Generator().manual_seed(4)
    x, y, weight = collected_sample(1500, generator)
    model = CostModel()
    model.standardize(x)
    loader = DataLoader(TensorDataset(x, y, weight), batch_size=64, shuffle=True)
    curve = train(model, loader)
    test_mse, test_bias = portfolio_report(model, *portfolio(4000, generator))
    print(f"portfolio mse {test_mse:.4f}  bias {test_bias:+.4f}")
    print("coefficients", " ".join(f"{c:+.2f}" for c in model.linear.weight.detach().flatten().tolist()))
