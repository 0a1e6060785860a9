"""Deterministic actor-critic that keeps two coupled water tanks at their set point, with delayed actor updates."""
import copy

import torch
from torch import nn

torch.manual_seed(41)

N_ENVS = 32
UPDATES = 1000
GAMMA = 0.95
POLYAK = 0.98
ACTOR_EVERY = 2
EPISODE = 25


def step_tanks(level, valve):
    """Water runs from the pump into tank one, over into tank two, and out."""
    a, b = level.unbind(1)
    inflow = 0.35 * (valve.squeeze(1) + 1)
    a2 = a + 0.2 * (inflow - 0.5 * a)
    b2 = b + 0.2 * (0.5 * a - 0.5 * b)
    nxt = torch.stack([a2, b2], dim=1).clamp(0, 2)
    reward = -(b2 - 1.0).pow(2) - 0.02 * valve.squeeze(1).pow(2)
    return nxt, reward.unsqueeze(1)


class Actor(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))
        with torch.no_grad():
            self.net[-1].weight.mul_(0.1)

    def forward(self, level):
        return torch.tanh(self.net(level - 1.0))


class Critic(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, level, valve):
        return self.net(torch.cat([level - 1.0, valve], dim=1))


class Replay:
    def __init__(self, size=8192):
        self.rows = torch.zeros(size, 6)
        self.filled = self.head = 0

    def add(self, level, valve, reward, nxt):
        index = (self.head + torch.arange(len(level))) % len(self.rows)
        self.rows[index] = torch.cat([level, valve, reward, nxt], dim=1)
        self.head = (self.head + len(level)) % len(self.rows)
        self.filled = min(self.filled + len(level), len(self.rows))

    def sample(self, n):
        return self.rows[torch.randint(self.filled, (n,))].split([2, 1, 1, 2], dim=1)


@torch.no_grad()
def evaluate(policy, n=128):
    level, total = torch.rand(n, 2) * 1.5, 0.0
    for _ in range(EPISODE):
        level, reward = step_tanks(level, policy(level))
        total += reward.mean().item()
    return total


def main():
    actor, critic = Actor(), Critic()
    slow_actor, slow_critic = copy.deepcopy(actor), copy.deepcopy(critic)
    actor_opt = torch.optim.Adam(actor.parameters(), lr=1e-3)
    critic_opt = torch.optim.Adam(critic.parameters(), lr=2e-3)
    replay, level = Replay(), torch.rand(N_ENVS, 2) * 1.5
    before = evaluate(actor)
    for update in range(UPDATES):
        with torch.no_grad():
            valve = (actor(level) + 0.3 * torch.randn(N_ENVS, 1)).clamp(-1, 1)
        nxt, reward = step_tanks(level, valve)
        replay.add(level, valve, reward, nxt)
        level = torch.rand(N_ENVS, 2) * 1.5 if (update + 1) % EPISODE == 0 else nxt

        s, a, r, s2 = replay.sample(128)
        # no terminal states: an episode that ends is only cut off, so the value of its last state still counts
        with torch.no_grad():
            target = r + GAMMA * slow_critic(s2, slow_actor(s2))
        critic_loss = (critic(s, a) - target).pow(2).mean()
        critic_opt.zero_grad()
        critic_loss.backward()
        critic_opt.step()

        if update % ACTOR_EVERY == 0:
            actor_loss = -critic(s, actor(s)).mean()
            actor_opt.zero_grad()
            actor_loss.backward()
            actor_opt.step()
            with torch.no_grad():
                for fast, slow in ((actor, slow_actor), (critic, slow_critic)):
                    for p, q in zip(fast.parameters(), slow.parameters()):
                        q.mul_(POLYAK).add_(p, alpha=1 - POLYAK)
        if update % 200 == 0:
            print(f"update {update:4d}  critic loss {critic_loss.item():.5f}")
    print(f"return: before {before:.3f}, actor {evaluate(actor):.3f}, slow actor {evaluate(slow_actor):.3f}")


if __name__ == "__main__":
    main()
