"""DDPM (Ho et al., 2020) with classifier-free guidance (Ho & Salimans, 2022) on labelled 2-D crescents."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(6)

T, CLASSES, NULL = 60, 2, 2
STEPS, MICRO, ACCUM = 500, 128, 2
EMA_DECAY, P_DROP, GUIDANCE = 0.995, 0.15, 1.0


def crescents(n):
    y = torch.randint(0, CLASSES, (n,))
    a = math.pi * torch.rand(n)
    sign = 1.0 - 2.0 * y
    x = torch.stack([torch.cos(a) + y - 0.5, sign * torch.sin(a) - 0.5 * sign + 0.25 * sign], 1)
    return x + 0.05 * torch.randn(n, 2), y


beta = torch.linspace(1e-3, 0.15, T)
alpha_bar = torch.cumprod(1 - beta, 0)


class Denoiser(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.register_buffer("freq", torch.exp(torch.linspace(0, math.log(100.0), 16)))
        self.label = nn.Embedding(CLASSES + 1, 32)
        self.inp = nn.Linear(2, width)
        self.cond = nn.ModuleList(nn.Linear(64, width) for _ in range(3))
        self.mid = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, 2)
        # every block starts as the identity and the network as predicting no noise
        for layer in (*self.mid, self.out):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x, t, y):
        phase = (t.float() / T)[:, None] * self.freq
        c = torch.cat([phase.sin(), phase.cos(), self.label(y)], 1)
        h = self.inp(x)
        for cond, mid in zip(self.cond, self.mid):
            h = h + mid(F.silu(h + cond(c)))
        return self.out(F.silu(h))


@torch.no_grad()
def update_average(avg, net, step):
    decay = min(EMA_DECAY, (1 + step) / (10 + step))
    for a, p in zip(avg.parameters(), net.parameters()):
        a.lerp_(p, 1 - decay)


@torch.no_grad()
def sample(net, y):
    x = torch.randn(len(y), 2)
    null = torch.full_like(y, NULL)
    for i in reversed(range(T)):
        t = torch.full_like(y, i)
        eps_c, eps_u = net(x, t, y), net(x, t, null)
        eps = eps_c + GUIDANCE * (eps_c - eps_u)
        x = (x - beta[i] / (1 - alpha_bar[i]).sqrt() * eps) / (1 - beta[i]).sqrt()
        if i > 0:
            x = x + beta[i].sqrt() * torch.randn_like(x)
    return x


def distance(x, y):
    """Mean distance from the samples to the nearest real point of their class, and the reverse."""
    ref, ref_y = crescents(2000)
    parts = []
    for k in range(CLASSES):
        d = torch.cdist(x[y == k], ref[ref_y == k])
        parts += [d.min(1).values.mean(), d.min(0).values.mean()]
    return torch.stack(parts).mean().item()


net = Denoiser()
average = copy.deepcopy(net).requires_grad_(False)
opt = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=1e-4)
labels = torch.arange(600) % CLASSES
print(f"untrained distance {distance(sample(average, labels), labels):.3f}")
for step in range(STEPS):
    opt.zero_grad()
    total = 0.0
    for _ in range(ACCUM):
        x0, y = crescents(MICRO)
        y = torch.where(torch.rand(MICRO) < P_DROP, NULL, y)
        t = torch.randint(0, T, (MICRO,))
        noise = torch.randn_like(x0)
        ab = alpha_bar[t][:, None]
        pred = net(ab.sqrt() * x0 + (1 - ab).sqrt() * noise, t, y)
        loss = F.mse_loss(pred, noise) / ACCUM
        loss.backward()
        total += loss.item()
    opt.step()
    update_average(average, net, step)
    if (step + 1) % 100 == 0:
        print(f"step {step + 1}  loss {total:.4f}")
print(f"distance of the averaged model {distance(sample(average, labels), labels):.3f}")
