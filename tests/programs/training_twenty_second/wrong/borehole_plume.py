"""Coordinate network for the head around a pumping borehole: short data fit, then a restart with the PDE term.

Stage 1 fits scattered piezometer readings. Stage 2 is started from the stage-1 file (on the cluster it is a second
job) and adds the residual of the steady flow equation.
"""
import os
import tempfile

import torch
import torch.nn as nn

torch.manual_seed(21)
WELLS = torch.tensor([[0.3, 0.35], [0.7, 0.6]])
STRENGTH = torch.tensor([0.05, -0.04])
CORE = 0.06


def true_head(xy):
    r2 = ((xy[:, None] - WELLS) ** 2).sum(-1) + CORE ** 2
    return (STRENGTH * torch.log(r2)).sum(-1, keepdim=True)


def source(xy):
    """Laplacian of true_head."""
    r2 = ((xy[:, None] - WELLS) ** 2).sum(-1) + CORE ** 2
    return (STRENGTH * 4 * CORE ** 2 / r2 ** 2).sum(-1, keepdim=True)


class FourierFeatures(nn.Module):
    def __init__(self, n_features=32, scale=1.0):
        super().__init__()
        self.B = 2 * torch.pi * scale * torch.randn(2, n_features)

    def forward(self, xy):
        phase = xy @ self.B
        return torch.cat([phase.sin(), phase.cos()], dim=-1)


class HeadField(nn.Module):
    def __init__(self, n_features=32, width=48):
        super().__init__()
        self.encode = FourierFeatures(n_features)
        self.mlp = nn.Sequential(nn.Linear(2 * n_features, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(),
                                 nn.Linear(width, 1))

    def forward(self, xy):
        return self.mlp(self.encode(xy))


def laplacian(model, xy):
    xy = xy.clone().requires_grad_(True)
    grad, = torch.autograd.grad(model(xy).sum(), xy, create_graph=True)
    return sum(torch.autograd.grad(grad[:, k].sum(), xy, create_graph=True)[0][:, k:k + 1] for k in range(2))


def run_stage(model, opt, steps, data, pde_weight=0.0):
    xy, head = data
    for step in range(steps):
        loss = ((model(xy) - head) ** 2).mean() * 100
        if pde_weight:
            colloc = torch.rand(48, 2)
            loss = loss + pde_weight * ((laplacian(model, colloc) - source(colloc)) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if (step + 1) % 20 == 0:
            print(f"  step {step + 1:4d}  loss {loss.item():.5f}")


def save(path, model, opt):
    torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "rng": torch.get_rng_state()}, path)


def restart(path, lr):
    ckpt = torch.load(path)
    model = HeadField()
    model.load_state_dict(ckpt["model"])
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    opt.load_state_dict(ckpt["opt"])
    for group in opt.param_groups:
        group["lr"] = lr
    torch.set_rng_state(ckpt["rng"])
    return model, opt


def main():
    xy = torch.rand(150, 2)
    data = xy, true_head(xy) + 0.002 * torch.randn(150, 1)
    grid = torch.cartesian_prod(torch.linspace(0, 1, 25), torch.linspace(0, 1, 25))

    print("stage 1: readings")
    first = HeadField()
    opt = torch.optim.Adam(first.parameters(), lr=5e-3)
    run_stage(first, opt, 160, data)
    path = os.path.join(tempfile.mkdtemp(), "stage1.pt")
    save(path, first, opt)

    print("stage 2: readings + flow equation")
    second, opt2 = restart(path, lr=1e-3)
    run_stage(second, opt2, 40, data, pde_weight=1e-3)
    with torch.no_grad():
        error = ((second(grid) - true_head(grid)).norm() / true_head(grid).norm()).item()
    print(f"relative error on the grid: {error:.4f}")
    return second


if __name__ == "__main__":
    main()
