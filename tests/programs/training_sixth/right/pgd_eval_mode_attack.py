"""Adversarial training in which attacks are computed in eval mode and the update in train mode."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class SensorNet(nn.Module):
    def __init__(self, channels=3, classes=4):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(channels, 12, 5, padding=2), nn.BatchNorm1d(12), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(12, 24, 5, padding=2), nn.BatchNorm1d(24), nn.ReLU(), nn.AdaptiveAvgPool1d(2), nn.Flatten(),
        )
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(48, classes)

    def forward(self, x):
        return self.head(self.drop(self.features(x)))


def pgd(model, x, y, eps, alpha, steps):
    was_training = model.training
    model.eval()
    delta = torch.zeros_like(x).uniform_(-eps, eps)
    for _ in range(steps):
        delta.requires_grad_(True)
        loss = F.cross_entropy(model(x + delta), y)
        (grad,) = torch.autograd.grad(loss, delta)
        delta = (delta.detach() + alpha * grad.sign()).clamp_(-eps, eps)
    model.train(was_training)
    return x + delta


def trades_loss(model, x, x_adv, y, beta):
    clean = model(x)
    adversarial = model(x_adv)
    robust = F.kl_div(F.log_softmax(adversarial, 1), F.log_softmax(clean, 1), reduction="batchmean", log_target=True)
    return F.cross_entropy(clean, y) + beta * robust


def make_signals(n, patterns):
    y = torch.randint(0, patterns.size(0), (n,))
    return patterns[y] + 0.8 * torch.randn(n, *patterns.shape[1:]), y


def evaluate(model, x, y, args):
    model.eval()
    x_adv = pgd(model, x, y, args.eps, args.alpha, args.steps)
    with torch.no_grad():
        clean = (model(x).argmax(1) == y).float().mean().item()
        robust = (model(x_adv).argmax(1) == y).float().mean().item()
    return clean, robust


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--eps", type=float, default=0.2)
    parser.add_argument("--alpha", type=float, default=0.07)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--beta", type=float, default=2.0)
    parser.add_argument("--epochs", type=int, default=8)
    args = parser.parse_args()
    torch.manual_seed(18)
    patterns = torch.randn(4, 3, 24)
    x, y = make_signals(600, patterns)
    x_test, y_test = make_signals(300, patterns)
    model = SensorNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(args.epochs):
        model.train()
        beta = 0.0 if epoch < 2 else args.beta
        total = 0.0
        for idx in torch.randperm(x.size(0)).split(60):
            x_adv = pgd(model, x[idx], y[idx], args.eps, args.alpha, args.steps)
            loss = trades_loss(model, x[idx], x_adv, y[idx], beta)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        clean, robust = evaluate(model, x_test, y_test, args)
        print(f"epoch {epoch} loss {total / 10:.3f} clean {clean:.3f} robust {robust:.3f}")


if __name__ == "__main__":
    main()
