"""PPO on a small navigation task: many agents walk on a line of rooms towards a room shown to them."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical

torch.set_num_threads(1)


@dataclass
class Settings:
    agents: int = 24
    horizon: int = 16
    iterations: int = 16
    epochs: int = 10
    clip: float = 0.2
    gamma: float = 0.95
    lr: float = 1e-2
    entropy: float = 0.003


class Rooms:
    """Nine rooms on a line; +1 in the goal room (a new goal is then drawn), a small cost for each move."""

    def __init__(self, agents):
        self.place = torch.randint(9, (agents,))
        self.goal = torch.randint(9, (agents,))

    def observe(self):
        return torch.cat([F.one_hot(self.place, 9), F.one_hot(self.goal, 9)], -1).float()

    def step(self, action):
        self.place = (self.place + action - 1).clamp(0, 8)
        hit = self.place == self.goal
        reward = hit.float() - 0.02 * (action != 1).float()
        self.goal = torch.where(hit, torch.randint(9, hit.shape), self.goal)
        return reward


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(18, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 3))

    def forward(self, obs):
        return Categorical(logits=self.body(obs))


class PPO:
    def __init__(self, settings):
        self.s = settings
        self.policy = Policy()
        self.old_policy = self.policy
        self.value = nn.Sequential(nn.Linear(18, 48), nn.Tanh(), nn.Linear(48, 1))
        self.optimizer = torch.optim.Adam([*self.policy.parameters(), *self.value.parameters()], lr=settings.lr)
        self.env = Rooms(settings.agents)

    @torch.no_grad()
    def collect(self):
        obs, actions, rewards = [], [], []
        for _ in range(self.s.horizon):
            o = self.env.observe()
            a = self.old_policy(o).sample()
            obs.append(o), actions.append(a), rewards.append(self.env.step(a))
        running, returns = self.value(self.env.observe()).squeeze(-1), []
        for reward in reversed(rewards):
            running = reward + self.s.gamma * running
            returns.insert(0, running)
        return torch.cat(obs), torch.cat(actions), torch.cat(returns), torch.stack(rewards).mean().item()

    def update(self, obs, actions, returns):
        with torch.no_grad():
            before = self.old_policy(obs).logits
        for _ in range(self.s.epochs):
            value = self.value(obs).squeeze(-1)
            advantage = (returns - value).detach()
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
            current = self.policy(obs)
            with torch.no_grad():
                old_log_prob = self.old_policy(obs).log_prob(actions)
            ratio = (current.log_prob(actions) - old_log_prob).exp()
            clipped = ratio.clamp(1 - self.s.clip, 1 + self.s.clip)
            surrogate = torch.minimum(ratio * advantage, clipped * advantage).mean()
            loss = -surrogate + 0.5 * F.mse_loss(value, returns) - self.s.entropy * current.entropy().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        with torch.no_grad():
            after = self.policy(obs).logits
        self.old_policy.load_state_dict(self.policy.state_dict())
        return (before.exp() * (before - after)).sum(-1).mean().item(), (ratio != clipped).float().mean().item()


def main():
    torch.manual_seed(0)
    ppo = PPO(Settings())
    rewards, kls, fractions = [], [], []
    for iteration in range(ppo.s.iterations):
        obs, actions, returns, reward = ppo.collect()
        kl, fraction = ppo.update(obs, actions, returns)
        rewards.append(reward), kls.append(kl), fractions.append(fraction)
        if iteration % 4 == 3:
            print(f"iteration {iteration:2d}  reward per step {reward:.3f}  kl {kl:.4f}")


if __name__ == "__main__":
    main()
