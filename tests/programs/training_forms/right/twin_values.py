from itertools import chain
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(23)


def mlp(a, b, h=32):
    return nn.Sequential(nn.Linear(a, h), nn.ReLU(), nn.Linear(h, b))


class Learner:
    def __init__(self):
        self.eye = nn.Sequential(nn.Linear(10, 6), nn.Tanh())
        self.left, self.right = mlp(7, 1), mlp(7, 1)
        self.policy = nn.Sequential(mlp(6, 1), nn.Tanh())
        self.value_opt = torch.optim.Adam(
            chain(self.eye.parameters(), self.left.parameters(), self.right.parameters()), lr=3e-3)
        self.policy_opt = torch.optim.Adam(self.policy.parameters(), lr=1e-3)

    def both(self, code, move):
        joined = torch.cat([code, move], 1)
        return self.left(joined), self.right(joined)

    def value_step(self, obs, move, gain):
        q1, q2 = self.both(self.eye(obs), move)
        loss = F.mse_loss(q1, gain) + F.mse_loss(q2, gain)
        self.value_opt.zero_grad()
        loss.backward()
        self.value_opt.step()
        return loss.item()

    def policy_step(self, obs):
        heads = list(chain(self.left.parameters(), self.right.parameters()))
        for p in heads:
            p.requires_grad = False
        code = self.eye(obs).detach()
        loss = -torch.minimum(*self.both(code, self.policy(code))).mean()
        self.policy_opt.zero_grad()
        loss.backward()
        self.policy_opt.step()
        for p in heads:
            p.requires_grad = True
        return loss.item()


def payoff(obs, move):
    return 1 - 4 * (move - 0.5 * torch.sin(obs[:, :1] * 2)).square()


agent = Learner()
for t in range(160):
    obs = torch.randn(64, 10)
    move = torch.rand(64, 1) * 2 - 1
    v = agent.value_step(obs, move, payoff(obs, move))
    p = agent.policy_step(obs)
    if t % 40 == 39:
        print(f"{t + 1} value {v:.4f} policy {p:.4f}")
