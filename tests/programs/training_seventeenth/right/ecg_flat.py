"""Arrhythmia detection from single beats with sharpness-aware minimization: two passes for each update."""
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

BEAT = 120
RHO = 0.05


def bump(t, centre, width, height):
    return height * np.exp(-0.5 * ((t - centre) / width) ** 2)


def simulate_beats(n, rng, flip=0.0):
    t = np.linspace(0, 1, BEAT)
    xs, ys = [], []
    for _ in range(n):
        abnormal = int(rng.random() < 0.5)
        jitter = 0.03 * rng.standard_normal(3)
        qrs_width = rng.uniform(0.016, 0.026) + 0.010 * abnormal
        beat = (bump(t, 0.45 + jitter[0], qrs_width, 1.0) + bump(t, 0.72 + jitter[1], 0.05, 0.3)
                + (1 - 0.5 * abnormal) * bump(t, 0.25 + jitter[2], 0.03, 0.15))
        wander = 0.2 * np.sin(2 * math.pi * (0.5 * t + rng.random()))
        xs.append(beat + wander + 0.12 * rng.standard_normal(BEAT))
        ys.append(1 - abnormal if rng.random() < flip else abnormal)
    return torch.tensor(np.stack(xs), dtype=torch.float32)[:, None], torch.tensor(ys, dtype=torch.float32)


class BeatNet(nn.Module):
    def __init__(self, ch=24):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(1, ch, 9, stride=2, padding=4), nn.BatchNorm1d(ch), nn.ReLU(),
            nn.Conv1d(ch, ch, 7, stride=2, padding=3), nn.BatchNorm1d(ch), nn.ReLU(),
            nn.Flatten(), nn.Linear(ch * BEAT // 4, 1))

    def forward(self, x):
        return self.net(x)[:, 0]


def track_running_stats(model, on):
    """The second pass must not count the batch twice; with momentum 0 it is normalized as before."""
    for m in model.modules():
        if isinstance(m, nn.BatchNorm1d):
            m.momentum = 0.1 if on else 0.0


@torch.no_grad()
def climb(params, rho):
    norm = torch.stack([p.grad.norm() for p in params]).norm() + 1e-12
    steps = []
    for p in params:
        e = p.grad * (rho / norm)
        p.add_(e)
        steps.append(e)
    return steps


@torch.no_grad()
def climb_down(params, steps):
    for p, e in zip(params, steps):
        p.sub_(e)


def train(rho, data, seed=6, epochs=12, batch=32):
    torch.manual_seed(seed)
    x, y = data
    model = BeatNet()
    params = list(model.parameters())
    opt = torch.optim.SGD(params, lr=0.05, momentum=0.9, weight_decay=5e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, epochs)
    for _ in range(epochs):
        for idx in torch.randperm(len(x)).split(batch):
            opt.zero_grad()
            F.binary_cross_entropy_with_logits(model(x[idx]), y[idx]).backward()
            if rho > 0:
                steps = climb(params, rho)
                track_running_stats(model, False)
                opt.zero_grad()
                F.binary_cross_entropy_with_logits(model(x[idx]), y[idx]).backward()
                track_running_stats(model, True)
                climb_down(params, steps)
            opt.step()
        sched.step()
    return model.eval()


def main():
    rng = np.random.default_rng(6)
    data = simulate_beats(320, rng, flip=0.15)
    test_x, test_y = simulate_beats(1000, rng)
    for rho in (0.0, RHO):
        model = train(rho, data)
        with torch.no_grad():
            logits = model(test_x)
        acc = ((logits > 0).float() == test_y).float().mean().item()
        print(f"rho {rho}: accuracy {acc:.3f} loss {F.binary_cross_entropy_with_logits(logits, test_y).item():.3f}")


if __name__ == "__main__":
    main()
