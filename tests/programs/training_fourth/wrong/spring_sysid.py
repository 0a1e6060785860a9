"""System identification: recover stiffness and damping of a spring from noisy trajectories by differentiating
through the simulator."""
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)

TRUE_STIFFNESS, TRUE_DAMPING = 4.0, 0.6
DT, STEPS = 0.05, 60


class Spring(nn.Module):
    """A mass on a damped spring, integrated with the semi-implicit Euler method."""

    def __init__(self, stiffness=2.0, damping=0.0):
        super().__init__()
        self.stiffness = nn.Parameter(torch.tensor(stiffness))
        self.damping = nn.Parameter(torch.tensor(damping))

    def coefficients(self):
        # keep the simulation stable
        return self.stiffness.clamp(0.1, 20.0), self.damping.clamp(0.02, 5.0)

    def forward(self, position, velocity):
        k, c = self.coefficients()
        trajectory = []
        for _ in range(STEPS):
            velocity = velocity + DT * (-k * position - c * velocity)
            position = position + DT * velocity
            trajectory.append(position)
        return torch.stack(trajectory, 1)


def record(n, noise=0.03):
    position, velocity = torch.empty(n).uniform_(-1.5, 1.5), torch.randn(n)
    with torch.no_grad():
        path = Spring(TRUE_STIFFNESS, TRUE_DAMPING)(position, velocity)
    return position, velocity, path + noise * torch.randn_like(path)


def fit(model, data, iterations=150):
    position, velocity, path = data
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.98)
    for i in range(iterations):
        loss = (model(position, velocity) - path).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if i % 30 == 0:
            print(f"iteration {i:3d}  loss {loss.item():.5f}")
    return loss.item()


def main():
    train, test = record(64), record(64)
    model = Spring()
    fit(model, train)
    with torch.no_grad():
        k, c = (v.item() for v in model.coefficients())
        error = (model(test[0], test[1]) - test[2]).pow(2).mean().item()
    print(f"stiffness {k:.3f} (true {TRUE_STIFFNESS}), damping {c:.3f} (true {TRUE_DAMPING})")
    print(f"prediction error on new trajectories {error:.5f} (noise {0.03 ** 2:.5f})")


if __name__ == "__main__":
    main()
