"""Q-learning with replay memory on a cart that must be pulled to the origin."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(1)
torch.manual_seed(103)


class CartEnv:
    """State is (position, velocity)."""

    def __init__(self):
        self.state = torch.zeros(2)

    def reset(self):
        self.state.uniform_(-1.0, 1.0)
        self.t = 0
        return self.state

    def step(self, action):
        force = 0.1 * (action - 1)
        self.state[1] = (0.95 * self.state[1] + force).clamp(-1, 1)
        self.state[0] = (self.state[0] + 0.2 * self.state[1]).clamp(-2, 2)
        self.t += 1
        reward = -self.state[0].abs().item()
        return self.state, reward, self.t >= 25


class Replay:
    def __init__(self, capacity):
        self.items, self.capacity, self.pos = [], capacity, 0

    def push(self, *transition):
        if len(self.items) < self.capacity:
            self.items.append(None)
        self.items[self.pos] = transition
        self.pos = (self.pos + 1) % self.capacity

    def sample(self, n):
        s, a, r, s2 = zip(*random.sample(self.items, n))
        return torch.stack(s), torch.tensor(a), torch.tensor(r), torch.stack(s2)


def make_q():
    return nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 3))


env, memory = CartEnv(), Replay(600)
q_net, target_net = make_q(), make_q()
target_net.load_state_dict(q_net.state_dict())
optimizer = torch.optim.Adam(q_net.parameters(), lr=2e-3)

for episode in range(16):
    state = env.reset()
    done, total = False, 0.0
    while not done:
        if random.random() < 0.2:
            action = random.randrange(3)
        else:
            with torch.no_grad():
                action = int(q_net(state).argmax())
        next_state, reward, done = env.step(action)
        memory.push(state, action, reward, next_state)
        state = next_state
        total += reward
        if len(memory.items) >= 64:
            s, a, r, s2 = memory.sample(32)
            with torch.no_grad():
                target = r + 0.95 * target_net(s2).max(1).values
            loss = F.mse_loss(q_net(s).gather(1, a[:, None]).squeeze(1), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    if episode % 4 == 3:
        target_net.load_state_dict(q_net.state_dict())
        print(f"episode {episode}: return {total:.2f} loss {loss.item():.4f}")
