"""Q-learning on a cart with a preallocated ring buffer."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F


class CartEnv:
    def __init__(self):
        self.state = torch.zeros(2)

    def reset(self):
        self.state.uniform_(-1.0, 1.0)
        self.t = 0
        return self.state

    def step(self, action):
        self.state[1] = (0.9 * self.state[1] + 0.15 * (action - 1)).clamp(-1, 1)
        self.state[0] = (self.state[0] + 0.3 * self.state[1]).clamp(-2, 2)
        self.t += 1
        return self.state, -self.state[0].abs().item(), self.t >= 25


class RingBuffer:
    def __init__(self, capacity):
        self.s = torch.empty(capacity, 2)
        self.s2 = torch.empty(capacity, 2)
        self.a = torch.empty(capacity, dtype=torch.long)
        self.r = torch.empty(capacity)
        self.capacity, self.size, self.pos = capacity, 0, 0

    def begin(self, state, action):
        self.s[self.pos] = state
        self.a[self.pos] = action

    def finish(self, reward, next_state):
        self.r[self.pos] = reward
        self.s2[self.pos] = next_state
        self.pos = (self.pos + 1) % self.capacity
        self.size = min(self.size + 1, self.capacity)

    def sample(self, n):
        idx = torch.randint(self.size, (n,))
        return self.s[idx], self.a[idx], self.r[idx], self.s2[idx]


def q_network():
    return nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.1), nn.Linear(32, 3))


def main():
    random.seed(3)
    torch.manual_seed(38)
    env, memory = CartEnv(), RingBuffer(500)
    q, target_q = q_network(), q_network().requires_grad_(False)
    target_q.load_state_dict(q.state_dict())
    opt = torch.optim.Adam(q.parameters(), lr=3e-3)
    returns = []
    for episode in range(24):
        state, done, total = env.reset(), False, 0.0
        while not done:
            if random.random() < max(0.1, 1 - episode / 10):
                action = random.randrange(3)
            else:
                with torch.no_grad():
                    action = int(q(state).argmax())
            memory.begin(state, action)
            state, reward, done = env.step(action)
            memory.finish(reward, state)
            total += reward
            if memory.size >= 64:
                s, a, r, s2 = memory.sample(32)
                with torch.no_grad():
                    target = r + 0.9 * target_q(s2).max(dim=1).values
                loss = F.mse_loss(q(s).gather(1, a.unsqueeze(1)).squeeze(1), target)
                opt.zero_grad()
                loss.backward()
                opt.step()
        returns.append(total)
        if episode % 3 == 2:
            target_q.load_state_dict(q.state_dict())
    print("mean return, six episodes each:", [round(sum(returns[i : i + 6]) / 6, 2) for i in range(0, 24, 6)])


if __name__ == "__main__":
    main()
