"""Neural ODE for a damped pendulum, fitted to short noisy windows with a belief-style optimizer."""
import math
import torch
import torch.nn as nn

torch.manual_seed(31)

DT = 0.1
WINDOW = 5
STEPS = 700
BATCH = 8


def true_field(state):
    theta, omega = state[..., 0], state[..., 1]
    return torch.stack([omega, -2.0 * torch.sin(theta) - 0.25 * omega], dim=-1)


def rk4(field, state, dt):
    k1 = field(state)
    k2 = field(state + 0.5 * dt * k1)
    k3 = field(state + 0.5 * dt * k2)
    k4 = field(state + dt * k3)
    return state + dt / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4)


def rollout(field, state, n):
    path = [state]
    for _ in range(n):
        path.append(rk4(field, path[-1], DT))
    return torch.stack(path, dim=1)


class Belief(torch.optim.Optimizer):
    """AdaBelief (Zhuang et al. 2020): step size from the deviation of the gradient from its running mean."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        lr = self.defaults["lr"]
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["t"] = 0
                    state["mean"] = torch.zeros_like(p)
                    state["belief"] = torch.zeros_like(p)
                state["t"] += 1
                mean, belief = state["mean"], state["belief"]
                mean.lerp_(p.grad, 1 - b1)
                dev = p.grad - mean
                belief.mul_(b2).addcmul_(dev, dev, value=1 - b2).add_(group["eps"])
                m_hat = mean / (1 - b1 ** state["t"])
                s_hat = belief / (1 - b2 ** state["t"])
                p.mul_(1 - lr * group["weight_decay"])
                p.addcdiv_(m_hat, s_hat.sqrt().add_(group["eps"]), value=-lr)


class Field(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 2))

    def forward(self, state):
        return self.net(state)


def draw_starts(n):
    return torch.stack([(torch.rand(n) * 2 - 1) * 2.5, (torch.rand(n) * 2 - 1) * 2.0], dim=-1)


windows = rollout(true_field, draw_starts(600), WINDOW)
windows = windows + 0.005 * torch.randn_like(windows)
probe = rollout(true_field, draw_starts(400), WINDOW)

field = Field()
opt = Belief(field.parameters(), lr=3e-2, weight_decay=1e-4)
warmup = 50
sched = torch.optim.lr_scheduler.LambdaLR(
    opt, lambda s: min(1.0, (s + 1) / warmup) * 0.5 * (1 + math.cos(math.pi * min(1.0, s / STEPS))))

for step in range(1, STEPS + 1):
    batch = windows[torch.randint(0, len(windows), (BATCH,))]
    loss = (rollout(field, batch[:, 0], WINDOW) - batch).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    if step % 140 == 0:
        print(f"step {step:4d}  lr {sched.get_last_lr()[0]:.2e}  window loss {loss.item():.5f}")

with torch.no_grad():
    forecast = rollout(field, probe[:, 0], WINDOW)
    forecast_error = (forecast - probe).pow(2).mean().sqrt().item()
    field_error = (field(probe) - true_field(probe)).pow(2).mean().sqrt().item()
print(f"held-out window RMSE {forecast_error:.4f}  vector field RMSE {field_error:.4f}")
