import copy

import torch
from torch import nn
import torch.nn.functional as F


class DepthNet(nn.Module):
    def __init__(self, size=12):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(5, 12, 3, padding=1), nn.GroupNorm(3, 12), nn.SiLU(),
            nn.Conv2d(12, 12, 3, padding=1), nn.GroupNorm(3, 12), nn.SiLU(),
            nn.Conv2d(12, 1, 1),
        )
        line = torch.linspace(-1, 1, size)
        self.register_buffer("grid", torch.stack(torch.meshgrid(line, line, indexing="ij")))

    def forward(self, image):
        grid = self.grid.expand(len(image), -1, -1, -1)
        return self.body(torch.cat([image, grid], 1)).squeeze(1)


class Averaged:
    def __init__(self, model, decay):
        self.decay, self.updates = decay, 0
        self.module = copy.deepcopy(model).requires_grad_(False).eval()

    @torch.no_grad()
    def update(self, model):
        self.updates += 1
        keep = min(self.decay, (1 + self.updates) / (10 + self.updates))
        for mine, theirs in zip(self.module.parameters(), model.parameters()):
            mine.mul_(keep).add_(theirs, alpha=1 - keep)


def rooms(n, g):
    image = torch.rand(n, 3, 12, 12, generator=g)
    slope = torch.linspace(0, 1, 12)[:, None]
    return image, image.mean(1) + slope


def main(epochs=5):
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(8)
    x, y = rooms(160, g)
    xv, yv = rooms(64, g)
    model = DepthNet()
    average = Averaged(model, 0.95)
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(epochs):
        for idx in torch.randperm(len(x), generator=g).split(16):
            loss = F.l1_loss(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            average.update(model)
        with torch.no_grad():
            live, smooth = F.l1_loss(model(xv), yv), F.l1_loss(average.module(xv), yv)
        print(f"epoch {epoch} live {live:.4f} averaged {smooth:.4f}")
    return model, average


if __name__ == "__main__":
    model, average = main()
