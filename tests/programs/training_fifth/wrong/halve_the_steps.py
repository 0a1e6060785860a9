"""Progressive distillation of a 2-D diffusion model: one student step has to match two DDIM steps of the teacher."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(0)


def data(n):
    angle = torch.randint(6, (n,)) * (2 * math.pi / 6)
    return torch.stack([angle.cos(), angle.sin()], -1) + 0.08 * torch.randn(n, 2)


def schedule(t):
    return torch.cos(t * math.pi / 2).unsqueeze(-1), torch.sin(t * math.pi / 2).unsqueeze(-1)


class Denoiser(nn.Module):
    """Predicts the clean point from the noisy one and the time."""

    def __init__(self, width=64):
        super().__init__()
        self.time = nn.Linear(8, width)
        self.enter = nn.Linear(2, width)
        self.body = nn.Sequential(nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2))

    def forward(self, x, t):
        waves = t.unsqueeze(-1) * torch.tensor([1.0, 2.0, 4.0, 8.0])
        return self.body(self.enter(x) + self.time(torch.cat([waves.sin(), waves.cos()], -1)))


def ddim(model, x, t, s):
    clean = model(x, t)
    a, b = schedule(t)
    c, d = schedule(s)
    return c * clean + d * (x - a * clean) / b.clamp(min=1e-3)


def denoising_loss(model, x):
    t = 0.02 + 0.98 * torch.rand(len(x))
    a, b = schedule(t)
    return F.mse_loss(model(a * x + b * torch.randn_like(x), t), x)


@torch.no_grad()
def sample(model, n, steps):
    x = torch.randn(n, 2)
    for i in range(steps, 0, -1):
        x = ddim(model, x, torch.full((n,), i / steps), torch.full((n,), (i - 1) / steps))
    return x


def energy_distance(a, b):
    between = torch.cdist(a, b).mean()
    return (2 * between - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()).item()


def pretrain(model, iterations=700):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    annealing = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, iterations)
    for _ in range(iterations):
        loss = denoising_loss(model, data(256))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        annealing.step()


def distill(teacher, steps, iterations=300):
    """The returned model samples with `steps` steps what the teacher samples with twice as many."""
    student = copy.copy(teacher)
    optimizer = torch.optim.Adam(student.parameters(), lr=3e-4)
    for _ in range(iterations):
        x = data(256)
        i = torch.randint(1, steps + 1, (256,)).float()
        t, half, s = i / steps, (i - 0.5) / steps, (i - 1) / steps
        a, b = schedule(t)
        noisy = a * x + b * torch.randn_like(x)
        with torch.no_grad():
            goal = ddim(teacher, ddim(teacher, noisy, t, half), half, s)
        loss = F.mse_loss(ddim(student, noisy, t, s), goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return student


def main():
    teacher = Denoiser()
    pretrain(teacher)
    real = data(1000)
    print(f"teacher, 8 steps: energy distance {energy_distance(sample(teacher, 1000, 8), real):.4f}")
    four = distill(teacher, 4)
    two = distill(four, 2)
    result = energy_distance(sample(two, 1000, 2), real)
    print(f"student, 4 steps: energy distance {energy_distance(sample(four, 1000, 4), real):.4f}")
    print(f"student, 2 steps: energy distance {result:.4f}")


if __name__ == "__main__":
    main()
