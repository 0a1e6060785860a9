"""RealNVP (Dinh et al. 2017) in small: density estimation on two interleaved crescents with a noisy third channel."""
import math

import torch
from torch import nn

torch.manual_seed(0)
DIM, HIDDEN, LAYERS, STEPS, BATCH = 4, 48, 6, 450, 256


def sample(n):
    t = torch.rand(n) * math.pi
    upper = torch.rand(n) < 0.5
    x = torch.where(upper, torch.cos(t), 1 - torch.cos(t))
    y = torch.where(upper, torch.sin(t), 0.5 - torch.sin(t))
    r = (x - 0.5) * y
    pts = torch.stack([x, y, r, torch.sin(2 * x)], dim=1)
    return pts + 0.06 * torch.randn_like(pts)


class Coupling(nn.Module):
    """Affine coupling: the entries where mask is one pass through and condition the others."""

    def __init__(self, dim, hidden, mask):
        super().__init__()
        self.register_buffer("mask", mask)
        self.net = nn.Sequential(
            nn.Linear(dim, hidden), nn.Tanh(),
            nn.Linear(hidden, hidden), nn.Tanh(),
            nn.Linear(hidden, 2 * dim),
        )
        nn.init.normal_(self.net[-1].weight, std=1e-3)
        nn.init.zeros_(self.net[-1].bias)
        self.gain = nn.Parameter(torch.ones(dim))

    def scale_shift(self, kept):
        s, t = self.net(kept).chunk(2, dim=-1)
        free = 1 - self.mask
        return torch.tanh(s) * self.gain * free, t * free

    def forward(self, x):
        s, t = self.scale_shift(x * self.mask)
        return x * torch.exp(s) + t, s.sum(-1)

    def inverse(self, z):
        s, t = self.scale_shift(z * self.mask)
        return (z - t) * torch.exp(-s)


class RealNVP(nn.Module):
    def __init__(self, dim, hidden, layers):
        super().__init__()
        self.dim = dim
        self.couplings = nn.ModuleList()
        mask = torch.zeros(dim)
        mask[::2] = 1.0
        for _ in range(layers):
            self.couplings.append(Coupling(dim, hidden, mask))
            mask.neg_().add_(1.0)  # the next layer moves the other half

    def log_prob(self, x):
        logdet = x.new_zeros(x.shape[0])
        for layer in self.couplings:
            x, ld = layer(x)
            logdet = logdet + ld
        base = -0.5 * (x ** 2).sum(-1) - 0.5 * self.dim * math.log(2 * math.pi)
        return base + logdet

    @torch.no_grad()
    def sample(self, n):
        z = torch.randn(n, self.dim)
        for layer in reversed(self.couplings):
            z = layer.inverse(z)
        return z


def main():
    train, test = sample(6000), sample(2000)
    center, spread = train.mean(0), train.std(0)
    train, test = (train - center) / spread, (test - center) / spread
    flow = RealNVP(DIM, HIDDEN, LAYERS)
    opt = torch.optim.Adam(flow.parameters(), lr=2e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, STEPS)
    for step in range(STEPS):
        batch = train[torch.randint(len(train), (BATCH,))]
        loss = -flow.log_prob(batch).mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
        opt.step()
        sched.step()
        if step % 150 == 0:
            print(f"step {step:4d}  train nll {loss.item():.3f}")
    with torch.no_grad():
        nll = -flow.log_prob(test).mean().item()
    fake = flow.sample(2000)
    print(f"test nll {nll:.3f}")
    print("sample skew", [round(v, 2) for v in (fake ** 3).mean(0).tolist()])
    return flow, test, nll


if __name__ == "__main__":
    flow, test, nll = main()
