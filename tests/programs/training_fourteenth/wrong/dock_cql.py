"""Conservative Q-learning from logged trips of a robot that has to drive to its charging dock."""
import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 11
SIZE, HORIZON, N_ACTIONS = 7, 30, 4
GAMMA, TAU, ALPHA = 0.95, 0.02, 0.002
STEPS, BATCH = 1100, 128
MOVES = np.array([[0, 1], [0, -1], [1, 0], [-1, 0]])
DOCK = np.array([SIZE - 1, SIZE - 1])
WALL_ROW, DOORS = 3, (1, 2)  # a wall with a door between the lower and the upper half


def move(pos, action):
    new = np.clip(pos + MOVES[action], 0, SIZE - 1)
    if new[0] == WALL_ROW and new[1] not in DOORS:
        new = pos
    return new, float((new == DOCK).all())


def start(rng):
    return rng.integers(0, SIZE, size=2)


def collect(rng, n_steps=12000):
    rows, pos, t = [], start(rng), 0
    for _ in range(n_steps):
        action = rng.integers(N_ACTIONS)
        new, reward = move(pos, action)
        rows.append((*pos, action, reward, *new, reward))
        pos, t = new, t + 1
        if reward > 0 or t == HORIZON:
            pos, t = start(rng), 0
    return torch.tensor(np.array(rows), dtype=torch.float32)


def encode(pos):
    pos = pos.long()
    return torch.cat([F.one_hot(pos[:, 0], SIZE), F.one_hot(pos[:, 1], SIZE)], dim=1).float()


class QNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2 * SIZE, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, N_ACTIONS)
        )

    def forward(self, pos):
        return self.net(encode(pos))


class OfflineAgent:
    def __init__(self):
        self.q = QNet()
        self.q_target = copy.deepcopy(self.q).requires_grad_(False)
        self.tracked = zip(self.q_target.parameters(), self.q.parameters())
        self.opt = torch.optim.Adam(self.q.parameters(), lr=1e-3)

    def update(self, batch):
        pos, action, reward, new, done = batch.split([2, 1, 1, 2, 1], dim=1)
        with torch.no_grad():
            best = self.q(new).argmax(dim=1, keepdim=True)
            target = reward + GAMMA * (1 - done) * self.q_target(new).gather(1, best)
        q = self.q(pos)
        q_data = q.gather(1, action.long())
        td = F.smooth_l1_loss(q_data, target)
        gap = (q.logsumexp(dim=1, keepdim=True) - q_data).mean()
        loss = td + ALPHA * gap
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        with torch.no_grad():
            for slow, fast in self.tracked:
                slow.lerp_(fast, TAU)
        return td.item()


@torch.no_grad()
def success_rate(agent, rng, episodes=60):
    wins = 0
    for _ in range(episodes):
        pos = start(rng)
        for _ in range(HORIZON):
            pos, reward = move(pos, agent.q(torch.tensor(pos)[None]).argmax().item())
            if reward > 0:
                wins += 1
                break
    return wins / episodes


torch.manual_seed(SEED)
rng = np.random.default_rng(SEED)
data = collect(rng)
print(f"transitions {len(data)}, docked {int(data[:, 3].sum())} times")
agent = OfflineAgent()
for step in range(STEPS):
    td = agent.update(data[torch.randint(0, len(data), (BATCH,))])
    if step % 275 == 0:
        print(f"step {step:4d}  td loss {td:.5f}")
success = success_rate(agent, rng)
print(f"success rate of the greedy policy {success:.2f}")
