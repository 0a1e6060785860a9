"""Uniform model soup over the tail of training, then a pass over the data for the normalisation statistics.

The soup averages weights of the last checkpoints (SWA with a constant rate). Batch-norm statistics of the soup are
not averages of the members' statistics, so they are collected anew with a cumulative average.
"""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

CLASSES, SIDE = 5, 10


def glyphs(n, seed):
    rng = np.random.default_rng(seed)
    bank = np.random.default_rng(99).normal(size=(CLASSES, SIDE, SIDE))
    y = rng.integers(0, CLASSES, size=n)
    scale = rng.uniform(0.4, 1.0, size=(n, 1, 1))
    x = scale * bank[y] + rng.normal(0, 1.6, size=(n, SIDE, SIDE))
    return torch.tensor(x[:, None], dtype=torch.float32), torch.tensor(y)


class Block(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(cout)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


def build():
    return nn.Sequential(Block(1, 16), nn.MaxPool2d(2), Block(16, 32), nn.Dropout(0.2), nn.Flatten(),
                         nn.Linear(32 * 25, CLASSES))


@torch.no_grad()
def add_to_soup(soup, model, count):
    """Running mean of the parameters; buffers stay as they are."""
    for s, p in zip(soup.parameters(), model.parameters()):
        s.add_((p - s) / (count + 1))


@torch.no_grad()
def recalibrate(net, x, batch):
    """Train mode for the batch-norm layers only; outputs of the passes are not needed."""
    net.eval()
    norms = [m for m in net.modules() if isinstance(m, nn.BatchNorm2d)]
    for m in norms:
        m.reset_running_stats()
        m.momentum = None
        m.train()
    for chunk in x.split(batch):
        net(chunk)
    net.eval()


@torch.no_grad()
def score(net, x, y):
    was_training = net.training
    net.eval()
    logits = net(x)
    net.train(was_training)
    return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


def main():
    torch.manual_seed(3)
    train_x, train_y = glyphs(1200, 1)
    test_x, test_y = glyphs(1500, 2)
    model, soup = build(), build()
    soup.requires_grad_(False)

    epochs, tail, batch, base = 14, 6, 48, 0.08
    optimizer = torch.optim.SGD(model.parameters(), lr=base, momentum=0.9, weight_decay=5e-4)
    steps_per_epoch = -(-len(train_x) // batch)

    def rate(step):
        warm = min(1.0, (step + 1) / 30)
        return warm * (1.0 if step < (epochs - tail) * steps_per_epoch else 0.5)

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    members = 0
    for epoch in range(epochs):
        model.train()
        for idx in torch.randperm(len(train_x)).split(batch):
            x = train_x[idx] + 0.2 * torch.randn(len(idx), 1, SIDE, SIDE)
            loss = F.cross_entropy(model(x), train_y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
        if epoch >= epochs - tail:
            add_to_soup(soup, model, members)
            members += 1

    before = score(soup, test_x, test_y)
    recalibrate(soup, train_x[torch.randperm(len(train_x))], batch=200)
    last, after = score(model, test_x, test_y), score(soup, test_x, test_y)
    print(f"members {members}")
    print(f"last weights          loss {last[0]:.3f}  accuracy {last[1]:.3f}")
    print(f"soup, old statistics  loss {before[0]:.3f}  accuracy {before[1]:.3f}")
    print(f"soup, recalibrated    loss {after[0]:.3f}  accuracy {after[1]:.3f}")


main()
