"""RL homework 6: evolution strategies on cart-pole, with the update left to Adam.

All members of the population are simulated at once; their weights are rows of one matrix.
"""
import torch
import torch.nn as nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

POPULATION, SIGMA, MAX_STEPS = 40, 0.15, 200


def step_physics(state, force):
    """Cart-pole of Barto, Sutton and Anderson; state (..., 4)."""
    x, x_dot, theta, theta_dot = state.unbind(-1)
    sin, cos = torch.sin(theta), torch.cos(theta)
    temp = (force + 0.05 * theta_dot ** 2 * sin) / 1.1
    theta_acc = (9.8 * sin - cos * temp) / (0.5 * (4.0 / 3.0 - 0.1 * cos ** 2 / 1.1))
    x_acc = temp - 0.05 * theta_acc * cos / 1.1
    new = [x + 0.02 * x_dot, x_dot + 0.02 * x_acc, theta + 0.02 * theta_dot, theta_dot + 0.02 * theta_acc]
    return torch.stack(new, dim=-1)


class Policy(nn.Module):
    def __init__(self, hidden=8):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, obs):
        return self.net(obs).squeeze(-1)


def episode_lengths(policy, flat_weights, starts):
    """Steps until the pole falls, for each row of flat_weights and each start: (members, starts)."""
    named, offset = {}, 0
    for name, p in policy.named_parameters():
        named[name] = flat_weights[:, offset:offset + p.numel()].view(-1, *p.shape)
        offset += p.numel()

    def act(weights, obs):
        return torch.func.functional_call(policy, weights, (obs,))

    act_all = torch.func.vmap(act)
    state = starts.expand(len(flat_weights), -1, -1)
    alive = torch.ones(state.shape[:2], dtype=torch.bool)
    length = torch.zeros(state.shape[:2])
    for _ in range(MAX_STEPS):
        force = torch.where(act_all(named, state) > 0, 10.0, -10.0)
        state = torch.where(alive[..., None], step_physics(state, force), state)
        alive &= (state[..., 0].abs() < 2.4) & (state[..., 2].abs() < 0.21)
        length += alive
        if not alive.any():
            break
    return length


def centered_ranks(scores):
    ranks = torch.empty_like(scores)
    ranks[scores.argsort()] = torch.arange(len(scores), dtype=scores.dtype)
    return ranks / (len(scores) - 1) - 0.5


@torch.no_grad()
def train(policy, optimizer, generations=20):
    for generation in range(generations):
        center = parameters_to_vector(policy.parameters())
        half = torch.randn(POPULATION // 2, len(center))
        noise = torch.cat([half, -half])
        starts = 0.1 * torch.rand(3, 4) - 0.05
        scores = episode_lengths(policy, center + SIGMA * noise, starts).mean(dim=1)

        ascent = centered_ranks(scores) @ noise / (POPULATION * SIGMA)
        offset = 0
        for p in policy.parameters():
            p.grad = -ascent[offset:offset + p.numel()].view_as(p)
            offset += p.numel()
        optimizer.step()
        if generation % 5 == 4:
            print(f"generation {generation + 1}: mean length {scores.mean().item():.1f}, best {scores.max().item():.1f}")


@torch.no_grad()
def evaluate(policy, n=20):
    weights = parameters_to_vector(policy.parameters()).unsqueeze(0)
    return episode_lengths(policy, weights, 0.1 * torch.rand(n, 4) - 0.05).mean().item()


def main():
    torch.manual_seed(21)
    policy = Policy()
    vector_to_parameters(0.1 * torch.randn(49), policy.parameters())
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.1)
    print(f"before: {evaluate(policy):.1f} steps")
    train(policy, optimizer)
    print(f"after: {evaluate(policy):.1f} steps")


if __name__ == "__main__":
    main()
