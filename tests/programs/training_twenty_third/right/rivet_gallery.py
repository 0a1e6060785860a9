"""Rivet inspection on a new line: reuse the backbone of the old line, train a new head, later open the last block too."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

OLD_DEFECTS, NEW_DEFECTS = 5, 3


def photos(n, kinds, seed, contrast=1.0, offset=0.0):
    """16x16 rivet heads: a disc plus one of several marks (none, left/right crack, flat, halo)."""
    g = torch.Generator().manual_seed(seed)
    yy, xx = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
    radius = ((yy - 7.5) ** 2 + (xx - 7.5) ** 2).sqrt()
    marks = torch.stack([
        torch.zeros(16, 16),
        ((yy - xx).abs() < 1).float() * (radius < 6),
        ((yy + xx - 15).abs() < 1).float() * (radius < 6),
        (yy < 5).float() * (radius < 6),
        ((radius - 6).abs() < 0.8).float(),
    ])
    label = torch.randint(0, kinds, (n,), generator=g)
    picture = (radius < 5).float() + 0.9 * marks[label] + 0.5 * torch.randn(n, 16, 16, generator=g)
    return (contrast * picture + offset)[:, None], label


def block(c_in, c_out):
    return nn.Sequential(nn.Conv2d(c_in, c_out, 3, padding=1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU(), nn.MaxPool2d(2))


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.low = block(1, 8)
        self.high = block(8, 16)

    def forward(self, x):
        return self.high(self.low(x)).flatten(1)


class Inspector(nn.Module):
    """`backbone` keeps the statistics of the old line: the new batches are too small to estimate them."""

    def __init__(self, backbone):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(16 * 16, NEW_DEFECTS))
        self.backbone.requires_grad_(False)

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, x):
        return self.head(self.backbone(x))


def pretrain(steps):
    x, y = photos(3000, OLD_DEFECTS, seed=1)
    backbone, head = Backbone(), nn.Linear(16 * 16, OLD_DEFECTS)
    net = nn.Sequential(backbone, head)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(steps):
        i = torch.randint(0, len(x), (64,))
        loss = F.cross_entropy(net(x[i]), y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    return backbone


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


def finetune(backbone, args):
    x, y = photos(240, NEW_DEFECTS, seed=2, contrast=0.7, offset=0.3)
    vx, vy = photos(800, NEW_DEFECTS, seed=3, contrast=0.7, offset=0.3)
    model = Inspector(backbone)
    opt = torch.optim.AdamW([
        {"params": model.head.parameters(), "lr": args.lr},
        {"params": model.backbone.parameters(), "lr": args.lr / 5},
    ], weight_decay=0.05)
    for epoch in range(args.epochs):
        if epoch == args.open_at:
            model.backbone.high.requires_grad_(True)
        model.train()
        for rows in torch.randperm(len(y)).split(8):
            loss = F.cross_entropy(model(x[rows]), y[rows], label_smoothing=0.05)
            opt.zero_grad()
            loss.backward()
            opt.step()
        valid = accuracy(model, vx, vy)
        print(f"epoch {epoch}  loss {loss.item():.3f}  valid accuracy {valid:.3f}")
    return model, valid


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for flag, value in (("--pretrain-steps", 100), ("--epochs", 8), ("--open-at", 4), ("--lr", 2e-3)):
        parser.add_argument(flag, type=type(value), default=value)
    options, _ = parser.parse_known_args()
    torch.manual_seed(17)
    model, valid = finetune(pretrain(options.pretrain_steps), options)
