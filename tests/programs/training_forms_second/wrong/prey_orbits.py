import math

import torch
from torch import nn


class Populations(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 2)
        )
        self.register_buffer("start", torch.tensor([1.0, 0.6]))

    def forward(self, t):
        return self.start + t * self.net(t)


def velocity(state):
    prey, fox = state.unbind(1)
    return torch.stack([prey * (1.1 - fox), fox * (prey - 0.9)], 1)


def rate(state, t):
    return torch.autograd.grad(state.sum(), t, create_graph=True)[0]


def residual(model, t):
    t = t.requires_grad_()
    state = model(t)
    return rate(state, t) - velocity(state)


def simulate(horizon, n=400):
    state = torch.tensor([[1.0, 0.6]])
    h = horizon / n
    path = [state]
    for _ in range(n):
        k1 = velocity(state)
        k2 = velocity(state + 0.5 * h * k1)
        state = state + h * k2
        path.append(state)
    return torch.cat(path)


def main(horizon=2.0):
    torch.manual_seed(151)
    model = Populations()
    opt = torch.optim.Adam(model.parameters(), lr=4e-3, betas=(0.9, 0.98))
    decay = torch.optim.lr_scheduler.ExponentialLR(opt, math.exp(-1.5 / 400))
    for step in range(400):
        t = horizon * torch.rand(64, 1)
        loss = residual(model, t).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        decay.step()
        if step % 80 == 79:
            print(f"step {step + 1:3d}  residual {loss.item():.6f}")
    truth = simulate(horizon)
    with torch.no_grad():
        gap = model(torch.linspace(0, horizon, len(truth))[:, None]) - truth
    print(f"largest distance to the simulation {gap.norm(dim=1).max():.4f}")


if __name__ == "__main__":
    main()
