"""Electricity load forecasting with a range from Monte Carlo dropout and a head for the noise.

At forecasting time the network stays in evaluation mode except for its dropout layers, which go on sampling: the
spread over the passes is the model's uncertainty, to which the predicted noise variance is added.
The noise head is trained on the features as they are and doesn't shape them. Its residuals contain the spread of
the dropout as well, so that the range is a little wide, which the dispatchers prefer.
"""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 2
HOURS, CONTEXT, HORIZON = 24 * 220, 48, 12
STEPS, BATCH, PASSES = 900, 96, 40

torch.manual_seed(SEED)
rng = np.random.default_rng(SEED)


def make_load():
    t = np.arange(HOURS)
    temperature = 10 + 8 * np.sin(2 * np.pi * t / (24 * 220)) + np.cumsum(rng.normal(0, 0.15, HOURS)) * 0.3
    day = 1.0 + 0.35 * np.sin(2 * np.pi * (t - 7) / 24) + 0.15 * np.sin(4 * np.pi * (t - 3) / 24)
    weekend = np.where((t // 24) % 7 >= 5, 0.8, 1.0)
    heating = 0.03 * np.maximum(0, 15 - temperature)
    noise = rng.standard_normal(HOURS) * np.where((t % 24 >= 7) & (t % 24 < 20), 0.10, 0.04)
    return day * weekend + heating + noise


load = torch.tensor(make_load(), dtype=torch.float32)
split = int(0.8 * HOURS)
MEAN, STD = load[:split].mean(), load[:split].std()
scaled = (load - MEAN) / STD


def windows(starts):
    idx = starts[:, None] + torch.arange(CONTEXT + HORIZON)
    hour = 2 * np.pi * ((starts + CONTEXT) % 24) / 24
    dow = F.one_hot(((starts + CONTEXT) // 24) % 7, 7)
    calendar = torch.cat([hour.sin()[:, None], hour.cos()[:, None], dow], dim=1)
    values = scaled[idx]
    return torch.cat([values[:, :CONTEXT], calendar], dim=1), values[:, CONTEXT:]


class LoadNet(nn.Module):
    def __init__(self, hidden=96, drop=0.05):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(CONTEXT + 9, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Dropout(drop),
            nn.Linear(hidden, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Dropout(drop),
        )
        self.mean = nn.Linear(hidden, HORIZON)
        self.noise = nn.Sequential(nn.Linear(hidden, 32), nn.ReLU(), nn.Linear(32, HORIZON))

    def forward(self, x):
        h = self.body(x)
        return self.mean(h), self.noise(h.detach())


def sampling_mode(model):
    model.eval()
    for m in model.modules():
        if isinstance(m, nn.Dropout):
            m.train()
    return model


net = LoadNet()
opt = torch.optim.AdamW(
    [
        {"params": [*net.body.parameters(), *net.mean.parameters()], "lr": 3e-3, "weight_decay": 1e-3},
        {"params": net.noise.parameters(), "lr": 3e-3, "weight_decay": 0.0},
    ]
)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, STEPS)
net.train()
for step in range(STEPS):
    x, y = windows(torch.randint(0, split - CONTEXT - HORIZON, (BATCH,)))
    mu, log_var = net(x)
    point_loss = F.mse_loss(mu, y)
    noise_loss = F.gaussian_nll_loss(mu.detach(), y, log_var.exp())
    opt.zero_grad()
    (point_loss + noise_loss).backward()
    opt.step()
    sched.step()
    if step % 300 == 299:
        print(f"step {step + 1}  squared error {point_loss.item():.4f}  noise nll {noise_loss.item():.4f}")

x, y = windows(torch.arange(split, HOURS - CONTEXT - HORIZON))
with torch.no_grad():
    sampling_mode(net)
    passes = [net(x) for _ in range(PASSES)]
    mus = torch.stack([mu for mu, _ in passes])
    noise_var = torch.stack([log_var.exp() for _, log_var in passes]).mean(dim=0)
    centre, model_var = mus.mean(dim=0), mus.var(dim=0)
    total_std = (model_var + noise_var).sqrt()
    inside = ((y - centre).abs() <= 1.645 * total_std).float().mean().item()
    net.eval()
    single = (net(x)[0] - y).abs().mean().item()
print(f"MAE one pass {single:.4f}  mean of {PASSES} passes {(centre - y).abs().mean().item():.4f}")
print(f"std of the model {model_var.mean().sqrt():.4f}, of the noise {noise_var.mean().sqrt():.4f}; in the 90% range {inside:.3f}")
