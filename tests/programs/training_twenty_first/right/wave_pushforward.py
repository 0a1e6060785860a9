"""Learned simulator for 1D advection-diffusion with the pushforward trick (Brandstetter et al., 2022)."""
import math

import torch
import torch.nn as nn

torch.manual_seed(13)
N, DT, NU = 48, 0.05, 0.01
DX = 2 * math.pi / N


def solver_step(u, speed, substeps=5):
    """Reference solution in Fourier space, exact for constant coefficients."""
    k = torch.fft.rfftfreq(N, d=1.0 / N)
    factor = torch.exp((-1j * k * speed[:, None] - NU * k ** 2) * DT * substeps)
    return torch.fft.irfft(torch.fft.rfft(u) * factor, n=N)


def make_trajectories(n, length):
    x = torch.arange(N) * DX
    u = torch.zeros(n, N)
    for mode in range(1, 5):
        amp, ph = torch.randn(n, 1) / mode, 2 * math.pi * torch.rand(n, 1)
        u = u + amp * torch.sin(mode * x + ph)
    speed = 0.3 + 0.7 * torch.rand(n)
    frames = [u]
    for _ in range(length - 1):
        frames.append(solver_step(frames[-1], speed))
    return torch.stack(frames, 1), speed


class MessagePassing(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.message = nn.Sequential(nn.Linear(2 * width + 1, width), nn.SiLU())
        self.update = nn.Sequential(nn.Linear(2 * width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, h):
        total = 0.0
        for offset in (-1, 1):
            other = torch.roll(h, offset, dims=1)
            side = torch.full_like(h[..., :1], float(offset))
            total = total + self.message(torch.cat([h, other, side], -1))
        return h + self.update(torch.cat([h, total], -1))


class Simulator(nn.Module):
    def __init__(self, width=24, rounds=3):
        super().__init__()
        self.encode = nn.Linear(2, width)
        self.processor = MessagePassing(width)
        self.decode = nn.Linear(width, 1)
        self.rounds = rounds

    def forward(self, u, speed):
        h = self.encode(torch.stack([u, speed[:, None].expand_as(u)], -1))
        for _ in range(self.rounds):
            h = self.processor(h)
        return u + 0.25 * self.decode(h).squeeze(-1)


def rollout_error(model, frames, speed):
    u, errors = frames[:, 0], []
    with torch.no_grad():
        for t in range(1, frames.shape[1]):
            u = model(u, speed)
            errors.append((u - frames[:, t]).pow(2).mean().item() / frames[:, t].pow(2).mean().item())
    return errors


frames, speed = make_trajectories(128, 12)
test_frames, test_speed = make_trajectories(32, 12)
model = Simulator()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-6)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[200, 270], gamma=0.3)
before = rollout_error(model, test_frames, test_speed)

for step in range(320):
    unroll = 0 if step < 120 else int(torch.randint(0, 3, ()))
    rows = torch.randint(0, len(frames), (24,))
    start = torch.randint(0, frames.shape[1] - 1 - unroll, (24,))
    u, c = frames[rows, start], speed[rows]
    with torch.no_grad():
        for _ in range(unroll):
            u = model(u, c)
    target = frames[rows, start + unroll + 1]
    loss = (model(u, c) - target).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if (step + 1) % 80 == 0:
        print(f"step {step + 1}: unroll {unroll}, loss {loss.item():.5f}")

after = rollout_error(model, test_frames, test_speed)
print(f"relative error after one step {before[0]:.4f} -> {after[0]:.4f}")
print(f"relative error after {len(after)} steps {before[-1]:.4f} -> {after[-1]:.4f}")
