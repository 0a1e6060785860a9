"""Evolution strategies for a cart-pole balancing policy (OpenAI-ES style), no backprop at all.

The search gradient is estimated from mirrored perturbations and handed to Adam.
"""
import math

import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

torch.manual_seed(17)

PAIRS, SIGMA = 12, 0.2
GENERATIONS, HORIZON, STARTS = 16, 60, 8


def physics(state, force):
    """One Euler step of the usual cart-pole equations, batched over the last-but-one axis."""
    x, v, angle, rate = state.unbind(-1)
    sin, cos = torch.sin(angle), torch.cos(angle)
    temp = (force + 0.05 * rate ** 2 * sin) / 1.1
    acc_angle = (9.8 * sin - cos * temp) / (0.5 * (4.0 / 3.0 - 0.1 * cos ** 2 / 1.1))
    acc = temp - 0.05 * acc_angle * cos / 1.1
    return torch.stack([x + 0.02 * v, v + 0.02 * acc, angle + 0.02 * rate, rate + 0.02 * acc_angle], dim=-1)


def episode_return(policy, start):
    """Average number of steps that the pole stays up, with a small bonus for being centred."""
    state = start.clone()
    alive = torch.ones(len(state))
    total = torch.zeros(len(state))
    for _ in range(HORIZON):
        state = physics(state, 10.0 * policy(state).squeeze(-1))
        alive = alive * ((state[:, 2].abs() < 0.21) & (state[:, 0].abs() < 2.4)).float()
        total = total + alive * (1.0 - 0.1 * state[:, 0].abs().clamp(max=2.4))
    return total.mean().item()


def centred_ranks(values):
    ranks = values.argsort().argsort().float()
    return ranks / (len(values) - 1) - 0.5


def starts(n):
    state = 0.1 * torch.randn(n, 4)
    state[:, 2] = (torch.rand(n) * 2 - 1) * math.radians(6)
    return state


policy = nn.Sequential(nn.Linear(4, 12), nn.Tanh(), nn.Linear(12, 1), nn.Tanh())
for p in policy.parameters():
    p.requires_grad_(False)
optimizer = torch.optim.Adam(policy.parameters(), lr=0.1)
n_params = sum(p.numel() for p in policy.parameters())


def set_search_gradient(direction):
    """Spread a flat ascent direction over the .grad fields (Adam minimises, hence the sign)."""
    offset = 0
    for p in policy.parameters():
        piece = direction[offset:offset + p.numel()].view_as(p)
        p.grad = -piece.clone()
        offset += p.numel()


test_start = starts(32)
print(f"before training: {episode_return(policy, test_start):.2f} of {HORIZON}")

for generation in range(GENERATIONS):
    centre = parameters_to_vector(policy.parameters()).clone()
    noise = torch.randn(PAIRS, n_params)
    batch = starts(STARTS)
    scores = []
    for eps in noise:
        for sign in (1.0, -1.0):
            vector_to_parameters(centre + sign * SIGMA * eps, policy.parameters())
            scores.append(episode_return(policy, batch))
    vector_to_parameters(centre, policy.parameters())

    scores = torch.tensor(scores)
    ranks = centred_ranks(scores).view(PAIRS, 2)
    direction = ((ranks[:, 0] - ranks[:, 1]).unsqueeze(1) * noise).mean(0) / (2 * SIGMA)
    set_search_gradient(direction - 0.005 * centre)
    optimizer.step()

    if generation % 4 == 3:
        print(f"generation {generation + 1:2d}  population mean {scores.mean().item():.2f}"
              f"  test return {episode_return(policy, test_start):.2f}")

print(f"after training: {episode_return(policy, test_start):.2f} of {HORIZON}")
