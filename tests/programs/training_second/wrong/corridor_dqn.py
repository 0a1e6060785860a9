import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F


class Corridor:
    def __init__(self, length=7):
        self.length = length

    def encode(self):
        scaled = 2 * self.position / (self.length - 1) - 1
        return torch.tensor([scaled, scaled * scaled])

    def reset(self):
        self.position, self.clock = self.length // 2, 0
        return self.encode()

    def step(self, action):
        self.position += 1 if action == 1 else -1
        self.position = max(0, min(self.length - 1, self.position))
        self.clock += 1
        reward = {0: 0.2, self.length - 1: 1.0}.get(self.position, -0.02)
        done = self.position in (0, self.length - 1) or self.clock >= 20
        return self.encode(), reward, done


def q_network(inputs, actions, hidden=32):
    return nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, actions))


class Agent:
    def __init__(self, inputs, actions, gamma=0.95, sync_every=25, lr=5e-3):
        self.online = q_network(inputs, actions)
        self.target = q_network(inputs, actions).requires_grad_(False)
        self.optimizer = torch.optim.RMSprop(self.online.parameters(), lr=lr)
        self.memory = deque(maxlen=500)
        self.gamma, self.sync_every, self.updates = gamma, sync_every, 0
        self.sync()

    def sync(self):
        for slow, fast in zip(self.target.parameters(), self.online.parameters()):
            slow.data = fast.data

    def act(self, state, epsilon):
        if random.random() < epsilon:
            return random.randrange(2)
        with torch.no_grad():
            return self.online(state).argmax().item()

    def learn(self, batch_size=32):
        states, actions, rewards, nexts, dones = zip(*random.sample(self.memory, batch_size))
        states, nexts = torch.stack(states), torch.stack(nexts)
        actions = torch.tensor(actions)
        rewards, dones = torch.tensor(rewards), torch.tensor(dones).float()
        with torch.no_grad():
            goal = rewards + self.gamma * (1 - dones) * self.target(nexts).amax(1)
        chosen = self.online(states).gather(1, actions[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(chosen, goal)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.updates += 1
        if self.updates % self.sync_every == 0:
            self.sync()
        return loss.item()


def main():
    random.seed(2)
    torch.manual_seed(2)
    env = Corridor()
    agent = Agent(2, 2)
    loss, returns = float("nan"), []
    for episode in range(40):
        state, done, total = env.reset(), False, 0.0
        while not done:
            action = agent.act(state, epsilon=max(0.1, 1 - episode / 25))
            following, reward, done = env.step(action)
            agent.memory.append((state, action, reward, following, done))
            state, total = following, total + reward
            if len(agent.memory) >= 64:
                loss = agent.learn()
        returns.append(total)
        if episode % 10 == 9:
            print(f"episode {episode + 1} loss {loss:.4f} return {sum(returns[-10:]) / 10:.3f}")
    return agent


if __name__ == "__main__":
    main()
