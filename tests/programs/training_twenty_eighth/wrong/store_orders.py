"""Double Q-learning of order quantities for a chain of shops, with inputs normalised inside of the network."""
import copy
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F

QUANTITIES = torch.tensor([0.0, 10.0, 20.0, 30.0, 40.0])


class Shops:
    """Stock, expected demand and price of each shop; unsold stock costs, empty shelves lose sales."""

    def __init__(self, count):
        self.count = count

    def reset(self):
        self.stock = torch.rand(self.count) * 60
        self.demand = 15 + 20 * torch.rand(self.count)
        self.price = 8 + 4 * torch.rand(self.count)
        return self.observe()

    def observe(self):
        return torch.stack([self.stock, self.demand, self.price], 1)

    def step(self, action):
        order = QUANTITIES[action]
        available = (self.stock + order).clamp(max=100)
        wanted = (self.demand + 4 * torch.randn(self.count)).clamp(min=0)
        sold = torch.minimum(available, wanted)
        reward = (self.price * sold - 5 * order - 0.6 * available) / 100
        self.stock = available - sold
        self.demand = (self.demand + 3 * torch.randn(self.count)).clamp(10, 40)
        return self.observe(), reward


class RunningNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("var", torch.ones(dim))
        self.register_buffer("count", torch.tensor(1e-4))

    @torch.no_grad()
    def update(self, x):
        n = x.shape[0]
        delta = x.mean(0) - self.mean
        total = self.count + n
        m2 = self.var * self.count + x.var(0, unbiased=False) * n + delta.pow(2) * self.count * n / total
        self.mean += delta * n / total
        self.var.copy_(m2 / total)
        self.count.copy_(total)

    def forward(self, x):
        return ((x - self.mean) / torch.sqrt(self.var + 1e-6)).clamp(-5, 5)


class DuelingQ(nn.Module):
    def __init__(self, obs_dim, actions, hidden=64):
        super().__init__()
        self.norm = RunningNorm(obs_dim)
        self.body = nn.Sequential(nn.Linear(obs_dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.value = nn.Linear(hidden, 1)
        self.advantage = nn.Linear(hidden, actions)

    def forward(self, obs):
        h = self.body(self.norm(obs))
        adv = self.advantage(h)
        return self.value(h) + adv - adv.mean(1, keepdim=True)


def soft_update(online, target, tau):
    with torch.no_grad():
        for p, q in zip(online.parameters(), target.parameters()):
            q.mul_(1 - tau).add_(p, alpha=tau)


def td_loss(online, target, batch, gamma):
    obs, act, rew, nxt = batch
    q = online(obs).gather(1, act.unsqueeze(1)).squeeze(1)
    with torch.no_grad():
        best = online(nxt).argmax(1, keepdim=True)
        goal = rew + gamma * target(nxt).gather(1, best).squeeze(1)
    return F.smooth_l1_loss(q, goal)


@torch.no_grad()
def evaluate(online, steps=40, gamma=0.9):
    shops = Shops(256)
    obs = shops.reset()
    predicted = online(obs).max(1).values.mean().item()
    total, discounted = 0.0, 0.0
    for t in range(steps):
        obs, rew = shops.step(online(obs).argmax(1))
        total += rew.mean().item()
        discounted += gamma ** t * rew.mean().item()
    return total / steps, predicted, discounted


def main(steps=320, gamma=0.9):
    torch.manual_seed(2)
    shops, online = Shops(32), DuelingQ(3, len(QUANTITIES))
    target = copy.deepcopy(online).requires_grad_(False)
    optimizer = torch.optim.Adam(online.parameters(), lr=1e-3)
    memory, obs = deque(maxlen=200), shops.reset()
    for step in range(steps):
        online.norm.update(obs)
        epsilon = max(0.1, 1 - step / 150)
        with torch.no_grad():
            act = online(obs).argmax(1)
        act = torch.where(torch.rand(32) < epsilon, torch.randint(len(QUANTITIES), (32,)), act)
        nxt, rew = shops.step(act)
        memory.append((obs, act, rew, nxt))
        obs = nxt if step % 25 != 24 else shops.reset()

        picks = torch.randint(len(memory), (4,)).tolist()
        batch = [torch.cat(parts) for parts in zip(*(memory[i] for i in picks))]
        loss = td_loss(online, target, batch, gamma)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        soft_update(online, target, tau=0.02)
        if step % 80 == 79:
            print(f"step {step + 1:4d}  loss {loss.item():.4f}  profit per day %.3f  predicted %.2f  got %.2f" % evaluate(online))
    return online, target, memory


if __name__ == "__main__":
    online, target, memory = main()
