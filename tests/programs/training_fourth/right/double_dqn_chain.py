"""Double DQN with a replay buffer on a noisy chain; the target network is a copy that is refreshed every 50 updates."""
import copy
import random

import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(0)
random.seed(0)

LENGTH, GAMMA, SYNC, BATCH = 6, 0.9, 50, 64


def env_step(state, action):
    """Right moves on with probability 0.9; left jumps back to the start and pays a little."""
    if action == 0:
        return 0, 0.05, False
    nxt = state + 1 if random.random() < 0.9 else state
    done = nxt == LENGTH - 1
    return nxt, 1.0 if done else 0.0, done


def encode(states):
    return F.one_hot(torch.as_tensor(states), LENGTH).float()


def optimal_values():
    v = [0.0] * LENGTH
    for _ in range(500):
        for s in range(LENGTH - 1):
            end = s + 1 == LENGTH - 1
            right = 0.9 * ((1.0 if end else 0.0) + (0.0 if end else GAMMA * v[s + 1])) + 0.1 * GAMMA * v[s]
            v[s] = max(0.05 + GAMMA * v[0], right)
    return torch.tensor(v[:-1])


online = nn.Sequential(nn.Linear(LENGTH, 32), nn.ReLU(), nn.Linear(32, 2))
target = copy.deepcopy(online).requires_grad_(False)
optimizer = torch.optim.Adam(online.parameters(), lr=3e-3)
buffer, state = [], 0

for step in range(1, 2001):
    epsilon = max(0.2, 1.0 - step / 1000)
    if random.random() < epsilon:
        action = random.randrange(2)
    else:
        with torch.no_grad():
            action = online(encode([state])).argmax(1).item()
    nxt, reward, done = env_step(state, action)
    buffer.append((state, action, reward, nxt, float(done)))
    buffer = buffer[-2000:]
    state = 0 if done else nxt
    if len(buffer) < BATCH or step % 2:
        continue

    s, a, r, n, d = zip(*random.sample(buffer, BATCH))
    a, r, d = torch.tensor(a), torch.tensor(r), torch.tensor(d)
    with torch.no_grad():
        best = online(encode(n)).argmax(1, keepdim=True)
        goal = r + GAMMA * (1 - d) * target(encode(n)).gather(1, best).squeeze(1)
    q = online(encode(s)).gather(1, a.unsqueeze(1)).squeeze(1)
    loss = F.mse_loss(q, goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % (2 * SYNC) == 0:
        target.load_state_dict(online.state_dict())
    if step % 500 == 0:
        print(f"step {step}  loss {loss.item():.4f}")

with torch.no_grad():
    learned = online(encode(list(range(LENGTH - 1)))).max(1).values
best = optimal_values()
print("learned", [round(x, 3) for x in learned.tolist()])
print("optimal", [round(x, 3) for x in best.tolist()])
print("largest error", round((learned - best).abs().max().item(), 3))
