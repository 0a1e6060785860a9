"""PGD adversarial training of a small convolutional classifier."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    eps: float = 0.3
    alpha: float = 0.1
    attack_steps: int = 4
    epochs: int = 8
    batch: int = 64
    lr: float = 0.05
    clean_weight: float = 0.5
    seed: int = 17


def make_images(n, templates, noise=0.6):
    y = torch.randint(0, templates.size(0), (n,))
    x = templates[y] + noise * torch.randn(n, 1, 10, 10)
    return x, y


class SmallCNN(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
        )
        self.classifier = nn.Linear(64, classes)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


class PGD:
    def __init__(self, model, eps, alpha, steps):
        self.model = model
        self.eps, self.alpha, self.steps = eps, alpha, steps

    def perturb(self, x, y):
        delta = torch.empty_like(x).uniform_(-self.eps, self.eps).requires_grad_(True)
        for _ in range(self.steps):
            loss = F.cross_entropy(self.model(x + delta), y)
            loss.backward()
            with torch.no_grad():
                delta.add_(self.alpha * delta.grad.sign()).clamp_(-self.eps, self.eps)
            delta.grad.zero_()
        return (x + delta).detach()


def train_step(model, attack, optimizer, x, y, cfg):
    model.train()
    optimizer.zero_grad()
    x_adv = attack.perturb(x, y)
    clean_loss = F.cross_entropy(model(x), y)
    adv_loss = F.cross_entropy(model(x_adv), y)
    loss = cfg.clean_weight * clean_loss + (1 - cfg.clean_weight) * adv_loss
    loss.backward()
    optimizer.step()
    return loss.item()


def robust_accuracy(model, attack, x, y):
    model.eval()
    x_adv = attack.perturb(x, y)
    with torch.no_grad():
        clean = (model(x).argmax(1) == y).float().mean().item()
        robust = (model(x_adv).argmax(1) == y).float().mean().item()
    return clean, robust


cfg = Config()
torch.manual_seed(cfg.seed)
templates = torch.randn(4, 1, 10, 10)
x_train, y_train = make_images(800, templates)
x_test, y_test = make_images(300, templates)
model = SmallCNN(templates.size(0))
attack = PGD(model, cfg.eps, cfg.alpha, cfg.attack_steps)
optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr, momentum=0.9)

for epoch in range(cfg.epochs):
    total, batches = 0.0, 0
    for idx in torch.randperm(x_train.size(0)).split(cfg.batch):
        total += train_step(model, attack, optimizer, x_train[idx], y_train[idx], cfg)
        batches += 1
    clean, robust = robust_accuracy(model, attack, x_test, y_test)
    print(f"epoch {epoch} loss {total / batches:.3f} clean {clean:.3f} robust {robust:.3f}")
