"""Hamiltonian net for a pendulum, trained through short leapfrog rollouts."""
import torch
import torch.nn as nn
import torch.nn.functional as F

DT = 0.1


def pendulum_energy(q, p):
    return 0.5 * p.pow(2) + (1.0 - torch.cos(q))


class Potential(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, q):
        return self.net(torch.cat([torch.sin(q), torch.cos(q)], dim=-1))

    def force(self, q):
        if not q.requires_grad:
            q = q.detach().requires_grad_()
        energy = self.forward(q).sum()
        return -torch.autograd.grad(energy, q, create_graph=True)[0]


class LeapfrogModel(nn.Module):
    """Separable Hamiltonian: learned potential and learned inverse mass."""

    def __init__(self):
        super().__init__()
        self.potential = Potential()
        self.log_inv_mass = nn.Parameter(torch.tensor(0.4))

    def rollout(self, q, p, steps):
        inv_mass = self.log_inv_mass.exp()
        qs, ps = [], []
        for _ in range(steps):
            p = p + 0.5 * DT * self.potential.force(q)
            q = q + DT * inv_mass * p
            p = p + 0.5 * DT * self.potential.force(q)
            qs.append(q)
            ps.append(p)
        return torch.stack(qs), torch.stack(ps)


def simulate(q, p, steps, sub=4):
    qs, ps = [], []
    h = DT / sub
    for _ in range(steps):
        for _ in range(sub):
            p = p - 0.5 * h * torch.sin(q)
            q = q + h * p
            p = p - 0.5 * h * torch.sin(q)
        qs.append(q)
        ps.append(p)
    return torch.stack(qs), torch.stack(ps)


def initial_states(count):
    q = 2.4 * torch.rand(count, 1) - 1.2
    p = 1.6 * torch.rand(count, 1) - 0.8
    return q, p


class DriftMonitor:
    """Smoothed energy drift of long rollouts from fixed states."""

    def __init__(self, count=48, steps=30, decay=0.9):
        self.q, self.p = initial_states(count)
        self.steps = steps
        self.decay = decay
        self.value = None

    def update(self, model):
        qs, ps = model.rollout(self.q, self.p, self.steps)
        energy = pendulum_energy(qs, ps)
        start = pendulum_energy(self.q, self.p)
        drift = (energy - start).abs().mean()
        if self.value is None:
            self.value = drift
        else:
            self.value = self.decay * self.value + (1.0 - self.decay) * drift
        return self.value


def main(steps=150, horizon=4, every=5):
    torch.manual_seed(8)
    model = LeapfrogModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    monitor = DriftMonitor()
    for step in range(steps):
        q, p = initial_states(48)
        true_q, true_p = simulate(q, p, horizon)
        pred_q, pred_p = model.rollout(q, p, horizon)
        loss = F.mse_loss(pred_q, true_q) + F.mse_loss(pred_p, true_p)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % every == 0:
            drift = monitor.update(model)
            if step % 30 == 0:
                print(f"step {step:4d}  loss {loss.item():.6f}  energy drift {drift.item():.4f}")
    mass = torch.exp(-model.log_inv_mass).item()
    print(f"final loss {loss.item():.6f}  mass {mass:.3f}  energy drift {drift.item():.4f}")
    return model, monitor


if __name__ == "__main__":
    pendulum, drift_monitor = main()
