"""Radiotherapy dose regression with predictive uncertainty, adapted to a new scanner.

A network is first trained on a large source cohort.  On the small target cohort only the head and the
per-channel scales are tuned, with the batch statistics of the source kept; at test time dropout stays on
and many stochastic passes give the mean and the epistemic spread.
"""
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(30)
FEATURES = 10
READOUT = torch.randn(FEATURES) / math.sqrt(FEATURES)


def cohort(n, gain=1.0, spread=1.0):
    x = spread * torch.randn(n, FEATURES)
    dose = torch.sin(1.5 * x @ READOUT) + 0.5 * gain * x[:, 0] + 0.2 * x[:, 1] * x[:, 2]
    return x, (dose + 0.1 * torch.randn(n)).unsqueeze(1)


class DoseNet(nn.Module):
    def __init__(self, width=64, p=0.1):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(FEATURES, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(p),
            nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(p),
        )
        self.head = nn.Linear(width, 2)
        self.statistics_fixed = False

    def train(self, mode=True):
        super().train(mode)
        if self.statistics_fixed:
            for m in self.modules():
                if isinstance(m, nn.BatchNorm1d):
                    m.eval()
        return self

    def freeze_statistics(self):
        self.statistics_fixed = True
        return self.train(self.training)

    def forward(self, x):
        mean, raw = self.head(self.trunk(x)).chunk(2, dim=1)
        return mean, nn.functional.softplus(raw) + 1e-3


def beta_nll(mean, var, target, beta=0.5):
    """Gaussian likelihood, each case weighted by its predicted variance to a fixed power."""
    nll = 0.5 * ((target - mean) ** 2 / var + var.log())
    return (nll * var.detach() ** beta).mean()


def fit(model, params, data, epochs, lr):
    loader = DataLoader(TensorDataset(*data), batch_size=32, shuffle=True)
    optimizer = torch.optim.AdamW(params, lr=lr, weight_decay=1e-4)
    model.train()
    for _ in range(epochs):
        for x, y in loader:
            loss = beta_nll(*model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


@torch.no_grad()
def predict(model, x, passes=60):
    model.train()
    means, variances = zip(*(model(x) for _ in range(passes)))
    model.eval()
    means, variances = torch.stack(means), torch.stack(variances)
    return means.mean(0), means.std(0), variances.mean(0).sqrt()


def main():
    model = DoseNet()
    fit(model, model.parameters(), cohort(1500), epochs=20, lr=3e-3)

    target, test, strange = cohort(160, gain=-1.0), cohort(400, gain=-1.0), cohort(400, gain=-1.0, spread=2.5)
    model.freeze_statistics()
    before = predict(model, test[0])[0]
    print(f"target rmse before adaptation {(before - test[1]).pow(2).mean().sqrt().item():.3f}")

    model.requires_grad_(False)
    tuned = [*model.head.parameters()]
    for m in model.trunk:
        if isinstance(m, nn.BatchNorm1d):
            tuned += [m.weight, m.bias]
    for p in tuned:
        p.requires_grad_(True)
    fit(model, tuned, target, epochs=60, lr=1e-2)

    mean, epistemic, aleatoric = predict(model, test[0])
    rmse = (mean - test[1]).pow(2).mean().sqrt().item()
    total = (epistemic ** 2 + aleatoric ** 2).sqrt()
    coverage = ((mean - test[1]).abs() < 1.96 * total).float().mean().item()
    far = predict(model, strange[0])[1].mean().item()
    print(f"target rmse after adaptation {rmse:.3f}  coverage of the 95% interval {coverage:.3f}")
    print(f"epistemic spread: target cohort {epistemic.mean().item():.3f}, unusual patients {far:.3f}")
    return rmse, coverage, model


if __name__ == "__main__":
    rmse, coverage, model = main()
