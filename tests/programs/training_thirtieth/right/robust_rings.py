"""TRADES: a classifier of nested rings whose predictions stay the same in a ball around each point."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def rings(n, generator, dims=6):
    y = torch.randint(0, 3, (n,), generator=generator)
    angle = 2 * math.pi * torch.rand(n, generator=generator)
    radius = 0.6 + 0.8 * y + 0.06 * torch.randn(n, generator=generator)
    x = 0.1 * torch.randn(n, dims, generator=generator)
    x[:, 0] += radius * angle.cos()
    x[:, 1] += radius * angle.sin()
    return x, y


def make_net(dims=6, width=48, classes=3):
    return nn.Sequential(
        nn.Linear(dims, width, bias=False), nn.BatchNorm1d(width), nn.ReLU(),
        nn.Linear(width, width, bias=False), nn.BatchNorm1d(width), nn.ReLU(),
        nn.Dropout(0.05), nn.Linear(width, classes),
    )


def project(x_adv, x, epsilon):
    return torch.min(torch.max(x_adv, x - epsilon), x + epsilon)


def kl_attack(model, x, epsilon, steps=4):
    """Points of the ball where the prediction is farthest from the one at its center."""
    mode = model.training
    model.eval()
    for p in model.parameters():
        p.requires_grad_(False)
    clean = model(x).softmax(1)
    x_adv = x + 1e-3 * torch.randn_like(x)
    for _ in range(steps):
        x_adv.requires_grad_(True)
        divergence = F.kl_div(model(x_adv).log_softmax(1), clean, reduction="sum")
        (slope,) = torch.autograd.grad(divergence, x_adv)
        x_adv = project(x_adv.detach() + epsilon / 2 * slope.sign(), x, epsilon)
    for p in model.parameters():
        p.requires_grad_(True)
    model.train(mode)
    return x_adv


def label_attack(model, x, y, epsilon, steps=8):
    x_adv = x + epsilon * (2 * torch.rand_like(x) - 1)
    for _ in range(steps):
        x_adv = x_adv.detach().requires_grad_(True)
        (slope,) = torch.autograd.grad(F.cross_entropy(model(x_adv), y), x_adv)
        with torch.no_grad():
            x_adv = project(x_adv + epsilon / 4 * slope.sign(), x, epsilon)
    return x_adv


def trades_step(model, optimizer, x, y, epsilon, beta=3.0):
    x_adv = kl_attack(model, x, epsilon)
    logits = model(x)
    natural = F.cross_entropy(logits, y)
    robust = F.kl_div(model(x_adv).log_softmax(1), logits.softmax(1), reduction="batchmean")
    optimizer.zero_grad()
    (natural + beta * robust).backward()
    optimizer.step()
    return natural.item(), robust.item()


def evaluate(model, x, y, epsilon):
    model.eval()
    x_adv = label_attack(model, x, y, epsilon)
    with torch.no_grad():
        clean = (model(x).argmax(1) == y).float().mean().item()
        robust = (model(x_adv).argmax(1) == y).float().mean().item()
    model.train()
    return clean, robust


def main():
    torch.manual_seed(12)
    generator = torch.Generator().manual_seed(6)
    x, y = rings(800, generator)
    x_test, y_test = rings(400, generator)
    epsilon = 0.15
    model = make_net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=120)
    for step in range(1, 121):
        index = torch.randint(0, len(x), (100,))
        natural, robust = trades_step(model, optimizer, x[index], y[index], epsilon)
        scheduler.step()
        if step % 30 == 0:
            print(f"step {step:4d}  natural {natural:.3f}  robust {robust:.4f}")
    clean, robust = evaluate(model, x_test, y_test, epsilon)
    print(f"clean accuracy {clean:.3f}  under attack {robust:.3f}")
    return model, clean, robust


if __name__ == "__main__":
    main()
