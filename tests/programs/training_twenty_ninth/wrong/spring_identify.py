"""Grey-box identification of an actuated spring-damper axis.

The linear part has three physical coefficients; a small network takes up the friction that the linear part lacks.
"""
import math

import torch
from torch import nn

DT = 0.05
STIFFNESS, DAMPING, GAIN = 4.0, 0.6, 1.5


def simulate(x0, forces):
    """The plant: explicit integration with a smooth Coulomb friction."""
    states = [x0]
    pos, vel = x0[:, 0], x0[:, 1]
    for t in range(forces.shape[1]):
        friction = 0.2 * torch.tanh(vel / 0.1)
        acc = -STIFFNESS * pos - DAMPING * vel + GAIN * forces[:, t] - friction
        pos, vel = pos + DT * vel, vel + DT * acc
        states.append(torch.stack([pos, vel], dim=-1))
    return torch.stack(states, dim=1)


def make_trials(count, length, noise=0.002):
    x0 = torch.randn(count, 2) * 0.8
    phase = torch.rand(count, 1) * 2 * math.pi
    omega = 0.5 + 3.0 * torch.rand(count, 1)
    time = torch.arange(length) * DT
    forces = 2.0 * torch.sin(omega * time + phase) + 0.5 * torch.randn(count, length)
    states = simulate(x0, forces)
    return states + noise * torch.randn_like(states), forces


class SpringDamper(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.stiffness = nn.Parameter(torch.tensor(2.5))
        self.damping = nn.Parameter(torch.tensor(0.2))
        self.gain = nn.Parameter(torch.tensor(1.0))
        self.friction = nn.Sequential(nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        nn.init.normal_(self.friction[-1].weight, std=0.01)
        nn.init.zeros_(self.friction[-1].bias)
        self.A, self.B = self.matrices()

    def matrices(self):
        """State and input matrix of x' = A x + B u."""
        zero, one = torch.zeros(()), torch.ones(())
        A = torch.stack([torch.stack([zero, one]), torch.stack([-self.stiffness, -self.damping])])
        B = torch.stack([zero, self.gain]).unsqueeze(-1)
        return A, B

    def step(self, x, u):
        A, B = self.A, self.B
        slip = self.friction(x[:, 1:])
        rate = x @ A.T + u @ B.T + torch.cat([torch.zeros_like(slip), slip], dim=-1)
        return x + DT * rate

    def rollout(self, x0, forces):
        states = [x0]
        for t in range(forces.shape[1]):
            states.append(self.step(states[-1], forces[:, t:t + 1]))
        return torch.stack(states, dim=1)


def windows(states, forces, count, horizon):
    trial = torch.randint(states.shape[0], (count,))
    start = torch.randint(forces.shape[1] - horizon, (count,))
    index = start[:, None] + torch.arange(horizon + 1)
    return states[trial[:, None], index], forces[trial[:, None], index[:, :-1]]


def main():
    torch.manual_seed(11)
    states, forces = make_trials(24, 100)
    test_states, test_forces = make_trials(8, 100)

    model = SpringDamper()
    optimizer = torch.optim.Adam([
        {"params": [model.stiffness, model.damping, model.gain], "lr": 2e-2},
        {"params": model.friction.parameters(), "lr": 3e-3},
    ])
    for step in range(160):
        x, u = windows(states, forces, 32, 6)
        predicted = model.rollout(x[:, 0], u)
        loss = ((predicted - x) ** 2).sum(-1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step:4d}  window error {loss.item():.5f}")

    with torch.no_grad():
        error = (model.rollout(test_states[:, 0], test_forces) - test_states).pow(2).mean().sqrt()
    print(f"stiffness {model.stiffness.item():.3f}  damping {model.damping.item():.3f}  gain {model.gain.item():.3f}")
    print(f"open-loop error on new trials {error.item():.4f}")
    return model, error.item()


if __name__ == "__main__":
    main()
