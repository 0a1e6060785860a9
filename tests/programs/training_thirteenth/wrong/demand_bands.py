"""Probabilistic demand forecasting: one global model for many stores, point forecast plus 90% band.

The network reads four weeks of (scaled) daily sales with the calendar and the store's embedding, and returns
mean and scale for each of the next seven days. The planning team uses the band for the safety stock.
"""
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 11
N_STORES, DAYS = 40, 400
CONTEXT, HORIZON = 28, 7
Z90 = 1.6449

torch.manual_seed(SEED)
rng = np.random.default_rng(SEED)


def make_sales():
    t = np.arange(DAYS)
    level = rng.uniform(20, 80, size=(N_STORES, 1))
    weekly = rng.uniform(0.1, 0.4, size=(N_STORES, 1)) * np.sin(2 * np.pi * (t + rng.integers(0, 7, (N_STORES, 1))) / 7)
    yearly = 0.15 * np.sin(2 * np.pi * t / 365 + rng.uniform(0, 6, (N_STORES, 1)))
    spread = rng.uniform(0.03, 0.12, size=(N_STORES, 1)) * np.where(t % 7 >= 5, 1.8, 1.0)
    return level * (1 + weekly + yearly + spread * rng.standard_normal((N_STORES, DAYS)))


class WindowSampler:
    def __init__(self, sales, first, last):
        self.sales = torch.tensor(sales, dtype=torch.float32)
        self.first, self.last = first, last

    def draw(self, n):
        store = torch.randint(0, N_STORES, (n,))
        start = torch.randint(self.first, self.last - CONTEXT - HORIZON, (n,))
        idx = start[:, None] + torch.arange(CONTEXT + HORIZON)[None, :]
        window = self.sales[store[:, None], idx]
        scale = window[:, :CONTEXT].mean(dim=1, keepdim=True)
        weekday = F.one_hot((start + CONTEXT) % 7, 7).float()
        return window[:, :CONTEXT] / scale - 1.0, store, weekday, window[:, CONTEXT:] / scale - 1.0


class DemandNet(nn.Module):
    def __init__(self, hidden=64, emb=8):
        super().__init__()
        self.store = nn.Embedding(N_STORES, emb)
        self.body = nn.Sequential(
            nn.Linear(CONTEXT + 7 + emb, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.loc = nn.Linear(hidden, HORIZON)
        self.scale = nn.Linear(hidden, HORIZON)
        nn.init.constant_(self.scale.bias, -1.5)

    def forward(self, history, store, weekday):
        h = self.body(torch.cat([history, weekday, self.store(store)], dim=1))
        return self.loc(h), F.softplus(self.scale(h)) + 1e-3


def train(model, sampler, steps=1200, batch=128):
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=3e-3, total_steps=steps)
    for step in range(steps):
        history, store, weekday, target = sampler.draw(batch)
        mu, sigma = model(history, store, weekday)
        loss = F.gaussian_nll_loss(mu, target, sigma)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        opt.step()
        sched.step()
        if step % 300 == 299:
            print(f"step {step + 1:4d}  nll {loss.item():.3f}")


@torch.no_grad()
def evaluate(model, sampler):
    model.eval()
    history, store, weekday, target = sampler.draw(4000)
    mu, sigma = model(history, store, weekday)
    inside = ((target - mu).abs() <= Z90 * sigma).float().mean().item()
    log_score = (-0.5 * ((target - mu) / sigma) ** 2 - sigma.log() - 0.5 * math.log(2 * math.pi)).mean().item()
    return (target - mu).abs().mean().item(), inside, 2 * Z90 * sigma.mean().item(), log_score


sales = make_sales()
train_windows = WindowSampler(sales, 0, 320)
test_windows = WindowSampler(sales, 320 - CONTEXT, DAYS)
net = DemandNet()
train(net, train_windows)
mae, coverage, width, log_score = evaluate(net, test_windows)
print(f"test MAE {mae:.4f}  inside the 90% band {coverage:.3f}  mean width {width:.4f}  log score {log_score:.3f}")
