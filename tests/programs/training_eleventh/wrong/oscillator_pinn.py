"""Physics-informed network for a damped oscillator written as a first-order system.

    x' = v
    v' = -k x - c v,     x(0) = 1, v(0) = 0
"""
import math

import torch
import torch.nn as nn

SEED = 5
K, C = 3.0, 0.4
T_END = 2.0
STEPS = 1500
POINTS = 64
START_WEIGHT = 10.0

torch.manual_seed(SEED)


class StateNet(nn.Module):
    """Maps time to the state (x, v)."""

    def __init__(self, width=32, depth=2):
        super().__init__()
        layers = [nn.Linear(1, width), nn.Tanh()]
        for _ in range(depth - 1):
            layers += [nn.Linear(width, width), nn.Tanh()]
        layers.append(nn.Linear(width, 2))
        self.net = nn.Sequential(*layers)
        for m in self.net:
            if isinstance(m, nn.Linear):
                nn.init.xavier_normal_(m.weight)
                nn.init.zeros_(m.bias)

    def forward(self, t):
        return self.net(2 * t / T_END - 1)


def rhs(state):
    x, v = state[:, 0:1], state[:, 1:2]
    return torch.cat([v, -K * x - C * v], dim=1)


def exact(t):
    omega = math.sqrt(K - C * C / 4)
    decay = torch.exp(-C * t / 2)
    x = decay * (torch.cos(omega * t) + C / (2 * omega) * torch.sin(omega * t))
    v = -decay * (K / omega) * torch.sin(omega * t)
    return torch.cat([x, v], dim=1)


def physics_loss(net, t):
    t = t.clone().requires_grad_(True)
    state = net(t)
    rate = torch.autograd.grad(state, t, grad_outputs=torch.ones_like(state), create_graph=True)[0]
    return (rate - rhs(state)).pow(2).mean()


def start_loss(net):
    state = net(torch.zeros(1, 1))
    return (state - torch.tensor([[1.0, 0.0]])).pow(2).mean()


def relative_error(net):
    t = torch.linspace(0, T_END, 200).unsqueeze(1)
    with torch.no_grad():
        truth = exact(t)
        return ((net(t) - truth).norm() / truth.norm()).item()


net = StateNet()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS)

for step in range(STEPS):
    t = torch.rand(POINTS, 1) * T_END
    physics = physics_loss(net, t)
    start = start_loss(net)
    loss = physics + START_WEIGHT * start
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 300 == 0 or step == STEPS - 1:
        print(f"step {step:4d} physics {physics.item():.4f} start {start.item():.5f}")

error = relative_error(net)
print(f"relative error of the trajectory {error:.3f}")
