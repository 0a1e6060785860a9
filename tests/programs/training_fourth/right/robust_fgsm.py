"""Adversarial training (FGSM) of a small classifier; the attack is a constant for the training step."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
EPS = 0.35


def two_rings(n):
    label = torch.randint(0, 2, (n,))
    radius = 1.0 + 1.2 * label + 0.12 * torch.randn(n)
    angle = 6.2832 * torch.rand(n)
    return torch.stack([radius * torch.cos(angle), radius * torch.sin(angle)], 1), label


def attack(model, x, y):
    x_adv = x.detach().clone().requires_grad_(True)
    loss = F.cross_entropy(model(x_adv), y)
    # first order only: FGSM treats the perturbation as data, so no graph of the gradient is made
    grad, = torch.autograd.grad(loss, x_adv)
    return (x_adv + EPS * grad.sign()).detach()


def train(adversarial):
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(2, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    x, y = two_rings(600)
    for epoch in range(20):
        for idx in torch.randperm(len(x)).split(60):
            xb, yb = x[idx], y[idx]
            loss = F.cross_entropy(model(xb), yb)
            if adversarial:
                loss = 0.5 * loss + 0.5 * F.cross_entropy(model(attack(model, xb, yb)), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model


def evaluate(model):
    x, y = two_rings(800)
    clean = (model(x).argmax(1) == y).float().mean().item()
    robust = (model(attack(model, x, y)).argmax(1) == y).float().mean().item()
    return clean, robust


for name, flag in [("plain", False), ("adversarial", True)]:
    clean, robust = evaluate(train(flag))
    print(f"{name:12s} clean {clean:.3f} under attack {robust:.3f}")
