"""Physics-informed network for a body that cools in a room with a daily temperature swing:
u' = -k (u - room(t)), u(0) = u0, on [0, 4]."""
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)

K, U0, T_END = 1.2, 2.0, 4.0


def room(t):
    return 0.5 * torch.sin(2.0 * t)


def exact(t):
    a, w = 0.5, 2.0
    scale = a * K / (K**2 + w**2)
    forced = scale * (K * torch.sin(w * t) - w * torch.cos(w * t))
    return forced + (U0 + scale * w) * torch.exp(-K * t)


class Net(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(1, width), nn.Tanh(),
            nn.Linear(width, width), nn.Tanh(),
            nn.Linear(width, 1),
        )

    def forward(self, t):
        return self.body(2 * t / T_END - 1)


def time_derivative(u, t):
    (du,) = torch.autograd.grad(u, t, grad_outputs=torch.ones_like(u), retain_graph=True)
    return du


def residual(net, t):
    t.requires_grad_(True)
    u = net(t)
    return time_derivative(u, t) + K * (u - room(t))


def train(net, steps=800, points=48):
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    t0 = torch.zeros(1, 1)
    for step in range(steps):
        t = T_END * torch.rand(points, 1)
        physics = residual(net, t).pow(2).mean()
        initial = (net(t0) - U0).pow(2).mean()
        loss = physics + 5.0 * initial
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 200 == 0:
            print(f"step {step:5d}  physics {physics.item():.2e}  initial {initial.item():.2e}")
    return loss.item()


def main():
    net = Net()
    last = train(net)
    grid = torch.linspace(0, T_END, 101).unsqueeze(1)
    with torch.no_grad():
        error = (net(grid) - exact(grid)).abs()
    worst, mean = error.max().item(), error.mean().item()
    print(f"final loss {last:.2e}, error against the exact solution: mean {mean:.4f}, worst {worst:.4f}")


if __name__ == "__main__":
    main()
