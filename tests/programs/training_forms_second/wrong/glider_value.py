import copy

import torch
from torch import nn


class Whiten(nn.Module):
    def __init__(self, size, rate=0.05):
        super().__init__()
        self.rate = rate
        self.register_buffer("centre", torch.zeros(size))
        self.register_buffer("spread", torch.ones(size))

    @torch.no_grad()
    def observe(self, obs):
        self.centre += self.rate * (obs.mean(0) - self.centre)
        self.spread += self.rate * (obs.std(0) - self.spread)

    def forward(self, obs):
        return (obs - self.centre) / (self.spread + 1e-5)


class Critic(nn.Module):
    def __init__(self, size, hidden=32):
        super().__init__()
        self.whiten = Whiten(size)
        self.lift = nn.Linear(size, hidden)
        self.value = nn.Linear(hidden, 1)

    def forward(self, obs):
        return self.value(torch.relu(self.lift(self.whiten(obs)))).squeeze(-1)


@torch.no_grad()
def polyak(online, target, tau):
    live = dict(online.named_parameters())
    for name, slow in target.named_parameters():
        slow.mul_(1 - tau).add_(live[name], alpha=tau)


class Glider:
    def __init__(self, gen):
        self.gen = gen
        self.scale = torch.tensor([1.5, 1.2, 1.0, 0.4])
        self.offset = torch.tensor([2.0, 1.0, -1.0, 0.0])

    def batch(self, n):
        raw = torch.randn(n, 4, generator=self.gen)
        after = 0.9 * raw + 0.3 * torch.randn(n, 4, generator=self.gen)
        reward = 0.1 * (raw[:, 0].tanh() - raw[:, 2] ** 2 * 0.2 + raw[:, 3])
        return raw * self.scale + self.offset, reward, after * self.scale + self.offset


def main():
    torch.manual_seed(51)
    env = Glider(torch.Generator().manual_seed(23))
    critic = Critic(4)
    target = copy.deepcopy(critic)
    target.requires_grad_(False)
    opt = torch.optim.Adam(critic.parameters(), lr=2e-3)
    for step in range(300):
        obs, reward, after = env.batch(64)
        critic.whiten.observe(obs)
        goal = reward + 0.9 * target(after)
        loss = nn.functional.smooth_l1_loss(critic(obs), goal)
        opt.zero_grad()
        loss.backward()
        opt.step()
        polyak(critic, target, 0.02)
        if step % 60 == 59:
            print(f"step {step + 1:3d}  td {loss.item():.5f}  value {critic(obs).mean().item():.3f}")


if __name__ == "__main__":
    main()
