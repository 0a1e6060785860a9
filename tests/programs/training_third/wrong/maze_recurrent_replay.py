import copy
import random
from collections import deque
from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(NamedTuple):
    obs: torch.Tensor
    action: int
    reward: float
    memory: torch.Tensor


class RecurrentQ(nn.Module):
    def __init__(self, n_obs=6, width=24, n_actions=3):
        super().__init__()
        self.cell = nn.GRUCell(n_obs, width)
        self.value = nn.Linear(width, n_actions)
        self.width = width

    def forward(self, obs, memory):
        memory = self.cell(obs, memory)
        return self.value(memory), memory


class Maze:
    def __init__(self):
        self.goal = random.randrange(3)
        self.clock = 0

    def observe(self):
        obs = 0.1 * torch.randn(6)
        if self.clock % 5 == 0:
            obs[self.goal] += 1.0
        return obs

    def step(self, action):
        reward = 1.0 if action == self.goal else -0.2
        self.clock += 1
        if self.clock % 5 == 0:
            self.goal = random.randrange(3)
        return self.observe(), reward


class Agent:
    def __init__(self, burst=4, gamma=0.6):
        self.net = RecurrentQ()
        self.target = copy.deepcopy(self.net).requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=3e-3)
        self.replay = deque(maxlen=5000)
        self.memory = torch.zeros(self.net.width)
        self.burst, self.gamma = burst, gamma

    def act(self, obs, epsilon):
        q, following = self.net(obs, self.memory)
        action = random.randrange(3) if random.random() < epsilon else q.argmax().item()
        before, self.memory = self.memory, following
        return action, before

    def sample(self, size=16):
        starts = [random.randrange(len(self.replay) - self.burst) for _ in range(size)]
        return [[self.replay[s + i] for i in range(self.burst + 1)] for s in starts]

    def learn(self):
        chunks = self.sample()
        memory = torch.stack([c[0].memory for c in chunks]).detach()
        slow = memory.clone()
        loss = 0.0
        for i in range(self.burst):
            obs = torch.stack([c[i].obs for c in chunks])
            nxt = torch.stack([c[i + 1].obs for c in chunks])
            action = torch.tensor([c[i].action for c in chunks])[:, None]
            reward = torch.tensor([c[i].reward for c in chunks])
            q, memory = self.net(obs, memory)
            with torch.no_grad():
                slow = self.target(obs, slow)[1]
                goal = reward + self.gamma * self.target(nxt, slow)[0].max(dim=1).values
            loss = loss + F.smooth_l1_loss(q.gather(1, action).squeeze(1), goal) / self.burst
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main(total=300):
    torch.manual_seed(0)
    random.seed(0)
    env, agent = Maze(), Agent()
    obs, income = env.observe(), deque(maxlen=100)
    for t in range(total):
        action, before = agent.act(obs, epsilon=max(0.1, 1 - t / 200))
        nxt, reward = env.step(action)
        agent.replay.append(Step(obs, action, reward, before))
        obs = nxt
        income.append(reward)
        if t > 40 and t % 3 == 0:
            loss = agent.learn()
        if t % 60 == 0 and t > 60:
            agent.target.load_state_dict(agent.net.state_dict())
            print(f"t {t} loss {loss:.4f} income {sum(income) / len(income):.3f}")
    return agent


if __name__ == "__main__":
    agent = main()
