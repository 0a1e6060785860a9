import random

import torch
import torch.nn as nn
import torch.nn.functional as F


class SelfConditioned(nn.Module):
    def __init__(self, dim=8, width=48):
        super().__init__()
        self.dim = dim
        self.time = nn.Sequential(nn.Linear(1, 16), nn.SiLU())
        self.net = nn.Sequential(
            nn.Linear(2 * dim + 16, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, dim)
        )

    def forward(self, x, t, guess=None):
        guess = torch.zeros_like(x) if guess is None else guess
        return self.net(torch.cat([x, guess, self.time(t)], dim=1))


class Diffusion:
    def __init__(self, model, self_condition=0.5):
        self.model = model
        self.self_condition = self_condition

    @staticmethod
    def corrupt(x, t):
        keep = torch.cos(t * torch.pi / 2)
        return keep * x + torch.sin(t * torch.pi / 2) * torch.randn_like(x)

    def loss(self, x):
        t = torch.rand(len(x), 1)
        noisy = self.corrupt(x, t)
        guess = None
        if random.random() < self.self_condition:
            with torch.no_grad():
                guess = self.model(noisy, t)
        weight = (1 / (t + 0.1)).clamp(max=5)
        return (weight * (self.model(noisy, t, guess) - x).pow(2)).mean()

    @torch.no_grad()
    def sample(self, n, steps=10):
        x, guess = torch.randn(n, self.model.dim), None
        for k in range(steps, 0, -1):
            t = torch.full((n, 1), k / steps)
            guess = self.model(x, t, guess)
            x = self.corrupt(guess, t - 1 / steps)
        return x


class Warmup:
    def __init__(self, optimizer, steps):
        self.schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / steps))

    def __call__(self):
        self.schedule.step()


def make_motion(n, dim=8):
    phase, rate = 6.28 * torch.rand(n, 1), 0.5 + 0.5 * torch.rand(n, 1)
    return torch.sin(phase + rate * torch.arange(dim))


def main(steps=150):
    torch.manual_seed(0)
    random.seed(0)
    diffusion = Diffusion(SelfConditioned())
    optimizer = torch.optim.AdamW(diffusion.model.parameters(), lr=2e-3)
    warmup = Warmup(optimizer, 20)
    for step in range(steps):
        loss = diffusion.loss(make_motion(64))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        warmup()
        if step % 30 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    print("sample spread", round(diffusion.sample(64).std().item(), 3))
    return diffusion


if __name__ == "__main__":
    diffusion = main()
