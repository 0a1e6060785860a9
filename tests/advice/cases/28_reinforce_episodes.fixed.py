"""Policy gradient agent on a toy corridor."""
import torch
import torch.nn as nn
from torch.distributions import Categorical


class Corridor:
    def __init__(self, length=6):
        self.length, self.place = length, 0

    def reset(self):
        self.place = 1
        return self.view()

    def view(self):
        out = torch.zeros(self.length)
        out[self.place] = 1.0
        return out

    def step(self, move):
        self.place = max(0, min(self.length - 1, self.place + (1 if move else -1)))
        done = self.place == self.length - 1
        return self.view(), 1.0 if done else -0.05, done


class Agent(nn.Module):
    def __init__(self, n_obs):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(n_obs, 16), nn.ReLU(), nn.Linear(16, 2))
        self.log_probs, self.rewards = [], []

    def act(self, obs):
        dist = Categorical(logits=self.layers(obs))
        move = dist.sample()
        self.log_probs.append(dist.log_prob(move))
        return int(move)

    def finish_episode(self, optimizer, gamma=0.98):
        returns, future = [], 0.0
        for reward in reversed(self.rewards):
            future = reward + gamma * future
            returns.insert(0, future)
        weights = torch.tensor(returns)
        loss = -(torch.stack(self.log_probs) * weights).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        self.log_probs.clear()
        self.rewards.clear()
        return loss.item()


def main():
    torch.manual_seed(27)
    env, agent = Corridor(), Agent(6)
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-2)
    for episode in range(3):
        obs = env.reset()
        for _ in range(10):
            obs, reward, done = env.step(agent.act(obs))
            agent.rewards.append(reward)
            if done:
                break
        print(episode, agent.finish_episode(optimizer))


if __name__ == "__main__":
    main()
