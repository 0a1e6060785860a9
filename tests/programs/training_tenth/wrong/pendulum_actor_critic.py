import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(5)
GAMMA, TAU, HORIZON = 0.95, 0.02, 40


class Cart:
    """A batch of carts on a rail that must be brought to rest at the origin."""

    def __init__(self, count):
        self.count = count

    def reset(self):
        self.state = torch.cat([torch.empty(self.count, 1).uniform_(-1.5, 1.5),
                                torch.empty(self.count, 1).uniform_(-0.5, 0.5)], dim=1)
        return self.state

    def step(self, action):
        position, speed = self.state.split(1, dim=1)
        speed = (0.98 * speed + 0.15 * action).clamp(-2, 2)
        position = (position + 0.15 * speed).clamp(-2.5, 2.5)
        self.state = torch.cat([position, speed], dim=1)
        reward = -(position ** 2 + 0.1 * speed ** 2 + 0.02 * action ** 2)
        return self.state, reward


class Replay:
    def __init__(self, capacity):
        self.data = torch.zeros(capacity, 6)
        self.size = self.head = 0

    def push(self, state, action, reward, following):
        rows = torch.cat([state, action, reward, following], dim=1)
        where = (self.head + torch.arange(len(rows))) % len(self.data)
        self.data[where] = rows
        self.head = (self.head + len(rows)) % len(self.data)
        self.size = min(self.size + len(rows), len(self.data))

    def sample(self, batch):
        rows = self.data[torch.randint(self.size, (batch,))]
        return rows[:, :2], rows[:, 2:3], rows[:, 3:4], rows[:, 4:]


def mlp(inputs, last=None):
    layers = [nn.Linear(inputs, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1)]
    return nn.Sequential(*layers, *([last] if last else []))


actor, critic = mlp(2, nn.Tanh()), mlp(3)
actor_target = copy.deepcopy(actor).requires_grad_(False)
critic_target = copy.deepcopy(critic).requires_grad_(False)
actor_optimizer = torch.optim.Adam(actor.parameters(), lr=5e-4)
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=2e-3)


@torch.no_grad()
def track(target, online):
    for slow, fast in zip(target.parameters(), online.parameters()):
        slow.lerp_(fast, TAU)


def update(state, action, reward, following):
    with torch.no_grad():
        future = critic_target(torch.cat([following, actor_target(following)], dim=1))
        goal = reward + GAMMA * future
    critic_loss = F.mse_loss(critic(torch.cat([state, action], dim=1)), goal)
    critic_loss.backward()
    critic_optimizer.step()
    critic_optimizer.zero_grad()

    actor_loss = -critic(torch.cat([state, actor(state)], dim=1)).mean()
    actor_loss.backward()
    actor_optimizer.step()
    actor_optimizer.zero_grad()

    track(critic_target, critic)
    track(actor_target, actor)
    return critic_loss.item()


@torch.no_grad()
def evaluate(count=64, steps=100):
    cart = Cart(count)
    state = first = cart.reset()
    total = torch.zeros(count, 1)
    for t in range(steps):
        state, reward = cart.step(actor(state))
        total += GAMMA ** t * reward
    promised = critic(torch.cat([first, actor(first)], dim=1))
    return total.mean().item(), promised.mean().item()


cart, replay = Cart(8), Replay(20000)
for episode in range(40):
    state = cart.reset()
    for _ in range(HORIZON):
        with torch.no_grad():
            action = (actor(state) + 0.3 * torch.randn(8, 1)).clamp(-1, 1)
        following, reward = cart.step(action)
        replay.push(state, action, reward, following)
        state = following
        loss = update(*replay.sample(128))

earned, promised = evaluate()
print(f"critic loss {loss:.4f}  discounted return {earned:.3f}  value estimate {promised:.3f}")
