from dataclasses import dataclass

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR

torch.manual_seed(8)


@dataclass(frozen=True)
class Settings:
    lr: float
    fast: float = 0.9
    slow: float = 0.99


class Lionlike(Optimizer):
    def __init__(self, params, settings):
        self.settings = settings
        super().__init__(params, {"lr": settings.lr, "decay": 1e-3})

    def _direction(self, p):
        memory = self.state[p].setdefault("memory", torch.zeros_like(p))
        way = torch.lerp(p.grad, memory, self.settings.fast).sign_()
        memory.lerp_(p.grad, 1 - self.settings.slow)
        return way

    def _move(self, p, decay, rate):
        p.mul_(1 - rate * decay)
        p.sub_(self._direction(p), alpha=rate)

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in (q for q in group["params"] if q.grad is not None):
                self._move(p, group["decay"], group["lr"])


ROUNDS = 160
grid = torch.linspace(-3, 3, 200).unsqueeze(1)
wave = torch.sin(2 * grid) * torch.exp(-grid.abs() / 2)
field = nn.Sequential(nn.Linear(1, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 1))
opt = Lionlike(field.parameters(), Settings(lr=5e-3))
plan = CosineAnnealingLR(opt, T_max=ROUNDS)
for it in range(ROUNDS):
    opt.zero_grad()
    loss = nn.functional.smooth_l1_loss(field(grid), wave)
    loss.backward()
    opt.step()
    plan.step()
    if it % 40 == 39:
        print(f"{it + 1:4d} loss {loss.item():.5f} rate {plan.get_last_lr()[0]:.2e}")
