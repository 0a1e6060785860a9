"""Class-conditional DDPM on 2-d glyph clusters, with classifier-free guidance at sampling time."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

N_CLASSES = 6
NULL = N_CLASSES  # extra embedding row: "no label"
STEPS = 40


def make_glyphs(n, gen):
    y = torch.randint(0, N_CLASSES, (n,), generator=gen)
    angle = y * (2 * math.pi / N_CLASSES)
    centre = torch.stack([angle.cos(), angle.sin()], dim=1) * 1.6
    return centre + 0.15 * torch.randn(n, 2, generator=gen), y


class Schedule:
    def __init__(self, steps=STEPS):
        self.beta = torch.linspace(1e-3, 0.2, steps)
        self.alpha = 1 - self.beta
        self.bar = self.alpha.cumprod(0)

    def noisy(self, x0, t, eps):
        bar = self.bar[t].unsqueeze(1)
        return bar.sqrt() * x0 + (1 - bar).sqrt() * eps


class Denoiser(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.label = nn.Embedding(N_CLASSES + 1, 16)
        self.time = nn.Embedding(STEPS, 16)
        self.net = nn.Sequential(
            nn.Linear(34, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2)
        )

    def forward(self, x, t, y):
        return self.net(torch.cat([x, self.time(t), self.label(y)], dim=1))


def diffusion_loss(model, sched, x0, y, p_uncond=0.15):
    drop = torch.rand(len(y)) < p_uncond
    y[drop] = NULL
    t = torch.randint(0, STEPS, (len(x0),))
    eps = torch.randn_like(x0)
    return F.mse_loss(model(sched.noisy(x0, t, eps), t, y), eps)


def train(model, sched, x, y, epochs=50, batch=128, lr=2e-3):
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    batches = list(zip(x.split(batch), y.split(batch)))
    for epoch in range(epochs):
        total = 0.0
        for i in torch.randperm(len(batches)).tolist():
            xb, yb = batches[i]
            loss = diffusion_loss(model, sched, xb, yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1:3d}  loss {total / len(batches):.4f}")


@torch.no_grad()
def sample(model, sched, y, guidance=1.0):
    x = torch.randn(len(y), 2)
    null = torch.full_like(y, NULL)
    for step in reversed(range(STEPS)):
        t = torch.full_like(y, step)
        cond, uncond = model(x, t, y), model(x, t, null)
        eps = uncond + (1 + guidance) * (cond - uncond)
        x = (x - sched.beta[step] / (1 - sched.bar[step]).sqrt() * eps) / sched.alpha[step].sqrt()
        if step > 0:
            x = x + sched.beta[step].sqrt() * torch.randn_like(x)
    return x


def main():
    torch.manual_seed(5)
    x, y = make_glyphs(3072, torch.Generator().manual_seed(5))
    model, sched = Denoiser(), Schedule()
    train(model, sched, x, y)
    samples = sample(model, sched, torch.arange(N_CLASSES).repeat(100))
    print(f"{len(samples)} samples, mean radius {samples.norm(dim=1).mean():.3f}, spread {samples.std():.3f}")
    return model, sched, x, y, samples


if __name__ == "__main__":
    model, sched, x, y, samples = main()
