"""Learn a dissipative Hamiltonian system from noisy phase-space derivatives.

The model has an energy network H(q, p) and a scalar friction coefficient:
    dq/dt =  dH/dp
    dp/dt = -dH/dq - gamma * dH/dp
"""
import math

import torch
from torch import nn

torch.manual_seed(3)

TRUE_GAMMA = 0.3
EPOCHS = 50
BATCH = 128


def true_field(z):
    q, p = z[:, :1], z[:, 1:]
    dq = p
    dp = -2.0 * torch.sin(q) - 0.3 * q - TRUE_GAMMA * p
    return torch.cat([dq, dp], dim=1)


def make_split(n, noise):
    z = (torch.rand(n, 2) - 0.5) * torch.tensor([2 * math.pi, 4.0])
    return z, true_field(z) + noise * torch.randn(n, 2)


class EnergyNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(2, width), nn.Tanh(),
            nn.Linear(width, width), nn.Tanh(),
            nn.Linear(width, 1),
        )
        self.raw_gamma = nn.Parameter(torch.tensor(-2.0))

    @property
    def gamma(self):
        return nn.functional.softplus(self.raw_gamma)

    def energy(self, z):
        return self.body(z).squeeze(-1)

    def forward(self, z):
        with torch.enable_grad():
            z = z.detach().requires_grad_(True)
            (dH,) = torch.autograd.grad(
                self.energy(z).sum(), z, create_graph=self.training
            )
        dHdq, dHdp = dH[:, :1], dH[:, 1:]
        return torch.cat([dHdp, -dHdq - self.gamma * dHdp], dim=1)


def evaluate(model, z, dz):
    model.eval()
    with torch.no_grad():
        return nn.functional.mse_loss(model(z), dz).item()


@torch.no_grad()
def rollout(model, z0, steps=100, dt=0.05):
    z, zt = z0.clone(), z0.clone()
    for _ in range(steps):
        k = model(z)
        z = z + dt * model(z + 0.5 * dt * k)
        k = true_field(zt)
        zt = zt + dt * true_field(zt + 0.5 * dt * k)
    return (z - zt).norm(dim=1).mean().item()


def main():
    z_train, dz_train = make_split(2000, noise=0.05)
    z_val, dz_val = make_split(500, noise=0.0)

    model = EnergyNet()
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    history = []

    for epoch in range(EPOCHS):
        order = torch.randperm(len(z_train))
        total = 0.0
        for idx in order.split(BATCH):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(z_train[idx]), dz_train[idx])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        val = evaluate(model, z_val, dz_val)
        history.append(val)
        if epoch % 10 == 0 or epoch == EPOCHS - 1:
            print(f"epoch {epoch:3d}  train {total / len(z_train):.4f}  "
                  f"val {val:.4f}  gamma {model.gamma.item():.3f}")

    z0 = torch.tensor([[1.0, 0.0], [-0.5, 1.0], [2.0, -0.5]])
    drift = rollout(model, z0)
    print(f"rollout error {drift:.3f}  gamma {model.gamma.item():.3f} (true {TRUE_GAMMA})")
    return model, history, drift


if __name__ == "__main__":
    model, history, drift = main()
