"""Autoregressive surrogate for an advection-diffusion-reaction equation, trained with pushforward and temporal bundling.

The surrogate maps K past frames to K future frames. During training it is first rolled out for a random number
of windows to get inputs as it will see them at test time, then it takes one step from there.
"""
import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 13
GRID, FRAMES, K = 48, 40, 4
N_TRAIN, N_TEST = 96, 24
STEPS, BATCH = 260, 32
MAX_PUSH = 3

random.seed(SEED)
torch.manual_seed(SEED)


def simulate(n):
    """u_t = -u_x + nu u_xx + u - u^3 on a periodic domain, 8 small steps a frame; returns (n, FRAMES, GRID)."""
    x = torch.arange(GRID) * (2 * math.pi / GRID)
    amp, phase = torch.randn(n, 3, 1) * 0.5, 2 * math.pi * torch.rand(n, 3, 1)
    u = (amp * torch.sin(torch.arange(1, 4)[None, :, None] * x + phase)).sum(1)
    dx, dt, nu = 2 * math.pi / GRID, 0.01, 0.05
    frames = []
    for _ in range(FRAMES):
        frames.append(u)
        for _ in range(8):
            left, right = u.roll(1, -1), u.roll(-1, -1)
            u = u + dt * (-(u - left) / dx + nu * (right - 2 * u + left) / dx**2 + u - u**3)
    return torch.stack(frames, dim=1)


class Surrogate(nn.Module):
    """Weight-tied convolutional processor; predicts changes relative to the last frame of the window."""

    def __init__(self, width=24, rounds=3):
        super().__init__()
        self.encode = nn.Conv1d(K, width, 5, padding=2, padding_mode="circular")
        self.process = nn.Conv1d(width, width, 5, padding=2, padding_mode="circular")
        self.decode = nn.Conv1d(width, K, 1)
        self.rounds = rounds
        nn.init.zeros_(self.decode.weight)
        nn.init.zeros_(self.decode.bias)
        self.register_buffer("ramp", torch.arange(1, K + 1).view(1, K, 1) / K)

    def forward(self, window):
        h = F.gelu(self.encode(window))
        for _ in range(self.rounds):
            h = h + F.gelu(self.process(h))
        return window[:, -1:] + self.ramp * self.decode(h)


@torch.no_grad()
def rollout_error(model, data):
    window, errors = data[:, :K], []
    for start in range(K, FRAMES - K + 1, K):
        window = model(window)
        truth = data[:, start:start + K]
        errors.append((window - truth).norm() / truth.norm())
    return errors[0].item(), errors[-1].item()


train, test = simulate(N_TRAIN), simulate(N_TEST)
model = Surrogate()
ema = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=STEPS)

first, last = rollout_error(model, test)
print(f"persistence: first window {first:.3f} last window {last:.3f}")
for step in range(STEPS):
    push = random.randint(0, min(MAX_PUSH, step // 40))
    start = random.randint(0, FRAMES - K * (push + 2))
    batch = train[torch.randperm(N_TRAIN)[:BATCH]]
    window = batch[:, start:start + K]
    with torch.no_grad():
        for _ in range(push):
            window = model(window)
    target = batch[:, start + K * (push + 1):start + K * (push + 2)]
    loss = F.mse_loss(model(window), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    ema.update_parameters(model)
    if step % 65 == 64:
        print(f"step {step + 1}: push {push} loss {loss.item():.5f} lr {scheduler.get_last_lr()[0]:.5f}")

for name, net in (("last weights", model), ("averaged weights", ema)):
    first, last = rollout_error(net, test)
    print(f"{name}: first window {first:.3f} last window {last:.3f}")
