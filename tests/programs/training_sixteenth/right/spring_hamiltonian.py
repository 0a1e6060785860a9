"""Computational physics project: a Hamiltonian network for a pendulum.

The network gives a scalar H(q, p); the equations of motion are dq/dt = dH/dp and dp/dt = -dH/dq.
It is trained on noisy time derivatives, then rolled out with the leapfrog-like midpoint method.
"""
import math

import torch
import torch.nn as nn


def true_energy(z):
    q, p = z.unbind(-1)
    return 0.5 * p ** 2 + 1.0 - torch.cos(q)


def true_field(z):
    q, p = z.unbind(-1)
    return torch.stack([p, -torch.sin(q)], dim=-1)


class HamiltonianNet(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.energy = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(),
                                    nn.Linear(hidden, 1))

    def forward(self, z):
        with torch.enable_grad():
            z = z.detach().requires_grad_(True)
            h = self.energy(z).sum()
            dh, = torch.autograd.grad(h, z, create_graph=self.training)
        return torch.stack([dh[..., 1], -dh[..., 0]], dim=-1)


def midpoint_rollout(field, z, dt, steps):
    path = [z]
    for _ in range(steps):
        half = z + 0.5 * dt * field(z)
        z = z + dt * field(half)
        path.append(z)
    return torch.stack(path)


def sample_states(n, gen):
    angle = 2 * math.pi * torch.rand(n, generator=gen)
    radius = 0.3 + 1.4 * torch.rand(n, generator=gen)
    return torch.stack([radius * torch.cos(angle), radius * torch.sin(angle)], dim=1)


def fit(net, z, dz, epochs=150, batch=100):
    weights = [p for p in net.parameters() if p.dim() == 2]
    # the last offset only shifts H
    offsets = [p for p in net.parameters() if p.dim() == 1][:-1]
    optimizer = torch.optim.Adam([{"params": weights, "weight_decay": 1e-6}, {"params": offsets}], lr=5e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=epochs * (len(z) // batch))
    net.train()
    for epoch in range(epochs):
        for idx in torch.randperm(len(z)).split(batch):
            loss = (net(z[idx]) - dz[idx]).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
        if epoch % 50 == 49:
            print(f"epoch {epoch + 1:3d}: loss {loss.item():.5f}")


@torch.no_grad()
def report(net, gen):
    net.eval()
    z = sample_states(200, gen)
    error = (net(z) - true_field(z)).pow(2).mean().sqrt().item()
    start = torch.tensor([[1.0, 0.0], [1.4, 0.3], [0.2, -1.1]])
    ours = midpoint_rollout(net, start, 0.05, 200)
    exact = midpoint_rollout(true_field, start, 0.05, 200)
    drift = (true_energy(ours[-1]) - true_energy(ours[0])).abs().max().item()
    print(f"rms error of the field {error:.4f}")
    print(f"after t = 10: distance to the true path {(ours[-1] - exact[-1]).norm(dim=1).max().item():.3f}, "
          f"energy drift {drift:.4f}")
    # H is only known up to a constant, so it is compared after removing the means
    learned, reference = net.energy(z).squeeze(1), true_energy(z)
    gap = (learned - learned.mean()) - (reference - reference.mean())
    print(f"rms error of H {gap.pow(2).mean().sqrt().item():.4f}")


def main():
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(12)
    z = sample_states(500, gen)
    dz = true_field(z) + 0.05 * torch.randn(z.shape, generator=gen)
    net = HamiltonianNet()
    fit(net, z, dz)
    report(net, gen)


if __name__ == "__main__":
    main()
