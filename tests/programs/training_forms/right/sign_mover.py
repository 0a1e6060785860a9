from dataclasses import dataclass
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(9)


@dataclass(frozen=True)
class MoverConfig:
    lr: float = 5e-3
    fast: float = 0.9
    slow: float = 0.99
    decay: float = 0.01


class SignMover(torch.optim.Optimizer):
    def __init__(self, params, cfg):
        self.cfg = cfg
        super().__init__(params, {"lr": cfg.lr, "decay": cfg.decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._move(p, group)

    def _move(self, p, group):
        memo = self.state[p].setdefault("m", torch.zeros_like(p))
        direction = torch.lerp(p.grad, memo, self.cfg.fast).sign()
        rate = group["lr"]
        p.mul_(1 - rate * group["decay"]).sub_(rate * direction)
        memo.lerp_(p.grad, 1 - self.cfg.slow)


def images(n):
    label = torch.randint(3, (n,))
    img = 2.5 * torch.randn(n, 1, 10, 10)
    for k in range(3):
        img[label == k, :, 3 * k:3 * k + 3] += 0.8
    return img, label


net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 64, 3))
opt = SignMover(net.parameters(), MoverConfig())
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=60)
for step in range(60):
    x, y = images(32)
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    if step % 15 == 14:
        print(f"step {step + 1} lr {sched.get_last_lr()[0]:.5f} loss {loss.item():.5f}")
with torch.no_grad():
    x, y = images(300)
    print(f"held out loss {F.cross_entropy(net(x), y).item():.5f}")
