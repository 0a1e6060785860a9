from typing import NamedTuple

import torch
from torch import nn


class Sweep(NamedTuple):
    frame: torch.Tensor
    xy: torch.Tensor
    height: torch.Tensor
    crowd: torch.Tensor


class Pillars(nn.Module):
    def __init__(self, cells=8, dim=10):
        super().__init__()
        self.cells, self.dim = cells, dim
        self.point = nn.Sequential(nn.Linear(3, dim), nn.ReLU())
        self.scene = nn.Sequential(nn.Conv2d(dim, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 1, 1))

    def forward(self, sweep, frames):
        feats = self.point(torch.cat([sweep.xy, sweep.height[:, None]], 1))
        cell = (sweep.xy * self.cells).long().clamp(0, self.cells - 1)
        canvas = feats.new_zeros(frames, self.cells, self.cells, self.dim)
        canvas[sweep.frame, cell[:, 1], cell[:, 0]] += feats
        return self.scene(canvas.permute(0, 3, 1, 2)).squeeze(1)


def scan(frames, points, gen, cells=8):
    centre = torch.rand(frames, 1, 2, generator=gen)
    spread = torch.rand(frames, points, 1, generator=gen) < 0.5
    near = centre + 0.12 * torch.randn(frames, points, 2, generator=gen)
    xy = torch.where(spread, near, torch.rand(frames, points, 2, generator=gen)).clamp(0, 0.999)
    frame = torch.arange(frames).repeat_interleave(points)
    xy = xy.reshape(-1, 2)
    height = 0.3 * torch.randn(frames * points, generator=gen) + 1
    cell = (xy * cells).long()
    flat = (frame * cells + cell[:, 1]) * cells + cell[:, 0]
    mass = torch.bincount(flat, weights=height, minlength=frames * cells * cells)
    return Sweep(frame, xy, height, torch.log1p(mass.clamp_min(0)).float().view(frames, cells, cells))


class Fit:
    def __init__(self, net, lr=6e-3):
        self.net = net
        self.opt = torch.optim.Adamax(net.parameters(), lr=lr)

    def __call__(self, sweep, frames):
        loss = nn.functional.mse_loss(self.net(sweep, frames), sweep.crowd)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


def main():
    torch.manual_seed(201)
    gen = torch.Generator().manual_seed(37)
    fit = Fit(Pillars())
    for step in range(140):
        loss = fit(scan(12, 160, gen), 12)
        if step % 28 == 27:
            print(f"step {step + 1:3d}  mse {loss:.5f}")


if __name__ == "__main__":
    main()
