"""Double DQN on a corridor with a periodically copied target network."""
import copy
import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F

CELLS, GAMMA, SYNC = 7, 0.95, 40


class Corridor:
    def reset(self):
        self.pos, self.steps = 0, 0
        return self.observe()

    def observe(self):
        return F.one_hot(torch.tensor(self.pos), CELLS).float()

    def step(self, action):
        self.pos = max(0, min(CELLS - 1, self.pos + (1 if action == 1 else -1)))
        self.steps += 1
        done = self.pos == CELLS - 1
        return self.observe(), 1.0 if done else -0.01, done, self.steps >= 30


class Agent:
    def __init__(self):
        self.online = nn.Sequential(nn.Linear(CELLS, 32), nn.Tanh(), nn.Linear(32, 2))
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.opt = torch.optim.Adam(self.online.parameters(), lr=5e-3)
        self.memory = deque(maxlen=1000)
        self.updates = 0

    @torch.no_grad()
    def act(self, state, epsilon):
        if random.random() < epsilon:
            return random.randrange(2)
        return int(self.online(state).argmax())

    def learn(self):
        s, a, r, s2, done = zip(*random.sample(self.memory, 32))
        s, s2, a = torch.stack(s), torch.stack(s2), torch.tensor(a)
        r, done = torch.tensor(r), torch.tensor(done, dtype=torch.float)
        with torch.no_grad():
            best = self.online(s2).argmax(dim=1, keepdim=True)
            target = r + GAMMA * (1 - done) * self.target(s2).gather(1, best).squeeze(1)
        q = self.online(s).gather(1, a.unsqueeze(1)).squeeze(1)
        loss = F.smooth_l1_loss(q, target)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.updates += 1
        if self.updates % SYNC == 0:
            self.target.load_state_dict(self.online.state_dict())


def main():
    random.seed(0)
    torch.manual_seed(37)
    env, agent = Corridor(), Agent()
    for episode in range(25):
        state, total, over = env.reset(), 0.0, False
        while not over:
            action = agent.act(state, max(0.1, 1 - episode / 15))
            nxt, reward, terminal, timeout = env.step(action)
            agent.memory.append((state, action, reward, nxt, terminal))
            state, total, over = nxt, total + reward, terminal or timeout
            if len(agent.memory) >= 32:
                agent.learn()
        if episode % 6 == 0:
            print(f"episode {episode}: return {total:.2f} updates {agent.updates}")


if __name__ == "__main__":
    main()
