from itertools import chain

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(5)


def blobs(n, side=8):
    grid = torch.arange(side).float()
    cy, cx = torch.rand(2, n, 1, 1) * 6 + 1
    r = torch.rand(n, 1, 1) * 2 + 1
    return torch.exp(-((grid[:, None] - cy) ** 2 + (grid[None, :] - cx) ** 2) / r).flatten(1)


coder = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 8))
painter = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 64))
book = nn.Embedding(32, 8)

opt = torch.optim.AdamW(chain(coder.parameters(), painter.parameters(), book.parameters()), lr=3e-3)


def snap(z):
    with torch.no_grad():
        nearest = torch.cdist(z, book.weight).argmin(1)
    chosen = book(nearest)
    return z + (chosen - z).detach(), chosen, nearest


def losses(images):
    z = coder(images)
    quantised, chosen, nearest = snap(z)
    parts = {
        "paint": F.mse_loss(painter(quantised), images) * 10,
        "book": F.mse_loss(chosen, z.detach()),
        "commit": 0.25 * F.mse_loss(z, chosen.detach()),
    }
    return parts, nearest


images = blobs(768)
for epoch in range(8):
    for batch in images[torch.randperm(len(images))].split(64):
        parts, nearest = losses(batch)
        opt.zero_grad()
        sum(parts.values()).backward()
        opt.step()
    text = " ".join(f"{k} {v.item():.4f}" for k, v in parts.items())
    print(f"epoch {epoch} {text} codes in use {nearest.unique().numel()}")
