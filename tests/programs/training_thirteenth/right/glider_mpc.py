"""Learn a dynamics model of a glider from random flights, then fly it by gradient-based model-predictive control."""
import torch
from torch import nn

torch.manual_seed(31)

STATE = 4
HORIZON = 12
PLAN_STEPS = 8
FLIGHT = 20
ENSEMBLE = 3


def glider(state, control):
    """Planar glider: height, speed, pitch, pitch rate; the control is the elevator."""
    h, v, pitch, rate = state.unbind(-1)
    u = control.squeeze(-1)
    lift = 0.6 * v * torch.sin(2 * pitch)
    h = h + 0.1 * (v * torch.sin(pitch) - 0.1)
    v = v + 0.1 * (0.4 - 0.4 * v - lift.abs() * 0.3)
    rate = rate + 0.1 * (2.0 * u - 1.5 * rate - 0.8 * pitch)
    pitch = (pitch + 0.1 * rate).clamp(-1.2, 1.2)
    return torch.stack([h, v, pitch, rate], dim=-1)


def start_states(n):
    return torch.randn(n, STATE) * torch.tensor([0.4, 0.2, 0.2, 0.2]) + torch.tensor([0.0, 1.0, 0.0, 0.0])


def random_flights(n, length=20):
    state = start_states(n)
    rows = []
    for _ in range(length):
        control = torch.rand(n, 1) * 2 - 1
        nxt = glider(state, control)
        rows.append((state, control, nxt))
        state = nxt
    return tuple(torch.cat(part) for part in zip(*rows))


class Dynamics(nn.Module):
    """Predicts the normalised change of state; inputs are standardised by statistics of the flights."""

    def __init__(self, width=32):
        super().__init__()
        self.norm = nn.BatchNorm1d(STATE + 1, affine=False, momentum=None)
        self.net = nn.Sequential(nn.Linear(STATE + 1, width), nn.SiLU(),
                                 nn.Linear(width, width), nn.SiLU(), nn.Linear(width, STATE))

    def forward(self, state, control):
        return state + 0.1 * self.net(self.norm(torch.cat([state, control], dim=-1)))


def fit(models, steps=300):
    state, control, nxt = random_flights(100)
    optimizer = torch.optim.Adam(models.parameters(), lr=4e-3)
    for step in range(steps):
        loss = 0.0
        for model in models:
            rows = torch.randint(len(state), (128,))
            loss = loss + ((model(state[rows], control[rows]) - nxt[rows]) / 0.1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"fit {step:4d}  loss {loss.item() / ENSEMBLE:.4f}")


def plan(models, state, warm):
    """Optimise the elevator sequence through the frozen models, starting from the shifted previous plan."""
    raw = warm.clone().requires_grad_(True)
    optimizer = torch.optim.Adam([raw], lr=0.2)
    for _ in range(PLAN_STEPS):
        states = [state for _ in models]
        cost = 0.0
        for k in range(HORIZON):
            u = torch.tanh(raw[:, k:k + 1])
            states = [m(s, u) for m, s in zip(models, states)]
            cost = cost + sum((s[:, 0] - 0.5).pow(2).mean() for s in states) / ENSEMBLE + 0.01 * u.pow(2).mean()
        optimizer.zero_grad()
        cost.backward()
        optimizer.step()
    return raw.detach()


def fly(models, n=4):
    state, warm = start_states(n), torch.zeros(n, HORIZON)
    for _ in range(FLIGHT):
        raw = plan(models, state, warm)
        state = glider(state, torch.tanh(raw[:, :1]))
        warm = torch.cat([raw[:, 1:], raw[:, -1:]], dim=1)
    return (state[:, 0] - 0.5).abs().mean().item()


def main():
    models = nn.ModuleList(Dynamics() for _ in range(ENSEMBLE))
    fit(models)
    models.eval().requires_grad_(False)
    error = fly(models)
    free = start_states(64)
    for _ in range(FLIGHT):
        free = glider(free, torch.zeros(64, 1))
    print(f"height error after {FLIGHT} steps: planned {error:.3f}, no control {(free[:, 0] - 0.5).abs().mean().item():.3f}")


if __name__ == "__main__":
    main()
