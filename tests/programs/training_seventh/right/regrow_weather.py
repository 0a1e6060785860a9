"""Next-day temperature from station readings with a network that stays 15 percent dense and moves its connections."""
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

STATIONS, DAYS = 12, 5


def season(n, rng):
    phase = rng.uniform(0, 2 * math.pi, (n, 1, 1))
    t = np.arange(DAYS + 1)[None, :, None] / 5
    offset = np.linspace(0, 2, STATIONS)[None, None]
    x = np.sin(phase + t + offset) * rng.uniform(0.5, 1.5, (n, 1, 1)) + 0.3 * rng.standard_normal((n, DAYS + 1, STATIONS))
    wind = np.roll(x[:, -2], 1, axis=1)
    target = 0.6 * np.sin(phase[:, 0] + t[0, -1] + offset[0, 0, :3]) + 0.4 * np.tanh(wind[:, :3])
    to = lambda a: torch.tensor(a, dtype=torch.float32)
    return to(x[:, :DAYS].reshape(n, -1)), to(target)


class SparseLayers:
    def __init__(self, model, opt, density, swap=0.3):
        self.opt, self.swap = opt, swap
        self.masks = {}
        for m in model:
            if isinstance(m, nn.Linear) and m.out_features > 8:
                keep = int(density * m.weight.numel())
                mask = torch.zeros(m.weight.numel())
                mask[torch.randperm(len(mask))[:keep]] = 1
                self.masks[m.weight] = mask.view_as(m.weight)
        self.apply_()

    @torch.no_grad()
    def apply_(self):
        for w, mask in self.masks.items():
            w.mul_(mask)

    @torch.no_grad()
    def hide_gradients(self):
        for w, mask in self.masks.items():
            w.grad.mul_(mask)

    @torch.no_grad()
    def move(self, share):
        """Drops the smallest live weights and opens the places with the largest gradient."""
        for w, mask in self.masks.items():
            k = int(share * self.swap * mask.sum())
            live = mask.bool()
            drop = w.abs().masked_fill(~live, math.inf).flatten().topk(k, largest=False).indices
            grow = w.grad.abs().masked_fill(live, -1).flatten().topk(k).indices
            mask.view(-1)[drop] = 0
            mask.view(-1)[grow] = 1
            for key in ("exp_avg", "exp_avg_sq"):
                if key in self.opt.state[w]:
                    self.opt.state[w][key].mul_(mask)
                    self.opt.state[w][key].view(-1)[grow] = 0
            w.view(-1)[grow] = 0
        self.apply_()

    def density(self):
        live = sum((w != 0).sum().item() for w in self.masks)
        return live / sum(w.numel() for w in self.masks)


def main(steps=500, batch=64, every=25):
    torch.manual_seed(22)
    rng = np.random.default_rng(9)
    x, y = season(2000, rng)
    held_x, held_y = season(500, rng)
    model = nn.Sequential(nn.Linear(STATIONS * DAYS, 96), nn.SiLU(), nn.Linear(96, 96), nn.SiLU(), nn.Linear(96, 3))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    sparse = SparseLayers(model, opt, density=0.15)
    for i in range(steps):
        rows = torch.from_numpy(rng.integers(0, len(x), batch))
        loss = F.mse_loss(model(x[rows]), y[rows])
        opt.zero_grad()
        loss.backward()
        if i % every == every - 1 and i < 0.75 * steps:
            sparse.move(0.5 * (1 + math.cos(math.pi * i / (0.75 * steps))))
            continue
        sparse.hide_gradients()
        opt.step()
        sparse.apply_()
        if i % 100 == 0:
            print(f"step {i:4d}  loss {loss.item():.4f}  live {sparse.density():.3f}")
    with torch.no_grad():
        err = F.mse_loss(model(held_x), held_y).item()
    print(f"held-out mse {err:.4f}  live share {sparse.density():.3f}")


if __name__ == "__main__":
    main()
