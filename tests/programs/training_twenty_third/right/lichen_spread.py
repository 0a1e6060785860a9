"""Message passing on a grid: predict how lichen covers a rock face, one week ahead.

Nodes are the cells of a torus, edges go to the four neighbours and are stored per direction, since each direction has
its own weights (wind and slope make the spread asymmetric).
"""
from dataclasses import dataclass

import torch
from torch import nn
import torch.nn.functional as F


@dataclass
class Config:
    side: int = 10
    hidden: int = 24
    layers: int = 2
    steps: int = 250
    batch: int = 16
    lr: float = 4e-3
    seed: int = 17


def grid_edges(side):
    """[direction][2, cells]: source and target of each edge, on a torus."""
    cells = torch.arange(side * side).view(side, side)
    edges = []
    for shift, dim in ((1, 0), (-1, 0), (1, 1), (-1, 1)):
        target = torch.roll(cells, shift, dim)
        edges.append(torch.stack([cells.flatten(), target.flatten()]))
    return edges


class DirectedLayer(nn.Module):
    def __init__(self, d_in, d_out, directions=4):
        super().__init__()
        self.own = nn.Linear(d_in, d_out)
        self.by_direction = nn.ModuleList([nn.Linear(d_in, d_out, bias=False) for _ in range(directions)])

    def forward(self, h, edges):
        # h: (cells, batch, features)
        inbox = torch.zeros(*h.shape[:2], self.own.out_features)
        for (src, dst), linear in zip(edges, self.by_direction):
            inbox[dst] += linear(h[src])
        return self.own(h) + inbox


class SpreadNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        dims = [1] + [cfg.hidden] * cfg.layers
        self.layers = nn.ModuleList([DirectedLayer(a, b) for a, b in zip(dims, dims[1:])])
        self.out = nn.Linear(cfg.hidden, 1)

    def forward(self, cover, edges):
        h = cover
        for layer in self.layers:
            h = F.gelu(layer(h, edges))
        return self.out(h).squeeze(-1)


def rock_faces(n, side, generator):
    now = (torch.rand(side * side, n, 1, generator=generator) < 0.25).float()
    grid = now.view(side, side, n)
    pressure = 1.4 * torch.roll(grid, 1, 0) + 0.2 * torch.roll(grid, -1, 0)
    pressure = pressure + 0.9 * torch.roll(grid, 1, 1) + 0.1 * torch.roll(grid, -1, 1) + 2.0 * grid
    after = (pressure > 0.95).float().view(side * side, n)
    flips = torch.rand(after.shape, generator=generator) < 0.03
    return now, torch.where(flips, 1 - after, after)


def balanced_accuracy(logits, target):
    guess = logits > 0
    return 0.5 * (guess[target == 1].float().mean() + (~guess[target == 0]).float().mean()).item()


def main(cfg=Config()):
    torch.manual_seed(cfg.seed)
    generator = torch.Generator().manual_seed(cfg.seed)
    edges = grid_edges(cfg.side)
    now, after = rock_faces(256, cfg.side, generator)
    now_test, after_test = rock_faces(64, cfg.side, generator)
    model = SpreadNet(cfg)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    for step in range(1, cfg.steps + 1):
        idx = torch.randint(0, now.size(1), (cfg.batch,), generator=generator)
        loss = F.binary_cross_entropy_with_logits(model(now[:, idx], edges), after[:, idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0:
            with torch.no_grad():
                acc = balanced_accuracy(model(now_test, edges), after_test)
            print(f"step {step:3d}  loss {loss.item():.3f}  balanced accuracy {acc:.3f}")
    return model, edges, now, after


if __name__ == "__main__":
    model, edges, now, after = main()
