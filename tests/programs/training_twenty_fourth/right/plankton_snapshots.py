"""Plankton images: plain SGD, then an average over late snapshots; abstention from sampled dropout masks."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

CLASSES, SIZE = 4, 16


def draw(n, g):
    """Rings, rods, blobs and crosses at random places with uneven light."""
    label = torch.randint(CLASSES, (n,), generator=g)
    grid = torch.arange(SIZE).float()
    cy, cx = (4 + 8 * torch.rand(2, n, 1, 1, generator=g)).unbind(0)
    dy, dx = grid.view(1, -1, 1) - cy, grid.view(1, 1, -1) - cx
    radius = (dy**2 + dx**2).sqrt()
    shapes = torch.stack([
        torch.exp(-((radius - 3) ** 2)),
        torch.exp(-(dy**2) - (dx / 4) ** 4),
        torch.exp(-((radius / 2.5) ** 4)),
        torch.exp(-(torch.minimum(dy.abs(), dx.abs()) ** 2) - (radius / 4) ** 4),
    ], 1)
    image = shapes[torch.arange(n), label]
    light = 0.5 + torch.rand(n, 1, 1, generator=g)
    return (light * image + 0.25 * torch.randn(n, SIZE, SIZE, generator=g)).unsqueeze(1), label


def build(width=12):
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1, bias=False), nn.BatchNorm2d(2 * width), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.4), nn.Linear(2 * width * (SIZE // 4) ** 2, CLASSES),
    )


class SnapshotMean:
    def __init__(self, model):
        self.model = copy.deepcopy(model).requires_grad_(False)
        self.count = 0

    @torch.no_grad()
    def add(self, model):
        self.count += 1
        for mean, value in zip(self.model.parameters(), model.parameters()):
            mean += (value - mean) / self.count

    @torch.no_grad()
    def settle(self, images, batch):
        """The mean has never seen data: estimate the batch statistics that belong to its weights."""
        norms = [m for m in self.model.modules() if isinstance(m, nn.BatchNorm2d)]
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None
        self.model.train()
        for part in images.split(batch):
            self.model(part)
        self.model.eval()


@torch.no_grad()
def accuracy(model, images, labels):
    was_training = model.training
    model.eval()
    result = model(images).argmax(1).eq(labels).float().mean().item()
    model.train(was_training)
    return result


@torch.no_grad()
def sampled_probabilities(model, images, draws=20):
    """Monte Carlo dropout: masks stay on, everything else is in inference mode."""
    model.eval()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.train()
    probabilities = torch.stack([model(images).softmax(1) for _ in range(draws)]).mean(0)
    model.eval()
    return probabilities


def main(epochs=10, average_from=5, batch=32):
    torch.manual_seed(1)
    g = torch.Generator().manual_seed(1)
    images, labels = draw(800, g)
    test_images, test_labels = draw(500, g)
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    mean = SnapshotMean(model)
    for epoch in range(epochs):
        for idx in torch.randperm(len(images), generator=g).split(batch):
            optimizer.zero_grad()
            F.cross_entropy(model(images[idx]), labels[idx]).backward()
            optimizer.step()
        if epoch >= average_from:
            mean.add(model)
        print(f"epoch {epoch}  test accuracy {accuracy(model, test_images, test_labels):.3f}")
    mean.settle(images, 100)
    print(f"mean of {mean.count} snapshots: {accuracy(mean.model, test_images, test_labels):.3f}")
    top, guess = sampled_probabilities(mean.model, test_images).max(1)
    sure = top > top.median()
    print(f"surer half: {guess[sure].eq(test_labels[sure]).float().mean().item():.3f}")
    return model, mean, images, test_images, test_labels


if __name__ == "__main__":
    model, mean, images, test_images, test_labels = main()
