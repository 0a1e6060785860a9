"""A valve controller for water tanks, learned off-policy with an actor, a critic and slowly following targets."""
import copy

import torch
from torch import nn
from torch.nn import functional as F


class Tanks:
    """A row of tanks; the state is (level, wanted level), the reward is minus the squared distance and the effort."""

    def __init__(self, count):
        self.count = count
        self.level = torch.rand(count, 1) * 2 - 1
        self.wanted = torch.rand(count, 1) * 1.2 - 0.6

    def state(self):
        return torch.cat([self.level, self.wanted], dim=1)

    def step(self, valve):
        noise = 0.02 * torch.randn(self.count, 1)
        self.level = (0.9 * self.level + 0.3 * valve + noise).clamp(-1.5, 1.5)
        reward = -(self.level - self.wanted).pow(2) - 0.01 * valve.pow(2)
        state = self.state()
        renew = torch.rand(self.count, 1) < 0.1
        self.wanted = torch.where(renew, torch.rand(self.count, 1) * 1.2 - 0.6, self.wanted)
        return state, reward


class Memory:
    def __init__(self, size):
        self.size = size
        self.rows = []

    def add(self, *row):
        self.rows.extend(zip(*row))
        self.rows = self.rows[-self.size:]

    def sample(self, count):
        picks = torch.randint(len(self.rows), (count,)).tolist()
        return [torch.stack(column) for column in zip(*(self.rows[i] for i in picks))]


class Actor(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Linear(width, 1), nn.Tanh())

    def forward(self, state):
        return self.body(state)


class Critic(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, state, valve):
        return self.body(torch.cat([state, valve], dim=1))


class Controller:
    def __init__(self, discount=0.9, follow=0.05):
        self.discount = discount
        self.follow = follow
        self.actor, self.critic = Actor(), Critic()
        self.actor_target = copy.deepcopy(self.actor).requires_grad_(False)
        self.critic_target = copy.deepcopy(self.critic).requires_grad_(False)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=2e-3)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=4e-3)

    @torch.no_grad()
    def act(self, state, spread):
        valve = self.actor(state)
        return (valve + spread * torch.randn_like(valve)).clamp(-1, 1)

    def update(self, state, valve, reward, after):
        with torch.no_grad():
            wanted = reward + self.discount * self.critic_target(after, self.actor_target(after))
        critic_loss = F.mse_loss(self.critic(state, valve), wanted)
        critic_loss.backward()
        self.critic_optimizer.step()
        self.critic_optimizer.zero_grad()

        actor_loss = -self.critic(state, self.actor(state)).mean()
        actor_loss.backward()
        self.actor_optimizer.step()
        self.actor_optimizer.zero_grad()

        self.move_target(self.actor, self.actor_target)
        self.move_target(self.critic, self.critic_target)
        return critic_loss.item(), -actor_loss.item()

    @torch.no_grad()
    def move_target(self, online, target):
        for p, t in zip(online.parameters(), target.parameters()):
            t.lerp_(p, self.follow)


def main():
    torch.manual_seed(11)
    tanks, memory, controller = Tanks(24), Memory(4000), Controller()
    history = []
    for step in range(160):
        state = tanks.state()
        valve = controller.act(state, spread=0.4)
        after, reward = tanks.step(valve)
        memory.add(state, valve, reward, after)
        critic_loss, value = controller.update(*memory.sample(48))
        history.append((critic_loss, value, reward.mean().item()))
        if (step + 1) % 40 == 0:
            losses, values, rewards = (sum(column) / 40 for column in zip(*history[-40:]))
            print(f"step {step + 1:4d}  critic {losses:.4f}  value {values:+.3f}  reward {rewards:+.4f}")
    return controller, history


if __name__ == "__main__":
    controller, history = main()
