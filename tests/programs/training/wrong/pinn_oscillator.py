"""Physics informed network for a damped oscillator u'' + 2 d u' + w^2 u = 0."""
import torch
import torch.nn as nn

torch.manual_seed(7)

DAMP, OMEGA = 0.5, 3.0
STEPS = 200


class Field(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(1, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, 1),
        )

    def forward(self, t):
        return self.net(t)


def residual(field, t):
    t = t.clone().requires_grad_(True)
    u = field(t)
    u_t = torch.autograd.grad(u.sum(), t, create_graph=True)[0]
    u_tt = torch.autograd.grad(u_t.sum(), t, retain_graph=True)[0]
    return u_tt + 2 * DAMP * u_t + OMEGA**2 * u


def initial_condition(field):
    t0 = torch.zeros(1, 1, requires_grad=True)
    u0 = field(t0)
    v0 = torch.autograd.grad(u0.sum(), t0, create_graph=True)[0]
    return (u0 - 1.0).pow(2).mean() + v0.pow(2).mean()


def exact(t):
    w = (OMEGA**2 - DAMP**2) ** 0.5
    return torch.exp(-DAMP * t) * (torch.cos(w * t) + DAMP / w * torch.sin(w * t))


field = Field()
optimizer = torch.optim.Adam(field.parameters(), lr=3e-3)
t_train = torch.linspace(0, 2, 40).unsqueeze(1)

for step in range(STEPS):
    physics = residual(field, t_train).pow(2).mean()
    start = initial_condition(field)
    loss = 1e-2 * physics + start
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step}: physics {physics.item():.4f} start {start.item():.4f}")

with torch.no_grad():
    error = (field(t_train) - exact(t_train)).abs().mean()
print(f"mean abs error {error:.4f}")
