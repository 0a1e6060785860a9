"""Pharmacokinetics under a pulsatile infusion: physics-informed fit of a one-compartment model, then a forecast.

    dC/dt = rate(t) / V - k C,    V and k unknown, C measured during the first hours only
"""
import argparse

import torch
import torch.nn as nn

HORIZON = 10.0  # h
TRUE_V, TRUE_K, C0 = 2.5, 0.30, 0.4


def infusion_rate(t):
    """Pump programme, smooth pulses on a basal rate (mg/h)."""
    return 1.2 + torch.sin(1.4 * t)


def simulate(t, substeps=4000):
    """Reference solution by fine Euler steps, interpolated at t."""
    grid = torch.linspace(0, HORIZON, substeps + 1)
    h = HORIZON / substeps
    c = [torch.tensor(C0)]
    for rate in infusion_rate(grid[:-1]):
        c.append(c[-1] + h * (rate / TRUE_V - TRUE_K * c[-1]))
    index = (t / h).round().long().clamp(0, substeps)
    return torch.stack(c)[index]


class KineticsPINN(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(1, width), nn.Tanh(),
            nn.Linear(width, width), nn.Tanh(),
            nn.Linear(width, 1),
        )
        self.log_v = nn.Parameter(torch.tensor(0.0))
        self.log_k = nn.Parameter(torch.tensor(-0.5))
        with torch.no_grad():
            self.net[0].weight.mul_(4.0)  # several pulses over the horizon

    def forward(self, t):
        return self.net(2 * t / HORIZON - 1)

    def residual(self, t):
        t = t.requires_grad_(True)
        c = self(t)
        dc_dt = torch.autograd.grad(c, t, torch.ones_like(c), retain_graph=True)[0]
        return dc_dt - infusion_rate(t) / self.log_v.exp() + self.log_k.exp() * c


def train(model, t_obs, c_obs, steps, n_collocation, weight, gen):
    optimizer = torch.optim.Adam(
        [
            {"params": model.net.parameters(), "lr": 4e-3},
            {"params": [model.log_v, model.log_k], "lr": 1e-2},
        ]
    )
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps, eta_min=1e-4)
    for step in range(steps):
        t_col = HORIZON * torch.rand(n_collocation, 1, generator=gen)
        data = ((model(t_obs) - c_obs) ** 2).mean()
        physics = (model.residual(t_col) ** 2).mean()
        loss = data + weight * physics
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 300 == 0 or step == steps - 1:
            print(
                f"step {step:5d}  data {data.item():.5f}  physics {physics.item():.5f}"
                f"  V {model.log_v.exp().item():.2f}  k {model.log_k.exp().item():.3f}"
            )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--readings", type=int, default=24)
    parser.add_argument("--until", type=float, default=5.0, help="hour of the last blood sample")
    parser.add_argument("--sigma", type=float, default=0.02, help="assay error, mg/L")
    parser.add_argument("--weight", type=float, default=0.3)
    args, _ = parser.parse_known_args()

    torch.manual_seed(2)
    gen = torch.Generator().manual_seed(2)
    t_obs = torch.linspace(0, args.until, args.readings).unsqueeze(1)
    c_obs = simulate(t_obs) + args.sigma * torch.randn(t_obs.shape, generator=gen)
    model = KineticsPINN()
    train(model, t_obs, c_obs, args.steps, 64, args.weight, gen)

    t = torch.linspace(args.until, HORIZON, 101).unsqueeze(1)
    with torch.no_grad():
        forecast = (model(t) - simulate(t)).pow(2).mean().sqrt().item()
        peak = model(t).max().item()
    volume, elimination = model.log_v.exp().item(), model.log_k.exp().item()
    print(f"volume of distribution {volume:.2f} L, elimination {elimination:.3f} /h")
    print(f"forecast peak {peak:.3f} mg/L, forecast rmse {forecast:.3f}")
    return model, volume, elimination, forecast


if __name__ == "__main__":
    main()
