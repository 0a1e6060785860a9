"""Q-learning with prioritized replay: a robot in a corridor looks for the charger at the far end."""
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(21)

CELLS, ACTIONS, HORIZON = 12, 2, 40
EPISODES, BATCH, CAPACITY = 18, 32, 1024
GAMMA, ALPHA, BETA_START = 0.95, 0.7, 0.4


class Corridor:
    """Moves slip with probability 0.1; a weak socket on the left, the charger on the right."""

    def reset(self):
        self.cell, self.time = CELLS // 3, 0
        return self.cell

    def step(self, action):
        move = 1 if action == 1 else -1
        if torch.rand(()).item() < 0.1:
            move = -move
        self.cell = min(max(self.cell + move, 0), CELLS - 1)
        self.time += 1
        reward = {0: 0.2, CELLS - 1: 2.0}.get(self.cell, -0.02)
        finished = self.cell in (0, CELLS - 1)
        return self.cell, reward, finished, finished or self.time >= HORIZON


class PrioritizedReplay:
    def __init__(self, capacity):
        self.capacity, self.size, self.position = capacity, 0, 0
        self.cells = torch.zeros(capacity, 2, dtype=torch.long)
        self.actions = torch.zeros(capacity, dtype=torch.long)
        self.rewards = torch.zeros(capacity)
        self.alive = torch.zeros(capacity)
        self.priorities = torch.zeros(capacity)

    def add(self, cell, action, reward, next_cell, finished):
        i = self.position
        self.cells[i] = torch.tensor([cell, next_cell])
        self.actions[i], self.rewards[i], self.alive[i] = action, reward, 1.0 - float(finished)
        self.priorities[i] = self.priorities.max().clamp(min=1.0)
        self.position = (i + 1) % self.capacity
        self.size = min(self.size + 1, self.capacity)

    def sample(self, count, beta):
        scaled = self.priorities[:self.size] ** ALPHA
        probs = scaled / scaled.sum()
        rows = torch.multinomial(probs, count, replacement=True)
        weights = (self.size * probs[rows]) ** -beta
        return rows, (weights / weights.max()).unsqueeze(1)

    def update(self, rows, errors):
        self.priorities[rows] = errors.abs() + 1e-3


class QNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(CELLS, 32), nn.ReLU(), nn.Linear(32, ACTIONS))

    def forward(self, cells):
        return self.layers(F.one_hot(cells, CELLS).float())


def learn(online, target, replay, optimizer, beta):
    rows, weights = replay.sample(BATCH, beta)
    cells, next_cells = replay.cells[rows].unbind(dim=1)
    values = online(cells).gather(1, replay.actions[rows].unsqueeze(1)).squeeze(1)
    with torch.no_grad():
        choice = online(next_cells).argmax(dim=1, keepdim=True)
        future = target(next_cells).gather(1, choice).squeeze(1)
        goal = replay.rewards[rows] + GAMMA * replay.alive[rows] * future
    losses = F.smooth_l1_loss(values, goal, reduction="none")
    loss = (weights * losses).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(online.parameters(), 10.0)
    optimizer.step()
    replay.update(rows, (goal - values).detach())
    return loss.item()


env, replay = Corridor(), PrioritizedReplay(CAPACITY)
online, target = QNet(), QNet()
target.load_state_dict(online.state_dict())
optimizer = torch.optim.Adam(online.parameters(), lr=6e-3)

returns, losses = [], []
for episode in range(EPISODES):
    epsilon = max(0.1, 1.0 - episode / 10)
    beta = BETA_START + (1.0 - BETA_START) * episode / (EPISODES - 1)
    cell, total, over = env.reset(), 0.0, False
    while not over:
        with torch.no_grad():
            greedy = online(torch.tensor([cell])).argmax().item()
        action = torch.randint(ACTIONS, ()).item() if torch.rand(()).item() < epsilon else greedy
        next_cell, reward, finished, over = env.step(action)
        replay.add(cell, action, reward, next_cell, finished)
        cell, total = next_cell, total + reward
        if replay.size >= 2 * BATCH:
            losses.append(learn(online, target, replay, optimizer, beta))
    target.load_state_dict(online.state_dict())
    returns.append(total)
    if (episode + 1) % 6 == 0:
        recent = losses[-100:]
        print(f"episode {episode + 1:2d}  return {sum(returns[-6:]) / 6:+.3f}  loss {sum(recent) / max(len(recent), 1):.4f}")

with torch.no_grad():
    best = online(torch.arange(1, CELLS - 1)).max(dim=1).values
print("values between the sockets:", " ".join(f"{v:.2f}" for v in best.tolist()))
