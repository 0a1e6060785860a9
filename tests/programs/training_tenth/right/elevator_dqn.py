"""Double DQN with a dueling network for a small elevator dispatcher (go down, wait, go up, open the doors)."""
import copy
from collections import deque

import numpy as np
import torch
from torch import nn

SEED = 5
FLOORS = 6
ACTIONS = 4
GAMMA = 0.95
TAU = 0.01
STEPS = 4500


class Elevator:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.floor, self.call, self.t = self.rng.integers(FLOORS), self.rng.integers(FLOORS), 0
        return self.observe()

    def observe(self):
        x = np.zeros(2 * FLOORS, dtype=np.float32)
        x[self.floor] = x[FLOORS + self.call] = 1
        return x

    def step(self, action):
        self.t += 1
        reward, done = -0.1, self.t >= 20
        if action == 3:
            reward, done = (1.0, True) if self.floor == self.call else (-0.5, done)
        else:
            self.floor = int(np.clip(self.floor + action - 1, 0, FLOORS - 1))
        return self.observe(), reward, done


class DuelingNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2 * FLOORS, width), nn.ReLU())
        self.value = nn.Linear(width, 1)
        self.advantage = nn.Linear(width, ACTIONS)

    def forward(self, x):
        h = self.body(x)
        if h.requires_grad:
            h.register_hook(lambda g: g / 2 ** 0.5)
        a = self.advantage(h)
        return self.value(h) + a - a.mean(1, keepdim=True)


def evaluate(net, episodes=50):
    env, total = Elevator(99), 0.0
    for _ in range(episodes):
        obs, done = env.reset(), False
        while not done:
            with torch.inference_mode():
                action = net(torch.from_numpy(obs)[None]).argmax().item()
            obs, reward, done = env.step(action)
            total += reward
    return total / episodes


def main():
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    online = DuelingNet()
    target = copy.deepcopy(online).requires_grad_(False)
    optimizer = torch.optim.Adam(online.parameters(), lr=2e-3)
    memory, env = deque(maxlen=3000), Elevator(SEED)
    obs, before, losses = env.reset(), evaluate(online), []
    for step in range(STEPS):
        epsilon = max(0.05, 1 - step / 2000)
        if rng.random() < epsilon:
            action = int(rng.integers(ACTIONS))
        else:
            with torch.no_grad():
                action = online(torch.from_numpy(obs)[None]).argmax().item()
        new, reward, done = env.step(action)
        memory.append((obs, action, reward, new, float(done)))
        obs = env.reset() if done else new
        if len(memory) < 200 or step % 2:
            continue
        batch = [memory[i] for i in rng.integers(len(memory), size=32)]
        s, a, r, s2, d = (torch.as_tensor(np.array(c)) for c in zip(*batch))
        best = online(s2).detach().argmax(1, keepdim=True)
        goal = r.float() + GAMMA * (1 - d.float()) * target(s2).gather(1, best).squeeze(1)
        q = online(s).gather(1, a[:, None]).squeeze(1)
        with torch.no_grad():
            grad_q = (q - goal).clamp(-1, 1) / len(q)
        optimizer.zero_grad()
        q.backward(grad_q)
        optimizer.step()
        for slow, fast in zip(target.parameters(), online.parameters()):
            slow.data.lerp_(fast.data, TAU)
        losses.append((q.detach() - goal).square().mean().item())
    print(f"return before {before:.2f}, after {evaluate(online):.2f}, TD error {np.mean(losses[-200:]):.4f}")
    return online, target


if __name__ == "__main__":
    online, target = main()
