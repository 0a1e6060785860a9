"""Transfer learning homework: pre-train on stripes, then fine-tune on a small set of crosses.

The fine-tuning follows the recipe of the lecture: first only the new classifier, then the last
block as well, at last the whole network, with a smaller learning rate after each stage.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE = 16
STAGES = [("classifier", 4), ("block2", 8), ("block1", 8)]


def stripes(n, classes, gen):
    """Source task: the direction of a sinusoidal grating."""
    y = torch.randint(0, classes, (n,), generator=gen)
    angle = y * math.pi / classes
    rows, cols = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    phase = 6.3 * torch.rand(n, 1, 1, generator=gen)
    wave = rows * torch.sin(angle)[:, None, None] + cols * torch.cos(angle)[:, None, None]
    x = torch.sin(wave * 1.1 + phase) + 0.4 * torch.randn(n, SIZE, SIZE, generator=gen)
    return x.unsqueeze(1), y


def crosses(n, gen):
    """Target task: 0 = plus, 1 = x, 2 = ring, 3 = square, at a random place."""
    y = torch.randint(0, 4, (n,), generator=gen)
    grid = torch.arange(SIZE).float()
    cy, cx = 5 + 6 * torch.rand(2, n, 1, 1, generator=gen)
    dy, dx = (grid.view(1, -1, 1) - cy).abs(), (grid.view(1, 1, -1) - cx).abs()
    near = (torch.maximum(dy, dx) < 4.5).float()
    shapes = torch.stack([
        (torch.minimum(dy, dx) < 0.8) * near,
        ((dy - dx).abs() < 1.0) * near,
        (((dy ** 2 + dx ** 2).sqrt() - 3.5).abs() < 0.7).float(),
        ((torch.maximum(dy, dx) - 3.5).abs() < 0.7).float(),
    ])
    x = 1.5 * shapes[y, torch.arange(n)] + 0.6 * torch.randn(n, SIZE, SIZE, generator=gen)
    return x.unsqueeze(1), y


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.block1 = nn.Sequential(nn.Conv2d(1, 12, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2))
        self.block2 = nn.Sequential(nn.Conv2d(12, 24, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool2d(2))
        self.classifier = nn.Linear(24 * 4, classes)

    def forward(self, x):
        return self.classifier(self.block2(self.block1(x)).flatten(1))


def run_epoch(net, optimizer, x, y, batch=32):
    for idx in torch.randperm(len(x)).split(batch):
        loss = F.cross_entropy(net(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def accuracy(net, x, y):
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


def fine_tune(net, x, y, x_test, y_test):
    for p in net.parameters():
        p.requires_grad = False
    net.classifier = nn.Linear(net.classifier.in_features, 4)
    trainable = filter(lambda p: p.requires_grad, net.parameters())
    optimizer = torch.optim.Adam(trainable, lr=3e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)
    for name, epochs in STAGES:
        for p in getattr(net, name).parameters():
            p.requires_grad = True
        for _ in range(epochs):
            loss = run_epoch(net, optimizer, x, y)
        scheduler.step()
        open_now = sum(p.numel() for p in net.parameters() if p.requires_grad)
        print(f"up to {name:10s} ({open_now:5d} weights free): loss {loss:.3f}  "
              f"test acc {accuracy(net, x_test, y_test):.3f}")
    return optimizer


def main():
    torch.manual_seed(2)
    gen = torch.Generator().manual_seed(9)
    x_src, y_src = stripes(600, 6, gen)
    x, y = crosses(400, gen)
    x_test, y_test = crosses(500, gen)
    net = Net(6)
    source_opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(4):
        run_epoch(net, source_opt, x_src, y_src)
    print(f"source accuracy {accuracy(net, x_src, y_src):.3f}")
    before = {k: v.clone() for k, v in net.state_dict().items()}
    optimizer = fine_tune(net, x, y, x_test, y_test)
    final = accuracy(net, x_test, y_test)
    print(f"fine-tuned accuracy {final:.3f}")
    return net, before, optimizer, final


if __name__ == "__main__":
    main()
