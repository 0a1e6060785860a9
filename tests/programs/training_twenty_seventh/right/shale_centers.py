"""Softmax + center loss on open-set patches; the class centers have their own optimizer and learning rate."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    classes: int = 10
    dim: int = 16
    center_weight: float = 0.01
    center_lr: float = 0.5
    lr: float = 1e-3
    batch: int = 64
    epochs: int = 6


class CenterLoss(nn.Module):
    """Mean squared distance of each feature to the center of its class (Wen et al., 2016)."""

    def __init__(self, classes, dim):
        super().__init__()
        self.centers = nn.Parameter(torch.randn(classes, dim))

    def forward(self, feature, label):
        return 0.5 * (feature - self.centers[label]).pow(2).sum(1).mean()


class PatchNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.PReLU(16),
            nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.PReLU(32), nn.Flatten())
        self.feature = nn.Linear(32 * 9, cfg.dim)
        self.classify = nn.Linear(cfg.dim, cfg.classes)

    def forward(self, x):
        f = self.feature(self.body(x))
        return f, self.classify(f)


class Patches:
    def __init__(self, classes, seed):
        self.gen = torch.Generator().manual_seed(seed)
        self.proto = F.interpolate(torch.randn(classes, 1, 4, 4, generator=self.gen), size=12, mode="nearest")

    def draw(self, n, classes):
        label = torch.randint(0, classes, (n,), generator=self.gen)
        x = self.proto[label] + 0.9 * torch.randn(n, 1, 12, 12, generator=self.gen)
        return x, label


@torch.no_grad()
def report(net, center, x, y):
    net.eval()
    f, logits = net(x)
    accuracy = (logits.argmax(1) == y).float().mean().item()
    by_center = (torch.cdist(f, center.centers).argmin(1) == y).float().mean().item()
    spread = (f - center.centers[y]).norm(dim=1).mean() / torch.pdist(center.centers).mean()
    net.train()
    return accuracy, by_center, spread.item()


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.net, self.center = PatchNet(cfg), CenterLoss(cfg.classes, cfg.dim)
        self.opt_net = torch.optim.Adam(self.net.parameters(), lr=cfg.lr)
        self.opt_center = torch.optim.SGD(self.center.parameters(), lr=cfg.center_lr)

    def gradients(self, x, y):
        feature, logits = self.net(x)
        loss = F.cross_entropy(logits, y) + self.cfg.center_weight * self.center(feature, y)
        self.opt_net.zero_grad()
        self.opt_center.zero_grad()
        loss.backward()
        for p in self.center.parameters():
            p.grad.mul_(1.0 / self.cfg.center_weight)
        return loss.detach()

    def step(self, x, y):
        loss = self.gradients(x, y)
        self.opt_net.step()
        self.opt_center.step()
        return loss.item()


def main():
    cfg = Config()
    torch.manual_seed(0)
    patches = Patches(cfg.classes, seed=1)
    x, y = patches.draw(1920, cfg.classes)
    held_out = patches.draw(500, cfg.classes)
    trainer = Trainer(cfg)
    for epoch in range(cfg.epochs):
        order = torch.randperm(len(x))
        losses = [trainer.step(x[i], y[i]) for i in order.split(cfg.batch)]
        acc, near, spread = report(trainer.net, trainer.center, *held_out)
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.3f} acc {acc:.3f} nearest center {near:.3f} "
              f"spread {spread:.3f}")
    return trainer, held_out


if __name__ == "__main__":
    trainer, held_out = main()
