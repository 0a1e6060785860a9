import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F


class Corridor:
    def __init__(self, length=8):
        self.length = length
        self.position = 0

    def observe(self):
        return F.one_hot(torch.tensor(self.position), self.length).float()

    def reset(self):
        self.position = 0
        return self.observe()

    def step(self, action):
        self.position = max(0, self.position + (1 if action == 1 else -1))
        done = self.position == self.length - 1
        return self.observe(), (1.0 if done else -0.01), done


def make_q(n_obs, n_actions):
    return nn.Sequential(nn.Linear(n_obs, 32), nn.ReLU(), nn.Linear(32, n_actions))


class DQNAgent:
    def __init__(self, n_obs, n_actions, gamma=0.95, sync_every=25):
        self.online = make_q(n_obs, n_actions)
        self.target = make_q(n_obs, n_actions)
        self.target.load_state_dict(self.online.state_dict())
        self.target.requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=2e-3)
        self.replay = deque(maxlen=2000)
        self.gamma, self.sync_every, self.updates = gamma, sync_every, 0
        self.n_actions = n_actions

    @torch.no_grad()
    def act(self, obs, epsilon):
        if random.random() < epsilon:
            return random.randrange(self.n_actions)
        return self.online(obs).argmax().item()

    def sync(self):
        for p_target, p_online in zip(self.target.parameters(), self.online.parameters()):
            p_target.data = p_online.data

    def learn(self, batch_size=32):
        obs, action, reward, nxt, done = zip(*random.sample(self.replay, batch_size))
        obs, nxt = torch.stack(obs), torch.stack(nxt)
        action = torch.tensor(action)[:, None]
        reward, done = torch.tensor(reward), torch.tensor(done).float()
        with torch.no_grad():
            bootstrap = self.target(nxt).max(dim=1).values
            goal = reward + self.gamma * (1 - done) * bootstrap
        q = self.online(obs).gather(1, action).squeeze(1)
        loss = F.smooth_l1_loss(q, goal)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.updates += 1
        if self.updates % self.sync_every == 0:
            self.sync()
        return loss.item()


def main(total_steps=440):
    torch.manual_seed(1)
    random.seed(1)
    env = Corridor()
    agent = DQNAgent(env.length, 2)
    obs, losses = env.reset(), []
    for t in range(total_steps):
        action = agent.act(obs, epsilon=max(0.1, 1 - t / 300))
        nxt, reward, done = env.step(action)
        agent.replay.append((obs, action, reward, nxt, done))
        obs = env.reset() if done else nxt
        if len(agent.replay) >= 64:
            losses.append(agent.learn())
        if losses and t % 100 == 0:
            print(f"t {t} td loss {sum(losses[-50:]) / len(losses[-50:]):.5f}")
    return agent


if __name__ == "__main__":
    agent = main()
