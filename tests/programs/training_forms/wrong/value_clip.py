import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(4)


class Critic(nn.Module):
    def __init__(self, obs):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, obs):
        return self.body(obs).squeeze(-1)


class CriticUpdate:
    def __init__(self, critic, clip=0.1):
        self.critic, self.clip = critic, clip
        self.opt = torch.optim.Adam(critic.parameters(), lr=4e-3)

    def loss(self, obs, old, returns):
        value = self.critic(obs)
        near = old + torch.clamp(value - old, -self.clip, self.clip)
        costs = [F.smooth_l1_loss(v, returns) for v in (value, near)]
        return torch.stack(costs).amax()

    def run(self, obs, returns, epochs=4):
        with torch.no_grad():
            old = self.critic(obs)
        for _ in range(epochs):
            for rows in torch.randperm(len(obs)).split(32):
                loss = self.loss(obs[rows], old[rows], returns[rows])
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
        return loss.item()


def rollout(steps, gamma=0.9):
    obs = torch.randn(steps, 5).cumsum(0) * 0.2
    reward = torch.sin(obs[:, 0]) + 0.3 * obs[:, 1] + 0.1 * torch.randn(steps)
    returns, acc = [], torch.zeros(())
    for r in reward.flip(0):
        acc = r + gamma * acc
        returns.insert(0, acc)
    return obs, torch.stack(returns)


critic = Critic(5)
update = CriticUpdate(critic)
for it in range(8):
    obs, returns = rollout(128)
    last = update.run(obs, returns)
    with torch.no_grad():
        gap = (critic(obs) - returns).abs().mean().item()
    print(f"iteration {it} loss {last:.4f} mean gap {gap:.4f}")
