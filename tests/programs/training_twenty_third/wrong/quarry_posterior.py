"""Ore grade along a drill core: Bayesian regression by preconditioned SGLD with predictive intervals."""
import math
from dataclasses import dataclass, field

import torch
import torch.nn as nn
from torch.func import functional_call

torch.manual_seed(8)


@dataclass
class Settings:
    hidden: int = 32
    batch: int = 32
    steps: int = 4000
    burn_in: int = 2000
    thin: int = 50
    lr: float = 1e-3
    lr_final: float = 4e-4
    prior_std: float = 1.5
    noise_std: float = 0.10
    rms_decay: float = 0.99
    depths: tuple = field(default=((-2.0, -0.6), (0.7, 2.0)))  # cored sections; nothing recovered in between


def grade(depth):
    return torch.sin(2.2 * depth) + 0.3 * depth


def drill(cfg, n):
    d = torch.cat([lo + (hi - lo) * torch.rand(n // 2, 1) for lo, hi in cfg.depths])
    return d, grade(d) + cfg.noise_std * torch.randn_like(d)


class GradeNet(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.out(self.body(x))


class LangevinSampler:
    """pSGLD (Li et al., 2016) on the potential U = -log p(data|w) - log p(w)."""

    def __init__(self, net, cfg, n_data):
        self.net, self.cfg, self.n = net, cfg, n_data
        self.square = [torch.ones_like(p) for p in net.parameters()]
        self.samples = []

    def potential(self, x, y):
        nll = ((self.net(x) - y) ** 2).sum() / (2 * self.cfg.noise_std ** 2) * (self.n / len(x))
        prior = sum((p ** 2).sum() for p in self.net.parameters()) / (2 * self.cfg.prior_std ** 2)
        return nll + prior

    def step(self, x, y, lr):
        u = self.potential(x, y)
        grads = torch.autograd.grad(u, list(self.net.parameters()))
        with torch.no_grad():
            for p, g, v in zip(self.net.parameters(), grads, self.square):
                scaled = g / self.n
                v.mul_(self.cfg.rms_decay).addcmul_(scaled, scaled, value=1 - self.cfg.rms_decay)
                precond = 1.0 / (v.sqrt() + 1e-2)
                p.add_(-0.5 * lr * precond * scaled + (lr * precond / self.n).sqrt() * torch.randn_like(p))
        return u.item()

    def run(self, x, y):
        cfg = self.cfg
        for t in range(cfg.steps):
            lr = cfg.lr * (cfg.lr_final / cfg.lr) ** (t / cfg.steps)
            idx = torch.randint(len(x), (cfg.batch,))
            u = self.step(x[idx], y[idx], lr)
            if t >= cfg.burn_in and t % cfg.thin == 0:
                self.samples.append({k: w.detach() for k, w in self.net.named_parameters()})
            if t % 1000 == 0:
                print(f"step {t:5d}  lr {lr:.1e}  potential {u:9.1f}")
        return self.samples

    @torch.no_grad()
    def predict(self, x):
        draws = torch.stack([functional_call(self.net, w, (x,)) for w in self.samples])
        std = (draws.var(dim=0) + self.cfg.noise_std ** 2).sqrt()
        return draws.mean(dim=0), std


def report(name, mean, std, y):
    rmse = ((mean - y) ** 2).mean().sqrt().item()
    inside = ((y - mean).abs() < 1.645 * std).float().mean().item()
    score = (torch.log(std) + 0.5 * ((y - mean) / std) ** 2).mean().item() + 0.5 * math.log(2 * math.pi)
    print(f"{name:12s} rmse {rmse:.3f}  mean std {std.mean():.3f}  90% interval covers {inside:.0%}  nll {score:.2f}")
    return inside, score


cfg = Settings()
train_x, train_y = drill(cfg, 160)
test_x, test_y = drill(cfg, 400)
gap_x = torch.linspace(-0.5, 0.6, 200).unsqueeze(1)
gap_y = grade(gap_x) + cfg.noise_std * torch.randn_like(gap_x)

sampler = LangevinSampler(GradeNet(cfg.hidden), cfg, len(train_x))
samples = sampler.run(train_x, train_y)
print(f"{len(samples)} posterior samples")
cored = report("cored", *sampler.predict(test_x), test_y)
gap = report("interpolated", *sampler.predict(gap_x), gap_y)
