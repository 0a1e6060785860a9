"""DDPM on short heartbeat-like pulses (64 samples per trace), with a residual MLP denoiser and EMA weights for sampling."""
import copy
import math

import torch
from torch import nn

torch.manual_seed(8)

LENGTH = 64
BATCH = 64
TIMESTEPS = 60
STEPS = 850


def pulses(n):
    """A sharp positive peak followed by a broad negative wave, jittered in time and size."""
    grid = torch.linspace(0, 1, LENGTH)
    peak = 0.35 + 0.06 * torch.randn(n, 1)
    size = 1.0 + 0.2 * torch.randn(n, 1)
    sharp = torch.exp(-((grid - peak) / 0.06).pow(2))
    wave = torch.exp(-((grid - peak - 0.3) / 0.12).pow(2))
    return 2.0 * size * (sharp - 0.5 * wave)


class Schedule:
    def __init__(self, steps):
        self.steps = steps
        s = torch.arange(steps + 1) / steps
        curve = torch.cos((s + 0.01) / 1.01 * math.pi / 2).pow(2)
        bar = curve / curve[0]
        self.beta = (1 - bar[1:] / bar[:-1]).clamp(max=0.6)
        self.alpha = 1 - self.beta
        self.alpha_bar = torch.cumprod(self.alpha, dim=0)

    def add_noise(self, x, t, noise):
        keep = self.alpha_bar[t]
        return keep.sqrt() * x + (1 - keep).sqrt() * noise


class Denoiser(nn.Module):
    def __init__(self, width=160, time_dim=32):
        super().__init__()
        self.register_buffer("freq", torch.exp(-math.log(1000.0) * torch.arange(time_dim // 2) / (time_dim // 2)))
        self.time = nn.Sequential(nn.Linear(time_dim, width), nn.SiLU(), nn.Linear(width, width))
        self.enter = nn.Linear(LENGTH, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
            for _ in range(3))
        self.leave = nn.Linear(width, LENGTH)

    def forward(self, x, t):
        angle = t.float().unsqueeze(1) * self.freq
        emb = self.time(torch.cat([angle.sin(), angle.cos()], dim=1))
        h = self.enter(x)
        for block in self.blocks:
            h = h + block(h + emb)
        return self.leave(h)


@torch.no_grad()
def update_ema(ema, model, decay=0.99):
    for e, p in zip(ema.parameters(), model.parameters()):
        e.lerp_(p, 1 - decay)


@torch.no_grad()
def generate(model, schedule, n):
    x = torch.randn(n, LENGTH)
    for i in reversed(range(schedule.steps)):
        t = torch.full((n,), i)
        eps = model(x, t)
        x = (x - schedule.beta[i] / (1 - schedule.alpha_bar[i]).sqrt() * eps) / schedule.alpha[i].sqrt()
        if i > 0:
            x = x + schedule.beta[i].sqrt() * torch.randn_like(x)
    return x


def main():
    schedule, model = Schedule(TIMESTEPS), Denoiser()
    ema = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS)
    for step in range(STEPS):
        x = pulses(BATCH)
        t = torch.randint(0, TIMESTEPS, (BATCH,))
        noise = torch.randn_like(x)
        loss = (model(schedule.add_noise(x, t, noise), t) - noise).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        decay.step()
        update_ema(ema, model)
        if step % 200 == 0:
            print(f"step {step:5d}  loss {loss.item():.4f}")

    samples, real = generate(ema, schedule, 1000), pulses(1000)
    roughness = (samples.diff(dim=1).pow(2).mean() / real.diff(dim=1).pow(2).mean()).item()
    mean_error = (samples.mean(0) - real.mean(0)).pow(2).mean().sqrt().item()
    print(f"roughness ratio {roughness:.3f}  error of the mean pulse {mean_error:.4f}")
    return roughness, mean_error


if __name__ == "__main__":
    final_roughness, final_error = main()
