"""An energy-based model of a 1-d blasting signal, trained by contrastive divergence with persistent chains."""
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Settings:
    rows: int = 2000
    batch: int = 256
    chains: int = 512
    langevin_steps: int = 8
    step_size: float = 0.02
    restart: float = 0.02
    iterations: int = 500
    lr: float = 2e-3
    seed: int = 23


def signal(n, generator):
    """Two modes of unequal width and weight."""
    noise = torch.randn(n, generator=generator)
    left = torch.rand(n, generator=generator) < 0.35
    return torch.where(left, -1.2 + 0.3 * noise, 0.8 + 0.5 * noise)[:, None]


def true_log_density(x):
    def normal(mean, std):
        return torch.distributions.Normal(mean, std).log_prob(x)
    return torch.logsumexp(torch.stack([normal(-1.2, 0.3) + torch.tensor(0.35).log(),
                                        normal(0.8, 0.5) + torch.tensor(0.65).log()]), dim=0)


class Energy(nn.Module):
    """Low where data are likely. The quadratic term makes exp(-energy) integrable."""

    def __init__(self, width=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(),
                                 nn.Linear(width, 1, bias=False))

    def forward(self, x):
        return (self.net(x) + 0.1 * x ** 2).squeeze(-1)


class Chains:
    """Langevin samples of the model that go on from where the last iteration left them."""

    def __init__(self, cfg):
        self.cfg = cfg
        self.state = 4 * torch.rand(cfg.chains, 1) - 2

    def advance(self, energy):
        cfg = self.cfg
        fresh = torch.rand(cfg.chains) < cfg.restart
        self.state[fresh] = 4 * torch.rand(int(fresh.sum()), 1) - 2
        x = self.state
        for _ in range(cfg.langevin_steps):
            x = x.detach().requires_grad_()
            slope, = torch.autograd.grad(energy(x).sum(), x)
            x = x - cfg.step_size * slope + (2 * cfg.step_size) ** 0.5 * torch.randn_like(x)
        self.state = x.detach()
        return self.state


def log_density_on(energy, grid):
    """Normalised by the trapezoid rule; possible in one dimension only."""
    with torch.no_grad():
        minus = -energy(grid[:, None])
    return minus - torch.trapezoid(minus.exp(), grid).log()


def divergence(energy):
    """KL(true, model) on a grid."""
    grid = torch.linspace(-5, 5, 2001)
    truth, model = true_log_density(grid), log_density_on(energy, grid)
    return torch.trapezoid(truth.exp() * (truth - model), grid).item()


def main():
    cfg = Settings()
    torch.manual_seed(cfg.seed)
    data = signal(cfg.rows, torch.Generator().manual_seed(cfg.seed))
    energy, chains = Energy(), Chains(cfg)
    optimizer = torch.optim.Adam(energy.parameters(), lr=cfg.lr, betas=(0.5, 0.99))
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, cfg.iterations)
    for it in range(cfg.iterations):
        real = data[torch.randint(len(data), (cfg.batch,))]
        model_samples = chains.advance(energy)
        loss = energy(real).mean() - energy(model_samples).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if it % 100 == 99:
            print(f"iteration {it + 1:4d}  contrast {loss.item():+.4f}  KL to the truth {divergence(energy):.4f}")


if __name__ == "__main__":
    main()
