"""Energy-based model with persistent contrastive divergence; sampling freezes the network for its duration."""
import contextlib

import torch
import torch.nn as nn


class Energy(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, 1)
        )

    def forward(self, x):
        return self.net(x).squeeze(-1) + 0.05 * (x ** 2).sum(1)


@contextlib.contextmanager
def frozen(model):
    flags = [p.requires_grad for p in model.parameters()]
    mode = model.training
    model.requires_grad_(False)
    model.eval()
    try:
        yield model
    finally:
        for p, flag in zip(model.parameters(), flags):
            p.requires_grad_(flag)
        model.train(mode)


class LangevinSampler:
    def __init__(self, size=512, steps=15, step_size=0.5, noise=0.03):
        self.particles = torch.randn(size, 2) * 2
        self.steps, self.step_size, self.noise = steps, step_size, noise

    def __call__(self, model, n):
        idx = torch.randperm(self.particles.size(0))[:n]
        x = self.particles[idx]
        restart = torch.rand(n) < 0.05
        x[restart] = torch.randn(int(restart.sum()), 2) * 2
        with frozen(model):
            for _ in range(self.steps):
                x.requires_grad_(True)
                (grad,) = torch.autograd.grad(model(x).sum(), x)
                x = x.detach() - self.step_size * grad + self.noise * torch.randn(n, 2)
                x.clamp_(-4, 4)
        self.particles[idx] = x
        return x


def ring(n):
    a = torch.rand(n) * 2 * torch.pi
    return 2 * torch.stack([a.cos(), a.sin()], dim=1) + 0.08 * torch.randn(n, 2)


torch.manual_seed(8)
model = Energy()
sampler = LangevinSampler()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.5, 0.999))
for it in range(400):
    real = ring(128)
    fake = sampler(model, 128)
    e_real, e_fake = model(real), model(fake)
    contrast = e_real.mean() - e_fake.mean()
    loss = contrast + 0.01 * (e_real ** 2 + e_fake ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if it % 100 == 0:
        off = (sampler.particles.norm(dim=1) - 2).abs().mean().item()
        print(f"it {it} contrast {contrast.item():.4f} distance of particles to the ring {off:.3f}")
