"""Class-conditional DDPM on three spiral arms, with classifier-free guidance and averaged weights for sampling."""
import contextlib
import math

import torch
from torch import nn
from torch.nn import functional as F

ARMS, STEPS = 3, 50


def spiral(n, g):
    arm = torch.randint(0, ARMS, (n,), generator=g)
    radius = 0.3 + 1.5 * torch.rand(n, generator=g)
    angle = 1.2 * radius + arm * (2 * math.pi / ARMS)
    x = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    return x + 0.03 * torch.randn(n, 2, generator=g), arm


class Denoiser(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.label = nn.Embedding(ARMS + 1, 16)  # the last row stands for "no label"
        self.register_buffer("freqs", torch.exp(torch.linspace(0, 4, 8)))
        self.net = nn.Sequential(
            nn.Linear(2 + 16 + 16, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2),
        )
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x, t, y):
        phase = (t.float() / STEPS)[:, None] * self.freqs
        return self.net(torch.cat([x, phase.sin(), phase.cos(), self.label(y)], dim=1))


class Averager:
    """Exponential moving average of a model's parameters, lent to the model while it samples."""

    def __init__(self, model, decay=0.99):
        self.model, self.decay = model, decay
        self.shadow = [p.detach().clone() for p in model.parameters()]

    def update(self):
        for s, p in zip(self.shadow, self.model.parameters()):
            s.lerp_(p.detach(), 1 - self.decay)

    @contextlib.contextmanager
    def applied(self):
        params = list(self.model.parameters())
        live = [p.data for p in params]
        for p, s in zip(params, self.shadow):
            p.data = s
        try:
            yield
        finally:
            for p, data in zip(params, live):
                p.data = data


class Diffusion:
    def __init__(self):
        self.beta = torch.linspace(1e-3, 0.15, STEPS)
        self.keep = torch.cumprod(1 - self.beta, dim=0)

    def loss(self, model, x, y):
        # antithetic time steps: t and its mirror image share a batch
        half = torch.randint(0, STEPS, ((len(x) + 1) // 2,))
        t = torch.cat([half, STEPS - 1 - half])[: len(x)]
        y = torch.where(torch.rand(len(y)) < 0.15, ARMS, y)
        noise = torch.randn_like(x)
        keep = self.keep[t][:, None]
        return F.mse_loss(model(keep.sqrt() * x + (1 - keep).sqrt() * noise, t, y), noise)

    @torch.no_grad()
    def sample(self, model, y, g, guidance=0.5):
        x = torch.randn(len(y), 2, generator=g)
        for i in reversed(range(STEPS)):
            t = torch.full_like(y, i)
            plain, given = model(x, t, torch.full_like(y, ARMS)), model(x, t, y)
            noise = given + guidance * (given - plain)
            x = (x - self.beta[i] / (1 - self.keep[i]).sqrt() * noise) / (1 - self.beta[i]).sqrt()
            if i > 0:
                x = x + self.beta[i].sqrt() * torch.randn(x.shape, generator=g)
        return x


def quality(x, y, real, arm):
    """Median distance of a sample to the nearest real point of its own arm."""
    return torch.cat([torch.cdist(x[y == k], real[arm == k]).min(dim=1).values for k in range(ARMS)]).median().item()


if __name__ == "__main__":
    torch.manual_seed(31)
    real, arm = spiral(3000, torch.Generator().manual_seed(32))
    model, diffusion, log = Denoiser(), Diffusion(), []
    averager = Averager(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(40):
        for idx in torch.randperm(len(real)).split(128):
            optimizer.zero_grad()
            loss = diffusion.loss(model, real[idx], arm[idx])
            loss.backward()
            optimizer.step()
            averager.update()
        if epoch % 8 == 7:
            wanted = torch.arange(300) % ARMS
            with averager.applied():
                made = diffusion.sample(model, wanted, torch.Generator().manual_seed(epoch))
            log.append(quality(made, wanted, real, arm))
            print(f"epoch {epoch + 1:2d}  loss {loss.item():.3f}  distance to the arm {log[-1]:.3f}")
