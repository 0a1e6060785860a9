"""Class-conditional DDPM on 2-D petals, sampled with classifier-free guidance."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

N_CLASSES = 5
NULL = N_CLASSES  # index of the "no label" embedding
T = 50


def make_petals(n, generator):
    labels = torch.randint(N_CLASSES, (n,), generator=generator)
    angle = 2 * math.pi * labels / N_CLASSES
    centers = 2 * torch.stack([angle.cos(), angle.sin()], dim=1)
    points = centers + 0.25 * torch.randn(n, 2, generator=generator)
    return points / 1.45, labels


class Schedule:
    def __init__(self, steps):
        self.betas = torch.linspace(1e-3, 0.15, steps)
        self.alphas = 1 - self.betas
        self.abar = self.alphas.cumprod(0)

    def noise(self, x0, t, eps):
        a = self.abar[t].unsqueeze(1)
        return a.sqrt() * x0 + (1 - a).sqrt() * eps


class Denoiser(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.label_emb = nn.Embedding(N_CLASSES + 1, width)
        self.time_emb = nn.Embedding(T, width)
        self.inp = nn.Linear(2, width)
        self.net = nn.Sequential(nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2))

    def forward(self, x, t, y):
        return self.net(self.inp(x) + self.time_emb(t) + self.label_emb(y))


class EMA:
    def __init__(self, model, decay=0.99):
        self.decay = decay
        self.shadow = {k: v.clone() for k, v in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model):
        for k, v in model.state_dict().items():
            self.shadow[k].lerp_(v, 1 - self.decay)


@torch.no_grad()
def guided_sample(model, schedule, labels, scale=1.5):
    x = torch.randn(len(labels), 2)
    null = torch.full_like(labels, NULL)
    for i in reversed(range(T)):
        t = torch.full_like(labels, i)
        cond, free = model(x, t, labels), model(x, t, null)
        eps = free + scale * (cond - free)
        beta, alpha, abar = schedule.betas[i], schedule.alphas[i], schedule.abar[i]
        x = (x - beta / (1 - abar).sqrt() * eps) / alpha.sqrt()
        if i > 0:
            x = x + beta.sqrt() * torch.randn_like(x)
    return x


def train(points, labels, epochs=40, batch=128, p_uncond=0.1):
    model, schedule = Denoiser(), Schedule(T)
    ema = EMA(model)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)
    for epoch in range(epochs):
        total = 0.0
        starts = torch.randperm(len(points) // batch) * batch
        for s in starts.tolist():
            x0, y = points[s:s + batch], labels[s:s + batch]
            # unconditional training for a fraction of the samples
            y[torch.rand(len(y)) < p_uncond] = NULL
            t = torch.randint(T, (len(x0),))
            eps = torch.randn_like(x0)
            loss = F.mse_loss(model(schedule.noise(x0, t, eps), t, y), eps)
            opt.zero_grad()
            loss.backward()
            opt.step()
            ema.update(model)
            total += loss.item()
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1:2d}  eps-mse {total / len(starts):.4f}")
    model.load_state_dict(ema.shadow)
    return model, schedule


def main():
    torch.manual_seed(11)
    points, labels = make_petals(2048, torch.Generator().manual_seed(5))
    model, schedule = train(points, labels)
    wanted = torch.arange(N_CLASSES).repeat_interleave(100)
    samples = guided_sample(model.eval(), schedule, wanted)
    print(f"samples: mean radius {samples.norm(dim=1).mean():.3f} (data {points.norm(dim=1).mean():.3f})")


if __name__ == "__main__":
    main()
