"""Phototherapy dose response with Monte Carlo dropout: predictive mean and spread for held-out patients."""
import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    features: int = 8
    hidden: int = 64
    dropout: float = 0.15
    epochs: int = 40
    batch_size: int = 64
    lr: float = 4e-3
    passes: int = 40
    seed: int = 21


def make_patients(count, cfg, seed, spread=1.0):
    g = torch.Generator().manual_seed(seed)
    x = spread * torch.randn(count, cfg.features, generator=g)
    dose = x[:, 0]
    response = torch.sigmoid(2 * dose + x[:, 1]) * (1 + 0.5 * x[:, 2]) + 0.3 * torch.sin(2 * x[:, 3])
    noise = 0.05 + 0.1 * torch.sigmoid(x[:, 4])
    return x, response + noise * torch.randn(count, generator=g)


class DoseNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(cfg.features, cfg.hidden), nn.BatchNorm1d(cfg.hidden), nn.ReLU(), nn.Dropout(cfg.dropout),
            nn.Linear(cfg.hidden, cfg.hidden), nn.BatchNorm1d(cfg.hidden), nn.ReLU(), nn.Dropout(cfg.dropout),
        )
        self.head = nn.Linear(cfg.hidden, 2)

    def forward(self, x):
        mean, log_var = self.head(self.body(x)).unbind(-1)
        return mean, log_var.clamp(-8, 4)


def sampling_mode(model):
    model.train()
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.eval()
    return model


@torch.no_grad()
def predict(model, x, passes):
    """Average of stochastic forward passes (Gal & Ghahramani, 2016)."""
    sampling_mode(model)
    means, variances = [], []
    for _ in range(passes):
        mean, log_var = model(x)
        means.append(mean)
        variances.append(log_var.exp())
    means = torch.stack(means)
    return means.mean(0), means.var(0), torch.stack(variances).mean(0)


def beta_nll(mean, log_var, target, beta=0.5):
    """Gaussian likelihood, reweighted by the predicted variance (Seitzer et al., 2022)."""
    nll = 0.5 * (log_var + (target - mean).pow(2) / log_var.exp())
    return (nll * log_var.exp().detach().pow(beta)).mean()


def main(cfg):
    torch.manual_seed(cfg.seed)
    x, y = make_patients(1200, cfg, seed=1)
    x_test, y_test = make_patients(500, cfg, seed=2)
    x_far, _ = make_patients(500, cfg, seed=3, spread=3.0)
    model = DoseNet(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, cfg.epochs)
    for epoch in range(cfg.epochs):
        model.train()
        total = 0.0
        for rows in torch.randperm(len(x)).split(cfg.batch_size):
            mean, log_var = model(x[rows])
            loss = beta_nll(mean, log_var, y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        scheduler.step()
        if (epoch + 1) % 10 == 0:
            mean, epistemic, noise = predict(model, x_test, cfg.passes)
            sigma = (epistemic + noise).sqrt()
            covered = ((y_test - mean).abs() < 1.645 * sigma).float().mean().item()
            print(f"epoch {epoch + 1:2d}  loss {total / len(x):+.4f}  test rmse {F.mse_loss(mean, y_test).sqrt():.4f}"
                  f"  90% interval covers {covered:.3f}")
    near, far = (math.sqrt(predict(model, data, cfg.passes)[1].mean().item()) for data in (x_test, x_far))
    print(f"model spread: in range {near:.4f}, out of range {far:.4f}")
    return model, x_test, y_test


if __name__ == "__main__":
    model, x_test, y_test = main(Config())
