import torch
from torch import nn
from torch.nn.utils import remove_spectral_norm, spectral_norm


class Surrogate(nn.Module):
    def __init__(self, points, width=48):
        super().__init__()
        sizes = [points, width, width, points]
        self.layers = nn.ModuleList(
            spectral_norm(nn.Linear(a, b)) for a, b in zip(sizes, sizes[1:]))

    def forward(self, u):
        h = u
        for layer in self.layers[:-1]:
            h = torch.tanh(layer(h))
        return u + self.layers[-1](h)

    def strip(self):
        for layer in self.layers:
            remove_spectral_norm(layer)


def diffuse(u, steps=4, rate=0.2):
    for _ in range(steps):
        u = u + rate * (u.roll(1, -1) - 2 * u + u.roll(-1, -1))
    return u


def fields(n, points):
    x = torch.linspace(0, 2 * torch.pi, points + 1)[:-1]
    k = torch.randint(1, 6, (n, 3, 1))
    a = torch.randn(n, 3, 1)
    return (a * torch.sin(k * x + 6.28 * torch.rand(n, 3, 1))).sum(1)


class Runner:
    def __init__(self, points=24, lr=2e-3):
        self.points = points
        self.model = Surrogate(points)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=lr)

    def phase(self, name, steps):
        for i in range(steps):
            u = fields(64, self.points)
            err = (self.model(u) - diffuse(u)).pow(2).mean()
            self.opt.zero_grad()
            err.backward()
            self.opt.step()
            if (i + 1) % 50 == 0:
                print(f"{name} {i + 1}: mse {err.item():.5f}")


torch.manual_seed(1)
runner = Runner()
runner.phase("constrained", 100)
runner.model.strip()
runner.phase("free", 150)
u = fields(256, 24)
with torch.no_grad():
    print(f"test mse {(runner.model(u) - diffuse(u)).pow(2).mean().item():.5f}")
