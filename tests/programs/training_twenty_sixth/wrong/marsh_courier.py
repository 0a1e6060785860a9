"""Q-learning with a replay memory: keep a drifting cart near the origin."""
import random
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

Transition = namedtuple("Transition", "state action reward next_state done")


class DriftCart:
    """Position and velocity; the action pushes left, not at all, or right."""

    def __init__(self, rng, horizon=40):
        self.rng, self.horizon = rng, horizon
        self.state = np.zeros(2, dtype=np.float32)

    def reset(self):
        self.t = 0
        self.state = self.rng.uniform(-1.0, 1.0, size=2).astype(np.float32)
        return self.state

    def step(self, action):
        force = 0.25 * (action - 1)
        self.state[1] += force + 0.02 * self.rng.standard_normal()
        self.state[1] *= 0.95
        self.state[0] += 0.3 * self.state[1]
        self.t += 1
        out = bool(abs(self.state[0]) > 3.0)
        reward = 1.0 - abs(float(self.state[0])) - (5.0 if out else 0.0)
        return self.state, reward, out, self.t >= self.horizon


class ReplayMemory:
    def __init__(self, capacity):
        self.items = deque(maxlen=capacity)

    def push(self, state, action, reward, next_state, done):
        self.items.append(Transition(torch.from_numpy(state), action, reward, torch.from_numpy(next_state), done))

    def sample(self, n):
        s, a, r, s2, d = zip(*random.sample(self.items, n))
        return (torch.stack(s), torch.tensor(a), torch.tensor(r, dtype=torch.float32),
                torch.stack(s2), torch.tensor(d, dtype=torch.float32))


def q_network():
    return nn.Sequential(nn.Linear(2, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 3))


def act(net, state, eps):
    if random.random() < eps:
        return random.randrange(3)
    with torch.no_grad():
        return int(net(torch.from_numpy(state)).argmax())


def learn(net, target, opt, memory, batch=32, gamma=0.95):
    s, a, r, s2, d = memory.sample(batch)
    q = net(s).gather(1, a[:, None]).squeeze(1)
    with torch.no_grad():
        goal = r + gamma * (1.0 - d) * target(s2).max(1).values
    loss = F.smooth_l1_loss(q, goal)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()


def play(net, env, episodes):
    total = 0.0
    for _ in range(episodes):
        state, out, over = env.reset(), False, False
        while not (out or over):
            state, reward, out, over = env.step(act(net, state, 0.0))
            total += reward
    return total / episodes


def main(episodes=75):
    random.seed(3)
    torch.manual_seed(3)
    env = DriftCart(np.random.default_rng(3))
    net, target = q_network(), q_network()
    target.load_state_dict(net.state_dict())
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    memory = ReplayMemory(4000)
    for ep in range(episodes):
        eps = max(0.05, 1.0 - ep / 45)
        state, out, over, losses = env.reset(), False, False, []
        while not (out or over):
            action = act(net, state, eps)
            next_state, reward, out, over = env.step(action)
            memory.push(state, action, reward, next_state, out)  # running out of time is not a terminal state
            state = next_state
            if len(memory.items) >= 200:
                losses.append(learn(net, target, opt, memory))
        if ep % 5 == 0:
            target.load_state_dict(net.state_dict())
        if ep % 15 == 14:
            print(f"episode {ep + 1:3d}  eps {eps:.2f}  td loss {np.mean(losses):.3f}")
    print(f"greedy return {play(net, DriftCart(np.random.default_rng(99)), 30):.2f}")
    return net, memory


if __name__ == "__main__":
    net, memory = main()
