"""One-day-ahead volatility with MC-dropout bands, on a two-regime return series.

A day embedding (weekday sine/cosine, fixed) and the last 20 absolute returns go in,
the mean and the log-variance of the next log absolute return come out.
"""
import math

import numpy as np
import torch
from torch import nn

torch.manual_seed(29)
rng = np.random.default_rng(29)

LOOKBACK, BATCH, EPOCHS, PASSES = 20, 64, 9, 40


def simulate(days=2600):
    """Stochastic volatility: log sigma is a slow AR(1) with a weekday effect."""
    log_sigma = np.zeros(days)
    for t in range(1, days):
        log_sigma[t] = 0.97 * log_sigma[t - 1] + 0.15 * rng.normal()
    weekday = np.arange(days) % 5
    log_abs = log_sigma + 0.3 * (weekday == 4) + np.log(np.abs(rng.standard_t(6, days)) + 0.1)
    return log_abs.astype(np.float32), weekday


class VolNet(nn.Module):
    def __init__(self, hidden=64, p=0.15):
        super().__init__()
        angle = torch.arange(5) * (2 * math.pi / 5)
        self.weekday = nn.Embedding.from_pretrained(torch.stack([angle.sin(), angle.cos()], dim=1), freeze=True)
        self.norm = nn.BatchNorm1d(LOOKBACK)
        self.body = nn.Sequential(
            nn.Linear(LOOKBACK + 2, hidden), nn.ReLU(), nn.Dropout(p),
            nn.Linear(hidden, hidden), nn.ReLU(), nn.Dropout(p),
        )
        self.mean, self.log_var = nn.Linear(hidden, 1), nn.Linear(hidden, 1)

    def forward(self, past, day):
        h = self.body(torch.cat([self.norm(past), self.weekday(day)], dim=1))
        return self.mean(h).squeeze(1), self.log_var(h).squeeze(1).clamp(-5, 5)


def gaussian_nll(mean, log_var, target):
    return 0.5 * (log_var + (target - mean) ** 2 / log_var.exp()).mean()


def beta_nll(mean, log_var, target, beta=0.5):
    """beta-NLL (Seitzer et al., 2022): weights every sample by its own predicted variance."""
    per_sample = 0.5 * (log_var + (target - mean) ** 2 / log_var.exp())
    return (per_sample * log_var.detach().exp() ** beta).mean()


def keep_sampling(model):
    """Evaluation mode, except for the dropout layers."""
    model.eval()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.train()


@torch.no_grad()
def predict_bands(model, past, day):
    keep_sampling(model)
    means, variances = [], []
    for _ in range(PASSES):
        mean, log_var = model(past, day)
        means.append(mean)
        variances.append(log_var.exp())
    means = torch.stack(means)
    total_var = torch.stack(variances).mean(0) + means.var(0, unbiased=False)
    return means.mean(0), total_var, means.var(0, unbiased=False)


log_abs, weekday = simulate()
past = torch.from_numpy(np.lib.stride_tricks.sliding_window_view(log_abs, LOOKBACK)[:-1].copy())
target, day = torch.from_numpy(log_abs[LOOKBACK:]), torch.from_numpy(weekday[LOOKBACK:])
split = int(0.8 * len(past))

model = VolNet()
optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=1e-3, weight_decay=1e-3)

for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for idx in torch.randperm(split).split(BATCH):
        loss = beta_nll(*model(past[idx], day[idx]), target[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    if epoch % 3 == 2:
        model.eval()
        with torch.no_grad():
            nll = gaussian_nll(*model(past[split:], day[split:]), target[split:]).item()
        print(f"epoch {epoch + 1:2d}  train loss {total / split:.4f}  test nll {nll:.4f}")

mean, var, model_var = predict_bands(model, past[split:], day[split:])
inside = ((target[split:] - mean).abs() < 1.645 * var.sqrt()).float().mean().item()
naive = (target[split:] - target[:split].mean()).pow(2).mean().item()
print(f"test mse {(target[split:] - mean).pow(2).mean().item():.4f} (constant forecast {naive:.4f})")
print(f"90% band covers {inside:.3f}, share of model uncertainty {(model_var / var).mean().item():.3f}")
