import torch
from torch import nn


class Field(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
        self.damping = nn.Parameter(torch.tensor(0.1))

    def forward(self, t):
        return self.net(t)


def derivative(y, t):
    return torch.autograd.grad(y, t, torch.ones_like(y), create_graph=True)[0]


def residual(field, t, stiffness):
    t = t.requires_grad_(True)
    u = field(t)
    du = derivative(u, t)
    ddu = derivative(du, t)
    return ddu + 2 * field.damping * du + stiffness * u


def measured(damping, stiffness, count):
    t = torch.linspace(0, 3, count).unsqueeze(1)
    omega = (stiffness - damping**2) ** 0.5
    u = torch.exp(-damping * t) * torch.cos(omega * t)
    return t, u + 0.01 * torch.randn_like(u)


def main():
    torch.manual_seed(0)
    stiffness = 4.0
    t_data, u_data = measured(0.3, stiffness, 25)
    field = Field()
    optimizer = torch.optim.Adam(field.parameters(), lr=5e-3)
    for step in range(150):
        collocation = 3 * torch.rand(48, 1)
        physics = residual(field, collocation, stiffness).pow(2).mean()
        data = (field(t_data) - u_data).pow(2).mean()
        loss = data + 0.05 * physics
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} data {data.item():.5f} physics {physics.item():.4f} damping {field.damping.item():.4f}")


if __name__ == "__main__":
    main()
