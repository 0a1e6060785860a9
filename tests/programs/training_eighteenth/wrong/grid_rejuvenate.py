"""DQN on a slippery grid with periodic resets of the last layers against the primacy bias (Nikishin et al., 2022)."""
import copy
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED, SIZE, GAMMA, STEPS, RESET_EVERY = 11, 6, 0.93, 3000, 1000
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)
MOVES = [(-1, 0), (1, 0), (0, -1), (0, 1)]
GOAL, PIT = (SIZE - 1, SIZE - 1), {(2, 2), (3, 4), (4, 1)}


class SlipGrid:
    def reset(self):
        while True:
            self.cell = (random.randrange(SIZE), random.randrange(SIZE))
            if self.cell != GOAL and self.cell not in PIT:
                break
        self.t = 0
        return self.encode(self.cell)

    @staticmethod
    def encode(cell):
        x = np.zeros(2 * SIZE, dtype=np.float32)
        x[cell[0]], x[SIZE + cell[1]] = 1.0, 1.0
        return x

    def step(self, a):
        if random.random() < 0.1:
            a = random.randrange(4)
        r, c = self.cell[0] + MOVES[a][0], self.cell[1] + MOVES[a][1]
        self.cell = (min(max(r, 0), SIZE - 1), min(max(c, 0), SIZE - 1))
        self.t += 1
        reward = 1.0 if self.cell == GOAL else (-1.0 if self.cell in PIT else -0.01)
        return self.encode(self.cell), reward, self.cell == GOAL or self.cell in PIT


class QNet(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.hidden = hidden
        self.encoder = nn.Sequential(nn.Linear(2 * SIZE, hidden), nn.ReLU())
        self.head = self.make_head()

    def make_head(self):
        return nn.Sequential(nn.Linear(self.hidden, self.hidden), nn.ReLU(), nn.Linear(self.hidden, 4))

    def rejuvenate(self):
        self.head = self.make_head()

    def forward(self, x):
        return self.head(self.encoder(x))


env, buffer, losses = SlipGrid(), [], []
q_net = QNet()
target = copy.deepcopy(q_net).requires_grad_(False)
optimizer = torch.optim.Adam(q_net.parameters(), lr=2e-3)

state = env.reset()
for step in range(1, STEPS + 1):
    eps = max(0.1, 1 - step / 1000)
    if random.random() < eps:
        action = random.randrange(4)
    else:
        with torch.no_grad():
            action = q_net(torch.from_numpy(state)).argmax().item()
    nxt, reward, done = env.step(action)
    buffer.append((state, action, reward, nxt, float(done)))
    state = env.reset() if done or env.t >= 40 else nxt

    if len(buffer) >= 64:
        s, a, r, n, d = zip(*random.sample(buffer, 64))
        s, n = torch.from_numpy(np.stack(s)), torch.from_numpy(np.stack(n))
        a, r, d = torch.tensor(a), torch.tensor(r), torch.tensor(d)
        with torch.no_grad():
            backup = r + GAMMA * (1 - d) * target(n).max(1).values
        q = q_net(s).gather(1, a[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(q, backup)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    if step % RESET_EVERY == 0 and step < STEPS:
        q_net.rejuvenate()
        target.load_state_dict(q_net.state_dict())
    elif step % 50 == 0:
        target.load_state_dict(q_net.state_dict())
    if step % 500 == 0:
        print(f"step {step}  td loss {np.mean(losses[-200:]):.4f}")

wins = 0
for _ in range(100):
    state, done = env.reset(), False
    while not done and env.t < 40:
        with torch.no_grad():
            state, reward, done = env.step(q_net(torch.from_numpy(state)).argmax().item())
    wins += env.cell == GOAL
print(f"goal reached in {wins} of 100 greedy episodes")
