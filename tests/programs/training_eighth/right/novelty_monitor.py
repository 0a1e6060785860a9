"""Novelty monitoring of sensor windows: a predictor learns to match a fixed random embedding of normal windows."""
import math

import torch
import torch.nn as nn

WINDOW = 48


def sensor_windows(n, gen, faulty=False):
    t = torch.arange(WINDOW, dtype=torch.float32)
    period = 10 + 6 * torch.rand(n, 1, generator=gen)
    phase = 2 * math.pi * torch.rand(n, 1, generator=gen)
    x = torch.sin(2 * math.pi * t / period + phase)
    x = x + 0.1 * torch.randn(n, WINDOW, generator=gen)
    if faulty:
        at = torch.randint(8, WINDOW - 12, (n,), generator=gen)
        for i, start in enumerate(at.tolist()):
            x[i, start:start + 10] += 1.5 * torch.randn(10, generator=gen)
    return x.unsqueeze(1)


def conv_trunk(width, out):
    return nn.Sequential(
        nn.Conv1d(1, width, 5, stride=2, padding=2), nn.LeakyReLU(0.1),
        nn.Conv1d(width, width, 5, stride=2, padding=2), nn.LeakyReLU(0.1),
        nn.Flatten(), nn.Linear(width * (WINDOW // 4), out),
    )


class NoveltyMonitor(nn.Module):
    def __init__(self, out=24):
        super().__init__()
        self.target = conv_trunk(16, out)
        for layer in self.target:
            if hasattr(layer, "weight"):
                nn.init.orthogonal_(layer.weight, gain=1.6)
        self.target.requires_grad_(False)
        self.predictor = nn.Sequential(conv_trunk(16, 64), nn.LeakyReLU(0.1), nn.Linear(64, out))
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("scale", torch.ones(()))

    def errors(self, x):
        with torch.no_grad():
            goal = self.target(x)
        return (self.predictor(x) - goal).pow(2).mean(dim=1)

    @torch.no_grad()
    def calibrate(self, x):
        e = self.errors(x)
        self.mean.copy_(e.mean())
        self.scale.copy_(e.std())

    @torch.no_grad()
    def score(self, x):
        return (self.errors(x) - self.mean) / self.scale


def auroc(normal, odd):
    wins = (odd.unsqueeze(1) > normal.unsqueeze(0)).float()
    return wins.mean().item()


def main():
    torch.manual_seed(11)
    gen = torch.Generator().manual_seed(11)
    train = sensor_windows(512, gen)
    held = sensor_windows(128, gen)
    faulty = sensor_windows(128, gen, faulty=True)

    monitor = NoveltyMonitor()
    opt = torch.optim.Adam(monitor.predictor.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=20)

    for epoch in range(20):
        monitor.train()
        running = 0.0
        for idx in torch.randperm(len(train), generator=gen).split(64):
            loss = monitor.errors(train[idx]).mean()
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            running += loss.item() * len(idx)
        schedule.step()
        if epoch % 5 == 4:
            print(f"epoch {epoch} error {running / len(train):.4f}")

    monitor.eval()
    monitor.calibrate(held[:64])
    area = auroc(monitor.score(held[64:]), monitor.score(faulty))
    print(f"fault detection AUROC {area:.3f}")
    return monitor, area


if __name__ == "__main__":
    monitor, area = main()
