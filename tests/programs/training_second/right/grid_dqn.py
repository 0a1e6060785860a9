import random
from collections import deque

import torch
import torch.nn.functional as F
from torch import nn


class GridWorld:
    moves = [(0, 1), (0, -1), (1, 0), (-1, 0)]

    def __init__(self, size, rng):
        self.size, self.rng = size, rng

    def reset(self):
        self.cell = [self.rng.randrange(self.size), self.rng.randrange(self.size)]
        self.clock = 0
        return self.state()

    def state(self):
        return torch.tensor(self.cell, dtype=torch.float32) / (self.size - 1)

    def step(self, action):
        for axis in (0, 1):
            self.cell[axis] = min(self.size - 1, max(0, self.cell[axis] + self.moves[action][axis]))
        self.clock += 1
        won = self.cell == [self.size - 1, self.size - 1]
        return self.state(), 1.0 if won else -0.05, won, won or self.clock >= 20


def q_network():
    return nn.Sequential(nn.Linear(2, 32), nn.ELU(), nn.Linear(32, 32), nn.ELU(), nn.Linear(32, 4))


class Agent:
    def __init__(self, rng, gamma=0.95, copy_every=25):
        self.rng, self.gamma, self.copy_every = rng, gamma, copy_every
        self.online, self.target = q_network(), q_network()
        self.target.load_state_dict(self.online.state_dict())
        self.target.requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=3e-3)
        self.memory = deque(maxlen=400)
        self.updates = 0

    def act(self, state, epsilon):
        if self.rng.random() < epsilon:
            return self.rng.randrange(4)
        with torch.no_grad():
            return self.online(state).argmax().item()

    def learn(self, batch_size=32):
        batch = self.rng.sample(self.memory, batch_size)
        state, action, reward, after, won = zip(*batch)
        state, after = torch.stack(state), torch.stack(after)
        action, reward, won = torch.tensor(action), torch.tensor(reward), torch.tensor(won, dtype=torch.float32)
        with torch.no_grad():
            best = self.online(after).argmax(1, keepdim=True)
            goal = reward + self.gamma * (1 - won) * self.target(after).gather(1, best).squeeze(1)
        chosen = self.online(state).gather(1, action[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(chosen, goal)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.updates += 1
        if self.updates % self.copy_every == 0:
            self.target.load_state_dict(self.online.state_dict())
        return loss.item()


def main():
    torch.manual_seed(0)
    rng = random.Random(0)
    env, agent = GridWorld(4, rng), Agent(rng)
    for episode in range(30):
        state, total, done, loss = env.reset(), 0.0, False, 0.0
        while not done:
            action = agent.act(state, max(0.1, 1 - episode / 20))
            after, reward, won, done = env.step(action)
            agent.memory.append((state, action, reward, after, won))
            state, total = after, total + reward
            if len(agent.memory) >= 64:
                loss = agent.learn()
        if episode % 10 == 9:
            print(f"episode {episode + 1} return {total:.2f} loss {loss:.5f}")


if __name__ == "__main__":
    main()
