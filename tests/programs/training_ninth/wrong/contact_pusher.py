"""A push controller trained through a differentiable planar contact simulation with sliding friction."""
import torch
from torch import nn

DT, STEPS, RADIUS = 0.05, 30, 0.35
STIFFNESS, FRICTION, SLIP = 60.0, 0.8, 0.05


def scenes(n, gen):
    """A disc, a finger that starts at its rim, and a goal."""
    disc = torch.rand(n, 2, generator=gen) * 2 - 1
    angle = torch.rand(n, 1, generator=gen) * 6.2832
    reach = 0.22 + 0.132 * torch.rand(n, 1, generator=gen)
    finger = disc + reach * torch.cat([angle.cos(), angle.sin()], dim=1)
    goal = disc + 0.6 * torch.randn(n, 2, generator=gen)
    return disc, finger, goal


def contact(disc, finger):
    gap = disc - finger
    dist = (gap.pow(2).sum(1, keepdim=True) + 1e-8).sqrt()
    return STIFFNESS * torch.relu(RADIUS - dist) * gap / dist


def friction(vel):
    speed = vel.pow(2).sum(1, keepdim=True).sqrt()
    return -FRICTION * torch.tanh(speed / SLIP) * vel / (speed + 1e-6)


def physics_step(disc, vel, finger, push):
    finger = finger + DT * push
    vel = vel + DT * (contact(disc, finger) + friction(vel))
    vel = 0.92 * vel
    return disc + DT * vel, vel, finger


class Pusher(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(6, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 2)
        )
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, disc, vel, finger, goal):
        return 2.5 * torch.tanh(self.net(torch.cat([3 * (disc - finger), vel, goal - disc], dim=1)))


def rollout(policy, disc, finger, goal):
    vel = torch.zeros_like(disc)
    cost = 0.0
    for k in range(STEPS):
        push = policy(disc, vel, finger, goal)
        disc, vel, finger = physics_step(disc, vel, finger, push)
        cost = cost + (disc - goal).pow(2).sum(1) * (0.5 + k / STEPS) + 0.001 * push.pow(2).sum(1)
    return cost / STEPS


def clean_gradients(module):
    """A single wild scene must not spoil the weights."""
    for p in module.parameters():
        if p.grad is not None:
            p.grad = torch.nan_to_num(p.grad, nan=0.0, posinf=0.0, neginf=0.0)


def train(updates=200, batch=32):
    torch.manual_seed(9)
    gen = torch.Generator().manual_seed(9)
    policy = Pusher()
    optimizer = torch.optim.Adam(policy.parameters(), lr=4e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 110, gamma=0.5)
    norms, costs = [], []
    for it in range(updates):
        cost = rollout(policy, *scenes(batch, gen)).mean()
        optimizer.zero_grad()
        cost.backward()
        clean_gradients(policy)
        norms.append(nn.utils.clip_grad_norm_(policy.parameters(), 1.0).item())
        optimizer.step()
        scheduler.step()
        costs.append(cost.item())
        if it % 40 == 0:
            print(f"{it:4d}  cost {cost.item():.3f}")
    return policy, costs, norms


def evaluate(policy):
    gen = torch.Generator().manual_seed(1234)
    with torch.no_grad():
        return rollout(policy, *scenes(400, gen)).mean().item()


if __name__ == "__main__":
    policy, costs, norms = train()
    final = evaluate(policy)
    print(f"cost in training {sum(costs[-20:]) / 20:.3f}  on new scenes {final:.3f}")
