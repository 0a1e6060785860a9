"""Learning the energy of a pendulum from noisy phase-space velocities; gradient norms are recorded as the run goes on."""
import math

import torch
import torch.nn as nn


def phase_samples(n, gen, noise=0.05):
    q = math.pi * (2 * torch.rand(n, 1, generator=gen) - 1)
    p = 4 * torch.rand(n, 1, generator=gen) - 2
    state = torch.cat([q, p], dim=1)
    velocity = torch.cat([p, -torch.sin(q)], dim=1)
    return state, velocity + noise * torch.randn(n, 2, generator=gen)


class Energy(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(3, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def forward(self, state):
        q, p = state[:, :1], state[:, 1:]
        return self.net(torch.cat([torch.sin(q), torch.cos(q), p], dim=1))

    def field(self, state, training=True):
        with torch.enable_grad():
            leaf = state.detach().requires_grad_(True)
            grad, = torch.autograd.grad(self(leaf).sum(), leaf, create_graph=training)
        return torch.cat([grad[:, 1:], -grad[:, :1]], dim=1)


class NormLog:
    """Reads the total gradient norm; the infinite limit leaves all gradients as they are."""

    def __init__(self, params):
        self.params = list(params)
        self.values = []

    def read(self):
        norm = nn.utils.clip_grad_norm_(self.params, max_norm=math.inf)
        self.values.append(norm.item())

    def summary(self):
        v = torch.tensor(self.values)
        return v.median().item(), v.max().item()


def rollout(energy, state, dt=0.05, steps=100):
    path = [state]
    for _ in range(steps):
        mid = state + 0.5 * dt * energy.field(state, training=False)
        state = state + dt * energy.field(mid, training=False)
        path.append(state)
    return torch.stack(path)


def true_rollout(state, dt=0.05, steps=100):
    def field(s):
        return torch.cat([s[:, 1:], -torch.sin(s[:, :1])], dim=1)
    path = [state]
    for _ in range(steps):
        state = state + dt * field(state + 0.5 * dt * field(state))
        path.append(state)
    return torch.stack(path)


def main(epochs=24):
    torch.manual_seed(2)
    gen = torch.Generator().manual_seed(2)
    state, velocity = phase_samples(800, gen)
    energy = Energy()
    opt = torch.optim.Adam(energy.parameters(), lr=4e-3)
    sched = torch.optim.lr_scheduler.StepLR(opt, step_size=8, gamma=0.4)
    log = NormLog(energy.parameters())
    for epoch in range(epochs):
        total = 0.0
        for idx in torch.randperm(len(state), generator=gen).split(50):
            loss = (energy.field(state[idx]) - velocity[idx]).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            log.read()
            opt.step()
            total += loss.item() * len(idx)
        sched.step()
        if epoch % 6 == 5:
            print(f"epoch {epoch} loss {total / len(state):.4f} norm {log.values[-1]:.3f}")
    start = torch.tensor([[1.0, 0.0], [0.3, 1.0], [-1.5, 0.2]])
    gap = (rollout(energy, start) - true_rollout(start)).norm(dim=2).mean().item()
    median, largest = log.summary()
    print(f"path gap {gap:.3f}, gradient norm median {median:.3f} largest {largest:.3f}")
    return energy, gap


if __name__ == "__main__":
    energy, gap = main()
