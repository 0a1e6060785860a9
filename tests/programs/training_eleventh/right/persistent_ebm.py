"""Energy-based model of a spiral, trained by persistent contrastive divergence with Langevin chains."""
import math

import torch
from torch import nn

torch.manual_seed(14)

BUFFER = 1024
BATCH = 128


def spiral(n):
    r = torch.rand(n).sqrt()
    angle = 3 * math.pi * r
    x = torch.stack([angle.cos(), angle.sin()], 1) * r.unsqueeze(1) * 2
    return x + 0.08 * torch.randn(n, 2)


class Energy(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, width), nn.SiLU(),
            nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(1) + 0.05 * (x ** 2).sum(1)


def langevin(energy, x, steps=12, step_size=0.02):
    """Moves the points along the energy's slope with noise. The network itself takes no part in this update."""
    energy.requires_grad_(False)
    x = x.clone().requires_grad_(True)
    for _ in range(steps):
        slope, = torch.autograd.grad(energy(x).sum(), x)
        with torch.no_grad():
            x.sub_(step_size * slope.clamp(-5, 5))
            x.add_(math.sqrt(2 * step_size) * torch.randn_like(x))
            x.clamp_(-3, 3)
    energy.requires_grad_(True)
    return x.detach()


class ChainBuffer:
    def __init__(self, size):
        self.points = 4 * torch.rand(size, 2) - 2

    def draw(self, n):
        self.index = torch.randint(len(self.points), (n,))
        start = self.points[self.index]
        restart = torch.rand(n) < 0.05
        start[restart] = 4 * torch.rand(int(restart.sum()), 2) - 2
        return start

    def put_back(self, x):
        self.points[self.index] = x


def grid_nll(energy, x, limit=3.0, cells=150):
    side = torch.linspace(-limit, limit, cells)
    grid = torch.cartesian_prod(side, side)
    area = (side[1] - side[0]) ** 2
    with torch.no_grad():
        log_z = torch.logsumexp(-energy(grid), 0) + area.log()
        return (energy(x).mean() + log_z).item()


energy = Energy()
optimizer = torch.optim.Adam(energy.parameters(), lr=3e-3, betas=(0.5, 0.99))
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 200, gamma=0.4)
chains = ChainBuffer(BUFFER)
test = spiral(2000)

print(f"start  test nll {grid_nll(energy, test):.3f}")
for step in range(360):
    data = spiral(BATCH)
    model_points = langevin(energy, chains.draw(BATCH))
    chains.put_back(model_points)
    e_data, e_model = energy(data), energy(model_points)
    loss = e_data.mean() - e_model.mean() + 0.02 * (e_data ** 2 + e_model ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 120 == 119:
        print(f"step {step + 1}  loss {loss.item():+.3f}  test nll {grid_nll(energy, test):.3f}")

normal = torch.distributions.MultivariateNormal(test.mean(0), torch.cov(test.T))
print(f"nll of a Gaussian {-normal.log_prob(test).mean().item():.3f}  of the energy model {grid_nll(energy, test):.3f}")
