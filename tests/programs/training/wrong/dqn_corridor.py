"""DQN on a small corridor world with a target network."""
import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F

CELLS, GAMMA = 6, 0.95


class Corridor:
    def reset(self):
        self.pos = 0
        self.steps = 0
        return self.observe()

    def observe(self):
        return F.one_hot(torch.tensor(self.pos), CELLS).float()

    def step(self, action):
        self.pos = max(0, min(CELLS - 1, self.pos + (1 if action == 1 else -1)))
        self.steps += 1
        reached = self.pos == CELLS - 1
        return self.observe(), 1.0 if reached else -0.01, reached, self.steps >= 30


class DQNAgent:
    def __init__(self, net, device="cpu", lr=5e-3):
        self.policy_net = net.to(device)
        self.target_net = net.to(device)
        self.target_net.load_state_dict(self.policy_net.state_dict())
        self.optimizer = torch.optim.Adam(self.policy_net.parameters(), lr=lr)
        self.memory = deque(maxlen=1000)

    def act(self, state, epsilon):
        if random.random() < epsilon:
            return random.randrange(2)
        with torch.no_grad():
            return int(self.policy_net(state).argmax())

    def learn(self, batch_size=32):
        if len(self.memory) < batch_size:
            return None
        s, a, r, s2, done = zip(*random.sample(self.memory, batch_size))
        s, s2 = torch.stack(s), torch.stack(s2)
        a, r, done = torch.tensor(a), torch.tensor(r), torch.tensor(done, dtype=torch.float)
        q = self.policy_net(s).gather(1, a.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            target = r + GAMMA * (1 - done) * self.target_net(s2).max(dim=1).values
        loss = F.smooth_l1_loss(q, target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def sync(self):
        self.target_net.load_state_dict(self.policy_net.state_dict())


def main():
    random.seed(0)
    torch.manual_seed(101)
    env = Corridor()
    agent = DQNAgent(nn.Sequential(nn.Linear(CELLS, 32), nn.ReLU(), nn.Linear(32, 2)))
    for episode in range(25):
        state, total, ended, loss = env.reset(), 0.0, False, None
        while not ended:
            action = agent.act(state, epsilon=max(0.1, 1 - episode / 15))
            nxt, reward, terminal, timeout = env.step(action)
            agent.memory.append((state, action, reward, nxt, terminal))
            state, total, ended = nxt, total + reward, terminal or timeout
            loss = agent.learn()
        if episode % 5 == 0:
            agent.sync()
            print(f"episode {episode}: return {total:.2f} loss {loss}")
    return agent


if __name__ == "__main__":
    main()
