import torch
from torch import nn
from torch.distributions import Independent, Normal

torch.manual_seed(13)
BANDS = 8


def magnitudes(n):
    kind = torch.randint(0, 2, (n, 1)).float()
    trend = torch.linspace(-1, 1, BANDS)
    return 1.5 * trend * (2 * kind - 1) + 0.4 * torch.randn(n, BANDS) + 0.5 * torch.randn(n, 1)


class Warp(nn.Module):
    def __init__(self, keep):
        super().__init__()
        self.register_buffer("keep", keep)
        self.net = nn.Sequential(nn.Linear(BANDS, 40), nn.ELU(), nn.Linear(40, 2 * BANDS))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        stretch, shift = self.net(x * self.keep).chunk(2, dim=-1)
        stretch = torch.tanh(stretch) * (1 - self.keep)
        shift = shift * (1 - self.keep)
        return x * stretch.exp() + shift, stretch


class Flow(nn.Module):
    def __init__(self, depth=6):
        super().__init__()
        stripes = torch.arange(BANDS) % 2
        self.warps = nn.ModuleList(Warp((stripes + i) % 2) for i in range(depth))

    def latent(self, x):
        volume = []
        for warp in self.warps:
            x, stretch = warp(x)
            volume.append(stretch.sum(-1))
        return x, torch.stack(volume).sum(0)


def density(flow, x):
    base = Independent(Normal(torch.zeros(BANDS), torch.ones(BANDS)), 1)
    z, volume = flow.latent(x)
    return base.log_prob(z) + volume


flow = Flow()
opt = torch.optim.Adamax(flow.parameters(), lr=5e-3)
for step in range(200):
    cost = density(flow, magnitudes(128)).neg().mean()
    opt.zero_grad()
    cost.backward()
    nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
    opt.step()
    if (step + 1) % 50 == 0:
        print(f"step {step + 1}: nll {cost.item():.4f}")

with torch.no_grad():
    z, _ = flow.latent(magnitudes(2000))
    print(f"held-out nll {-density(flow, magnitudes(2000)).mean().item():.4f}  latent spread {z.std(0).mean().item():.3f}")
