"""Double Q-learning on a cart that has to be parked, with many updates per step of the environment.

At high replay ratios the last layer of the value network is drawn anew from time to time, as proposed by Nikishin et
al. (2022) against overfitting to early experience; the buffer is kept.
"""
import copy

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(2)

CARTS, GAMMA, CAPACITY = 16, 0.95, 4096
PUSHES = torch.tensor([-1.0, 0.0, 1.0])


class Carts:
    """A batch of carts on a line; each episode lasts a fixed number of steps."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.state = torch.stack([4 * torch.rand(CARTS) - 2, torch.zeros(CARTS)], dim=1)
        return self.state.clone()

    def step(self, action):
        x, v = self.state.unbind(dim=1)
        v = 0.95 * v + 0.25 * PUSHES[action]
        x = (x + 0.3 * v).clamp(-3, 3)
        self.state = torch.stack([x, v], dim=1)
        return self.state.clone(), -x.abs() - 0.1 * v.abs()


class Replay:
    def __init__(self):
        self.state, self.following = torch.zeros(CAPACITY, 2), torch.zeros(CAPACITY, 2)
        self.action, self.reward = torch.zeros(CAPACITY, dtype=torch.long), torch.zeros(CAPACITY)
        self.size = 0

    def add(self, state, action, reward, following):
        index = (torch.arange(len(state)) + self.size) % CAPACITY
        self.state[index], self.following[index] = state, following
        self.action[index], self.reward[index] = action, reward
        self.size += len(state)

    def sample(self, count):
        index = torch.randint(min(self.size, CAPACITY), (count,))
        return self.state[index], self.action[index], self.reward[index], self.following[index]


class ValueNet(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(2, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.head = nn.Linear(hidden, len(PUSHES))

    def forward(self, state):
        return self.head(self.trunk(state))


class Agent:
    def __init__(self):
        self.online = ValueNet()
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=2e-3)

    @torch.no_grad()
    def act(self, state, epsilon):
        greedy = self.online(state).argmax(dim=1)
        explore = torch.rand(len(state)) < epsilon
        return torch.where(explore, torch.randint(len(PUSHES), (len(state),)), greedy)

    def update(self, batch):
        state, action, reward, following = batch
        with torch.no_grad():
            best = self.online(following).argmax(dim=1, keepdim=True)
            goal = reward + GAMMA * self.target(following).gather(1, best).squeeze(1)
        value = self.online(state).gather(1, action.unsqueeze(1)).squeeze(1)
        loss = F.smooth_l1_loss(value, goal)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(self.target.parameters(), self.online.parameters()):
                slow.lerp_(fast, 0.02)
        return loss.item()

    def renew_head(self):
        hidden = self.online.head.in_features
        self.online.head = nn.Linear(hidden, len(PUSHES))
        self.target.load_state_dict(self.online.state_dict())


agent, replay, carts = Agent(), Replay(), Carts()
state, updates = carts.reset(), 0
for step in range(1, 91):
    action = agent.act(state, epsilon=max(0.05, 1 - step / 45))
    following, reward = carts.step(action)
    replay.add(state, action, reward, following)
    state = carts.reset() if step % 20 == 0 else following
    for _ in range(5):
        loss = agent.update(replay.sample(64))
        updates += 1
        if updates in (120, 240):
            agent.renew_head()
    if step % 15 == 0:
        print(f"step {step:4d}  updates {updates:4d}  loss {loss:.4f}  reward {reward.mean().item():.3f}")

state, total = carts.reset(), torch.zeros(CARTS)
for _ in range(30):
    state, reward = carts.step(agent.act(state, epsilon=0.0))
    total += reward
print(f"greedy return over 30 steps {total.mean().item():.3f}")
