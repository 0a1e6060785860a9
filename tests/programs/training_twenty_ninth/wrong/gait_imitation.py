"""Adversarial imitation of a gait: a discriminator tells demonstrated transitions from those of the policy.

The policy drives a planar joint around a limit cycle; its reward is the discriminator's score.
"""
import torch
from torch import nn
from torch.nn import functional as F

HORIZON = 12
PENALTY = 5.0


def dynamics(state, action):
    """Position and velocity of a joint under a commanded acceleration."""
    pos, vel = state.unbind(-1)
    vel = vel + 0.2 * action.squeeze(-1).clamp(-3.0, 3.0)
    pos = pos + 0.2 * vel
    return torch.stack([pos, vel], dim=-1).clamp(-3.0, 3.0)


def reference_action(state):
    """Van der Pol gait."""
    pos, vel = state.unbind(-1)
    return ((1.0 - pos ** 2) * vel - pos).clamp(-3.0, 3.0).unsqueeze(-1)


@torch.no_grad()
def collect(act, count):
    state = torch.randn(count, 2)
    states, actions = [], []
    for _ in range(HORIZON):
        action = act(state)
        states.append(state)
        actions.append(action)
        state = dynamics(state, action)
    return torch.stack(states), torch.stack(actions)


class Policy(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.mean = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        self.log_std = nn.Parameter(torch.full((1,), -0.5))

    def distribution(self, state):
        return torch.distributions.Normal(3.0 * torch.tanh(self.mean(state)), self.log_std.exp())

    def sample(self, state):
        return self.distribution(state).sample()


class Discriminator(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                                 nn.Linear(hidden, 1))

    def forward(self, pairs):
        return self.net(pairs).squeeze(-1)


def gradient_penalty(disc, expert):
    """Squared slope of the score at the demonstrated pairs."""
    points = expert.clone().requires_grad_(True)
    scores = disc(points)
    slopes = torch.autograd.grad(scores, points, grad_outputs=torch.ones_like(scores))[0]
    return slopes.pow(2).sum(-1).mean()


def update_discriminator(disc, optimizer, expert, fake):
    real_score, fake_score = disc(expert), disc(fake)
    classify = (F.binary_cross_entropy_with_logits(real_score, torch.ones_like(real_score))
                + F.binary_cross_entropy_with_logits(fake_score, torch.zeros_like(fake_score)))
    penalty = gradient_penalty(disc, expert)
    loss = classify + PENALTY * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return classify.item(), penalty.item()


def update_policy(policy, disc, optimizer, states, actions):
    with torch.no_grad():
        rewards = F.logsigmoid(disc(torch.cat([states, actions], -1)))
        returns = rewards.flip(0).cumsum(0).flip(0)
        advantage = returns - returns.mean(1, keepdim=True)
        advantage = advantage / (advantage.std() + 1e-6)
    log_prob = policy.distribution(states).log_prob(actions).squeeze(-1)
    loss = -(log_prob * advantage).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return rewards.mean().item()


def main():
    torch.manual_seed(5)
    demo_states, demo_actions = collect(reference_action, 64)
    demos = torch.cat([demo_states, demo_actions], -1).flatten(0, 1)

    policy, disc = Policy(), Discriminator()
    policy_opt = torch.optim.Adam(policy.parameters(), lr=5e-3)
    disc_opt = torch.optim.Adam(disc.parameters(), lr=3e-3)
    for iteration in range(70):
        states, actions = collect(policy.sample, 32)
        fakes = torch.cat([states, actions], -1).flatten(0, 1)
        for _ in range(2):
            expert = demos[torch.randint(len(demos), (128,))]
            fake = fakes[torch.randint(len(fakes), (128,))]
            classify, penalty = update_discriminator(disc, disc_opt, expert, fake)
        reward = update_policy(policy, disc, policy_opt, states, actions)
        if iteration % 10 == 9:
            print(f"iteration {iteration + 1:3d}  discriminator {classify:.3f}  penalty {penalty:.3f}  reward {reward:.3f}")

    with torch.no_grad():
        gap = (policy.distribution(demo_states).mean - demo_actions).abs().mean().item()
    print(f"mean distance to the reference action: {gap:.3f}")


if __name__ == "__main__":
    main()
