import torch
from torch import nn


def mlp(i, o, act):
    layers = [nn.Linear(i, 32), act(), nn.Linear(32, o)]
    return nn.Sequential(*layers)


class Agent:
    def __init__(self, obs_dim, act_dim, gamma=0.9):
        self.pi = nn.Sequential(mlp(obs_dim, act_dim, nn.ReLU), nn.Tanh())
        self.q = mlp(obs_dim + act_dim, 1, nn.ReLU)
        self.gamma = gamma
        self.pi_opt = torch.optim.SGD(self.pi.parameters(), lr=0.02)
        self.q_opt = torch.optim.SGD(self.q.parameters(), lr=0.02)

    def value(self, s, a):
        return self.q(torch.cat((s, a), -1)).squeeze(-1)

    def fit_critic(self, s, a, r, s2):
        with torch.no_grad():
            goal = r + self.gamma * self.value(s2, self.pi(s2))
        td = (self.value(s, a) - goal).square().mean()
        td.backward()
        self.q_opt.step()
        self.q_opt.zero_grad()
        return td.item()

    def fit_actor(self, s):
        gain = self.value(s, self.pi(s)).mean()
        (-gain).backward()
        self.pi_opt.step()
        self.pi_opt.zero_grad()
        return gain.item()


def rollout(n):
    s = torch.randn(n, 3)
    a = torch.rand(n, 1) * 2 - 1
    s2 = 0.8 * s + 0.3 * a
    r = -(s2.square().sum(-1)) - 0.05 * a.squeeze(-1).square()
    return s, a, r, s2


torch.manual_seed(5)
agent = Agent(3, 1)
buffer = rollout(2048)
for it in range(150):
    pick = torch.randint(0, 2048, (64,))
    s, a, r, s2 = (t[pick] for t in buffer)
    td = agent.fit_critic(s, a, r, s2)
    gain = agent.fit_actor(s)
    if it % 30 == 29:
        print(f"iter {it + 1:3d}  td {td:.4f}  q {gain:.4f}")
