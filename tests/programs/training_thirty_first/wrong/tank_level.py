"""Level control of water tanks with DDPG: an actor sets the inflow, a critic with a slow copy rates it."""
import copy

import torch
import torch.nn.functional as F
from torch import nn

TANKS = 16
HORIZON = 15
STEPS = 240
WARMUP = 20
BATCH = 64
GAMMA = 0.9
TAU = 0.1


class Tanks:
    """A row of tanks with a drain; the state is the level and the wanted level."""

    def __init__(self, count):
        self.count = count
        self.reset()

    def reset(self):
        self.level = torch.rand(self.count)
        self.wanted = 0.3 + 0.4 * torch.rand(self.count)
        self.age = 0

    def state(self):
        return torch.stack([self.level, self.wanted], dim=1)

    def step(self, inflow):
        drain = 0.3 * self.level.sqrt()
        self.level = (self.level + 0.5 * (inflow - drain) + 0.01 * torch.randn(self.count)).clamp(0.0, 1.5)
        self.age += 1
        return -4.0 * (self.level - self.wanted) ** 2 - 0.05 * inflow**2


class Replay:
    def __init__(self, capacity):
        self.data = torch.zeros(capacity, 6)
        self.capacity, self.next, self.filled = capacity, 0, 0

    def add(self, state, action, reward, following):
        rows = torch.cat([state, action, reward.unsqueeze(1), following], dim=1)
        index = (self.next + torch.arange(len(rows))) % self.capacity
        self.data[index] = rows
        self.next = (self.next + len(rows)) % self.capacity
        self.filled = min(self.filled + len(rows), self.capacity)

    def sample(self, count):
        rows = self.data[torch.randint(0, self.filled, (count,))]
        return rows[:, 0:2], rows[:, 2:3], rows[:, 3:4], rows[:, 4:6]


class Actor(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, state):
        return torch.sigmoid(self.net(state))


class Critic(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, state, action):
        return self.net(torch.cat([state, action], dim=1))


@torch.no_grad()
def follow(target, source):
    for slow, fast in zip(target.parameters(), source.parameters()):
        slow.lerp_(fast, TAU)


def update(batch):
    state, action, reward, following = batch
    with torch.no_grad():
        target = reward + GAMMA * critic_target(following, actor_target(following))
    td_loss = F.mse_loss(critic(state, action), target)
    td_loss.backward()
    critic_opt.step()
    critic_opt.zero_grad()

    actor_loss = -critic(state, actor(state)).mean()
    actor_loss.backward()
    actor_opt.step()
    actor_opt.zero_grad()

    follow(critic_target, critic)
    follow(actor_target, actor)
    return td_loss.item(), -actor_loss.item()


torch.manual_seed(5)
actor, critic = Actor(), Critic()
actor_target, critic_target = copy.deepcopy(actor), copy.deepcopy(critic)
actor_opt = torch.optim.Adam(actor.parameters(), lr=2e-3)
critic_opt = torch.optim.Adam(critic.parameters(), lr=5e-3)
tanks, replay = Tanks(TANKS), Replay(4096)

for step in range(STEPS):
    state = tanks.state()
    with torch.no_grad():
        action = (actor(state) + 0.2 * torch.randn(TANKS, 1)).clamp(0.0, 1.0)
    reward = tanks.step(action.squeeze(1))
    replay.add(state, action, reward, tanks.state())
    if tanks.age >= HORIZON:
        tanks.reset()
    if step >= WARMUP:
        td, value = update(replay.sample(BATCH))
        if (step + 1) % 60 == 0:
            print(f"step {step + 1:4d}  reward {reward.mean().item():7.3f}  td loss {td:.4f}  value {value:.3f}")

trial, returns = Tanks(200), torch.zeros(200)
start = trial.state()
with torch.no_grad():
    predicted = critic(start, actor(start)).mean().item()
    for t in range(60):
        returns += GAMMA**t * trial.step(actor(trial.state()).squeeze(1))
print(f"return of the policy {returns.mean().item():.3f}, as the critic says {predicted:.3f}")
