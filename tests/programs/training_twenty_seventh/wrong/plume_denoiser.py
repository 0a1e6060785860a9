"""Small DDPM on ring-shaped 8x8 images; the averaged weights are used for validation and sampling after every epoch."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

T = 100


class WeightAverage:
    """Exponential moving average of the parameters, swapped in for evaluation."""

    def __init__(self, parameters, decay):
        self.decay = decay
        self.shadow = [p.detach().clone() for p in parameters]

    @torch.no_grad()
    def update(self, parameters):
        for s, p in zip(self.shadow, parameters):
            s.lerp_(p, 1 - self.decay)

    def store(self, parameters):
        self.saved = [p.detach() for p in parameters]

    @torch.no_grad()
    def copy_to(self, parameters):
        for s, p in zip(self.shadow, parameters):
            p.copy_(s)

    @torch.no_grad()
    def restore(self, parameters):
        for s, p in zip(self.saved, parameters):
            p.copy_(s)


class Denoiser(nn.Module):
    def __init__(self, pixels=64, width=128):
        super().__init__()
        self.inp = nn.Linear(pixels, width)
        self.time = nn.Sequential(nn.Linear(32, width), nn.SiLU(), nn.Linear(width, width))
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU(),
                                                  nn.Linear(width, width)) for _ in range(3))
        self.out = nn.Linear(width, pixels)

    def forward(self, x, t):
        freq = torch.exp(-math.log(1000.0) * torch.arange(16) / 16)
        angle = t.float()[:, None] * freq
        h = self.inp(x.flatten(1)) + self.time(torch.cat([angle.sin(), angle.cos()], 1))
        for block in self.blocks:
            h = h + block(h)
        return self.out(h).view_as(x)


class Diffusion:
    def __init__(self):
        self.beta = torch.linspace(1e-3, 0.08, T)
        self.alpha = 1 - self.beta
        self.abar = self.alpha.cumprod(0)

    def loss(self, net, x0, gen=None):
        t = torch.randint(0, T, (len(x0),), generator=gen)
        noise = torch.randn(x0.shape, generator=gen)
        a = self.abar[t].view(-1, 1, 1)
        return F.mse_loss(net(a.sqrt() * x0 + (1 - a).sqrt() * noise, t), noise)

    @torch.no_grad()
    def sample(self, net, n):
        x = torch.randn(n, 8, 8)
        for t in reversed(range(T)):
            eps = net(x, torch.full((n,), t))
            x = (x - self.beta[t] / (1 - self.abar[t]).sqrt() * eps) / self.alpha[t].sqrt()
            if t > 0:
                x = x + self.beta[t].sqrt() * torch.randn_like(x)
        return x


def rings(n, gen):
    y, x = torch.meshgrid(torch.linspace(-1, 1, 8), torch.linspace(-1, 1, 8), indexing="ij")
    cx, cy, radius = (torch.rand(3, n, 1, 1, generator=gen) - 0.5) * torch.tensor([0.6, 0.6, 0.5]).view(3, 1, 1, 1)
    r = ((x - cx) ** 2 + (y - cy) ** 2).sqrt()
    return 2 * torch.exp(-((r - 0.6 - radius) / 0.2) ** 2) - 1


def train(epochs=16, batch=64):
    gen = torch.Generator().manual_seed(1)
    data, held_out, net, diffusion = rings(1280, gen), rings(512, gen), Denoiser(), Diffusion()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    average = WeightAverage(net.parameters(), decay=0.98)
    history = []
    for epoch in range(epochs):
        for idx in torch.randperm(len(data), generator=gen).split(batch):
            loss = diffusion.loss(net, data[idx], gen)
            opt.zero_grad()
            loss.backward()
            opt.step()
            average.update(net.parameters())
        average.store(net.parameters())
        average.copy_to(net.parameters())
        with torch.no_grad():
            history.append(diffusion.loss(net, held_out, torch.Generator().manual_seed(9)).item())
        if epoch % 4 == 3:
            s = diffusion.sample(net, 64)
            print(f"epoch {epoch + 1} train {loss.item():.4f} val {history[-1]:.4f} pixel std {s.std():.3f}")
        average.restore(net.parameters())
    return net, average, history


torch.manual_seed(0)
net, average, history = train()
