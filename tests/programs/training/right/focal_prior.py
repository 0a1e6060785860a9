"""Rare event detection with focal loss and a prior on the output bias."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(12)
PRIOR = 0.02


class Detector(nn.Module):
    def __init__(self, n_features=10):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(n_features, 32), nn.ReLU())
        self.logit = nn.Linear(32, 1)
        nn.init.normal_(self.logit.weight, std=0.05)
        nn.init.constant_(self.logit.bias, -math.log((1 - PRIOR) / PRIOR))

    def forward(self, x):
        return self.logit(self.trunk(x)).squeeze(1)


def focal_loss(logits, target, gamma=2.0, alpha=0.75):
    ce = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    p = torch.sigmoid(logits)
    p_t = p * target + (1 - p) * (1 - target)
    a_t = alpha * target + (1 - alpha) * (1 - target)
    return (a_t * (1 - p_t) ** gamma * ce).sum() / target.sum().clamp(min=1)


def events(n):
    x = torch.randn(n, 10)
    return x, ((x[:, 0] + x[:, 1]) > 2.9).float()


x, y = events(2048)
x_val, y_val = events(2048)
model = Detector()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(8):
    total, batches = 0.0, 0
    for idx in torch.randperm(len(x)).split(256):
        loss = focal_loss(model(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total, batches = total + loss.item(), batches + 1
    with torch.no_grad():
        found = torch.sigmoid(model(x_val)) > 0.5
    hits = (found & (y_val == 1)).sum().item()
    print(f"epoch {epoch}: loss {total / batches:.4f} hits {hits}/{int(y_val.sum())} alarms {int(found.sum())}")
