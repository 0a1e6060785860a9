"""Physics-informed network for a cooling rod with unknown diffusivity: u_t = kappa u_xx, u(0,t) = u(1,t) = 0.

Residuals get causal weights (Wang et al., 2022: a time slab counts only once the earlier ones are fitted) and each of the
three terms a self-adaptive factor, which ascends on the same loss while the network descends (McClenny & Braga-Neto).
"""
import torch
from torch import nn

torch.manual_seed(2)
KAPPA = 0.15
SLABS = 8


def exact(x, t):
    out = torch.zeros_like(x)
    for k, a in ((1, 1.0), (2, 0.6)):
        out = out + a * torch.exp(-KAPPA * (k * torch.pi) ** 2 * t) * torch.sin(k * torch.pi * x)
    return out


class Rod(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
        self.raw_kappa = nn.Parameter(torch.tensor(0.0))

    @property
    def kappa(self):
        return nn.functional.softplus(self.raw_kappa)

    def forward(self, x, t):
        return x * (1 - x) * self.net(torch.cat([2 * x - 1, 2 * t - 1], dim=1)) * 4.0


def residual(rod, x, t):
    x.requires_grad_(True)
    t.requires_grad_(True)
    u = rod(x, t)
    u_x, u_t = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
    (u_xx,) = torch.autograd.grad(u_x.sum(), x, create_graph=True)
    return u_t - rod.kappa * u_xx


def causal_weights(slab_losses, epsilon=2.0):
    earlier = torch.cumsum(slab_losses.detach(), dim=0) - slab_losses.detach()
    return torch.exp(-epsilon * earlier)


def main():
    rod = Rod()
    log_factor = nn.Parameter(torch.zeros(3))
    descent = torch.optim.Adam(rod.parameters(), lr=8e-3)
    ascent = torch.optim.SGD([log_factor], lr=2e-2, maximize=True)
    scheduler = torch.optim.lr_scheduler.StepLR(descent, step_size=250, gamma=0.5)

    x_obs, t_obs = torch.rand(60, 1), torch.rand(60, 1)
    u_obs = exact(x_obs, t_obs) + 0.01 * torch.randn(60, 1)
    x_init = torch.linspace(0, 1, 40)[:, None]
    t_init = torch.zeros_like(x_init)

    for step in range(900):
        x = torch.rand(SLABS * 16, 1)
        t = (torch.arange(SLABS).repeat_interleave(16)[:, None] + torch.rand(SLABS * 16, 1)) / SLABS
        slab_losses = residual(rod, x, t).pow(2).view(SLABS, 16).mean(dim=1)
        weights = causal_weights(slab_losses)
        terms = torch.stack([
            (weights * slab_losses).mean(),
            (rod(x_init, t_init) - exact(x_init, t_init)).pow(2).mean(),
            (rod(x_obs, t_obs) - u_obs).pow(2).mean(),
        ])
        loss = (log_factor.exp() * terms).sum()
        descent.zero_grad()
        ascent.zero_grad()
        loss.backward()
        descent.step()
        ascent.step()
        with torch.no_grad():
            log_factor.clamp_(max=5.0)
        scheduler.step()
        if step % 300 == 0:
            print(f"step {step:4d}  pde {terms[0].item():.4f}  initial {terms[1].item():.5f}  data {terms[2].item():.5f}  "
                  f"last slab weight {weights[-1].item():.3f}  kappa {rod.kappa.item():.4f}")

    grid = torch.linspace(0, 1, 30)
    x, t = (g.reshape(-1, 1) for g in torch.meshgrid(grid, grid, indexing="ij"))
    with torch.no_grad():
        error = ((rod(x, t) - exact(x, t)).norm() / exact(x, t).norm()).item()
    print(f"kappa {rod.kappa.item():.4f} (true {KAPPA})  relative error {error:.4f}")
    print("factors " + " ".join(f"{v:.2f}" for v in log_factor.exp().tolist()))
    return error


if __name__ == "__main__":
    main()
