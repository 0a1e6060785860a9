"""Bayesian dose-response regression: cyclical SGLD over a small network, with a posterior predictive."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(37)
NOISE, PRIOR_STD, BATCH = 0.3, 1.0, 40
CYCLES, CYCLE_LEN, WARM = 4, 600, 300
LR_MAX, LR_MIN, EXPLORE = 4e-5, 2e-5, 0.5


def response(dose):
    return 1.2 * torch.sigmoid(3.0 * dose) + 0.4 * torch.sin(3.0 * dose)


def make_patients(n, low, high):
    dose = low + (high - low) * torch.rand(n, 1)
    return dose, response(dose) + NOISE * torch.randn(n, 1)


def make_net():
    return nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))


def potential(net, x, y, total):
    """Negative log posterior, with the likelihood rescaled from the batch to the whole data set."""
    fit = (net(x) - y).pow(2).sum() / (2 * NOISE ** 2) * (total / len(x))
    prior = sum(p.pow(2).sum() for p in net.parameters()) / (2 * PRIOR_STD ** 2)
    return fit + prior


def langevin_step(net, lr, temperature):
    for p in net.parameters():
        noise = torch.randn_like(p) * math.sqrt(2.0 * lr * temperature)
        p.data.add_(p.grad, alpha=-lr).add_(noise)
        p.grad = None


def cycle_lr(position):
    return LR_MIN + 0.5 * (LR_MAX - LR_MIN) * (1.0 + math.cos(math.pi * position))


def predict(members, x):
    with torch.no_grad():
        out = torch.stack([m(x) for m in members])
    return out.mean(0), (out.var(0, unbiased=True) + NOISE ** 2).sqrt()


dose, effect = make_patients(80, -1.5, 1.5)
test_dose, test_effect = make_patients(300, -1.5, 1.5)
net = make_net()

# a point estimate to start the chain from
warm = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(WARM):
    warm.zero_grad()
    F.mse_loss(net(dose), effect).backward()
    warm.step()
point = copy.deepcopy(net)
with torch.no_grad():
    point_rmse = (point(test_dose) - test_effect).pow(2).mean().sqrt().item()
print(f"point estimate: test rmse {point_rmse:.3f}")

net.zero_grad()
members = []
for cycle in range(CYCLES):
    for i in range(CYCLE_LEN):
        position = i / CYCLE_LEN
        idx = torch.randint(0, len(dose), (BATCH,))
        energy = potential(net, dose[idx], effect[idx], len(dose))
        energy.backward()
        # explore without noise first, then sample
        langevin_step(net, cycle_lr(position), temperature=0.0 if position < EXPLORE else 1.0)
        if position >= EXPLORE and i % 20 == 0:
            members.append(copy.deepcopy(net).requires_grad_(False))
    print(f"cycle {cycle + 1}: energy {energy.item():.1f}, {len(members)} members")

mean, std = predict(members, test_dose)
rmse = (mean - test_effect).pow(2).mean().sqrt().item()
covered = ((test_effect - mean).abs() < 1.96 * std).float().mean().item()
inside = predict(members, torch.zeros(1, 1))[1].item()
outside = predict(members, torch.full((1, 1), 3.5))[1].item()
print(f"posterior predictive: test rmse {rmse:.3f}, coverage of the 95% interval {covered:.3f}")
print(f"predictive std inside the data {inside:.3f}, far outside {outside:.3f}")
