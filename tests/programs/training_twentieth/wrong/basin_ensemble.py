"""Deep ensemble of neural ODEs for a reduced ocean basin (three-box heat model), with uncertainty from the members.

All members are trained at once: their parameters are stacked and the rollout is vectorised over the members.
"""
import copy

import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

torch.manual_seed(9)
MEMBERS = 4
DT = 0.1


def basin_rate(t):
    """Surface, thermocline and deep temperature anomalies."""
    s, m, d = t.unbind(-1)
    ds = 0.8 - 0.9 * s + 0.3 * torch.sin(2.0 * m)
    dm = 0.7 * (s - m) - 0.2 * m * d
    dd = 0.3 * (m - d) + 0.05 * s * s
    return torch.stack([ds, dm, dd], dim=-1)


def rk4(rate, state, steps):
    path = [state]
    for _ in range(steps):
        k1 = rate(state)
        k2 = rate(state + 0.5 * DT * k1)
        k3 = rate(state + 0.5 * DT * k2)
        k4 = rate(state + DT * k3)
        state = state + DT / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4)
        path.append(state)
    return torch.stack(path, dim=1)


def make_paths(n, steps):
    return rk4(basin_rate, torch.randn(n, 3), steps)


class Tendency(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 3))

    def forward(self, state):
        return self.net(state)


@torch.no_grad()
def ensemble_forecast(models, start, steps):
    for model in models:
        model.eval()
    return torch.stack([rk4(model, start, steps) for model in models])


def main():
    steps = 8
    train = make_paths(300, steps)
    train = train + 0.01 * torch.randn_like(train)
    test = make_paths(100, 20)

    models = [Tendency() for _ in range(MEMBERS)]
    params, buffers = stack_module_state(models)
    skeleton = copy.deepcopy(models[0]).to("meta")
    optimizer = torch.optim.Adam(params.values(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=120)

    def member_loss(member_params, member_buffers, paths):
        def rate(state):
            return functional_call(skeleton, (member_params, member_buffers), (state,))

        return (rk4(rate, paths[:, 0], steps) - paths).pow(2).mean()

    for step in range(120):
        index = torch.randint(0, len(train), (MEMBERS, 32))
        losses = vmap(member_loss)(params, buffers, train[index])
        optimizer.zero_grad()
        losses.sum().backward()
        optimizer.step()
        scheduler.step()
        if step % 40 == 0:
            print(f"step {step:4d}  loss per member " + " ".join(f"{v:.4f}" for v in losses.tolist()))

    forecast = ensemble_forecast(models, test[:, 0], 20)
    mean, spread = forecast.mean(0), forecast.std(0)
    rmse = (mean - test).pow(2).mean().sqrt().item()
    late = (mean[:, -1] - test[:, -1]).pow(2).mean().sqrt().item()
    print(f"final loss {losses.mean().item():.5f}")
    print(f"forecast rmse {rmse:.4f}  at the last step {late:.4f}  spread {spread[:, -1].mean().item():.4f}")
    return rmse, late


if __name__ == "__main__":
    main()
