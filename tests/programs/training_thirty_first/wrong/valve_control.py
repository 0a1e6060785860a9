"""Deterministic policy gradient for a bank of coupled tanks: two valves keep two levels at their set points."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

GAMMA = 0.9
TAU = 0.03


class TankBank:
    """A batch of identical tank pairs; the state is the deviation of the levels and the current inflow."""

    def __init__(self, count):
        self.count = count
        self.mixing = torch.tensor([[1.0, 0.3], [0.2, 0.8]])
        self.reset()

    def reset(self):
        self.level = torch.randn(self.count, 2)
        self.inflow = 0.3 * torch.randn(self.count, 2)
        return self.observe()

    def observe(self):
        return torch.cat([self.level, self.inflow], dim=1)

    def step(self, action):
        self.level = 0.95 * self.level + 0.3 * action @ self.mixing + 0.1 * self.inflow
        self.inflow = 0.9 * self.inflow + 0.1 * torch.randn_like(self.inflow)
        reward = -self.level.pow(2).sum(1) - 0.05 * action.pow(2).sum(1)
        return self.observe(), reward


class Replay:
    def __init__(self, capacity):
        self.capacity = capacity
        self.items = []

    def add(self, *rows):
        self.items.extend(zip(*rows))
        del self.items[: -self.capacity]

    def sample(self, size):
        picks = torch.randint(len(self.items), (size,)).tolist()
        return [torch.stack(column) for column in zip(*(self.items[i] for i in picks))]


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2), nn.Tanh())

    def forward(self, state):
        return self.net(state)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, state, action):
        return self.net(torch.cat([state, action], dim=1)).squeeze(1)


class Agent:
    def __init__(self):
        self.actor, self.critic = Actor(), Critic()
        self.actor_target = copy.deepcopy(self.actor)
        self.critic_target = copy.deepcopy(self.critic)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=3e-3)

    @torch.no_grad()
    def act(self, state, noise=0.0):
        action = self.actor(state)
        return (action + noise * torch.randn_like(action)).clamp(-1, 1)

    def update(self, state, action, reward, following):
        with torch.no_grad():
            target = reward + GAMMA * self.critic_target(following, self.actor_target(following))
        critic_loss = F.mse_loss(self.critic(state, action), target)
        critic_loss.backward()
        self.critic_opt.step()
        self.critic_opt.zero_grad()

        actor_loss = -self.critic(state, self.actor(state)).mean()
        actor_loss.backward()
        self.actor_opt.step()
        self.actor_opt.zero_grad()

        with torch.no_grad():
            for net, target_net in ((self.actor, self.actor_target), (self.critic, self.critic_target)):
                for p, tp in zip(net.parameters(), target_net.parameters()):
                    tp.lerp_(p, TAU)
        return critic_loss.item()


@torch.no_grad()
def evaluate(agent, horizon=50):
    bank = TankBank(64)
    state = bank.observe()
    value = agent.critic(state, agent.act(state)).mean().item()
    total = torch.zeros(64)
    for t in range(horizon):
        state, reward = bank.step(agent.act(state))
        total += GAMMA ** t * reward
    return total.mean().item(), value


def main():
    torch.manual_seed(11)
    agent, bank, replay = Agent(), TankBank(16), Replay(4000)
    state = bank.observe()
    for step in range(1, 241):
        action = agent.act(state, noise=0.3)
        following, reward = bank.step(action)
        replay.add(state, action, reward, following)
        state = bank.reset() if step % 25 == 0 else following
        loss = agent.update(*replay.sample(64))
        if step % 80 == 0:
            score, value = evaluate(agent)
            print(f"step {step:4d}  critic loss {loss:.3f}  discounted return {score:.2f}  value {value:.2f}")


if __name__ == "__main__":
    main()
