"""Classify galaxy cut-outs (toy) and evaluate an exponential moving average of the weights."""
import copy
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    size: int = 16
    train: int = 480
    test: int = 400
    batch: int = 32
    epochs: int = 6
    lr: float = 2e-3
    decay: float = 0.95
    seed: int = 0


def cutouts(n, size):
    ys, xs = torch.meshgrid(torch.linspace(-1, 1, size), torch.linspace(-1, 1, size), indexing="ij")
    label = torch.randint(0, 3, (n,))
    angle = 3.1416 * torch.rand(n, 1, 1)
    u = xs * torch.cos(angle) + ys * torch.sin(angle)
    v = -xs * torch.sin(angle) + ys * torch.cos(angle)
    width = torch.tensor([0.5, 0.2, 0.5])[label][:, None, None]
    image = torch.exp(-(u / 0.5) ** 2 - (v / width) ** 2)
    ring = torch.exp(-((u ** 2 + v ** 2).sqrt() - 0.5) ** 2 / 0.02)
    image = torch.where((label == 2)[:, None, None], ring, image)
    counts = 40 + 60 * image + 8 * torch.randn(n, size, size)
    return counts[:, None], label


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        layers = []
        for inp, out in [(1, 8), (8, 16), (16, 16)]:
            layers += [nn.Conv2d(inp, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU(), nn.MaxPool2d(2)]
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


class WeightAverage:
    def __init__(self, model, decay):
        self.decay = decay
        self.model = copy.deepcopy(model).requires_grad_(False)
        self.model.eval()

    @torch.no_grad()
    def update(self, model):
        for average, current in zip(self.model.parameters(), model.parameters()):
            average.mul_(self.decay).add_(current, alpha=1 - self.decay)


@torch.no_grad()
def accuracy(model, images, labels):
    was_training = model.training
    model.eval()
    result = (model(images).argmax(1) == labels).float().mean().item()
    model.train(was_training)
    return result


def main(cfg):
    torch.manual_seed(cfg.seed)
    torch.set_num_threads(1)
    images, labels = cutouts(cfg.train, cfg.size)
    test_images, test_labels = cutouts(cfg.test, cfg.size)
    model = ConvNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    ema = WeightAverage(model, cfg.decay)
    for epoch in range(cfg.epochs):
        model.train()
        for idx in torch.randperm(cfg.train).split(cfg.batch):
            loss = F.cross_entropy(model(images[idx]), labels[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            ema.update(model)
        print(f"epoch {epoch} loss {loss.item():.3f} ema accuracy {accuracy(ema.model, test_images, test_labels):.3f}")
    return accuracy(model, test_images, test_labels), accuracy(ema.model, test_images, test_labels), ema.model, model


if __name__ == "__main__":
    raw_acc, ema_acc, average, live = main(Config())
    print(f"submitted: averaged model, test accuracy {ema_acc:.3f}")
