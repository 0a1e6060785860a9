import torch
from torch import nn
import torch.nn.functional as F
from torch.distributions import Normal

torch.manual_seed(2)


class Pilot(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 32), nn.Tanh())
        self.mean = nn.Linear(32, 1)
        self.log_std = nn.Linear(32, 1)

    def act(self, obs):
        h = self.body(obs)
        dist = Normal(self.mean(h), self.log_std(h).clamp(-3, 1).exp())
        move = dist.rsample()
        return move, dist.log_prob(move)


class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, 1))

    def forward(self, obs, move):
        return self.net(torch.cat((obs, move), dim=-1))


def reward(obs, move):
    return -(move - obs.sum(-1, keepdim=True).tanh()).square()


class Agent:
    def __init__(self):
        self.pilot, self.judge = Pilot(), Judge()
        self.pilot_opt = torch.optim.Adam(self.pilot.parameters(), lr=5e-3)
        self.judge_opt = torch.optim.Adam(self.judge.parameters(), lr=5e-3)

    def fit_judge(self, obs):
        with torch.no_grad():
            move, _ = self.pilot.act(obs)
        loss = F.mse_loss(self.judge(obs, move), reward(obs, move))
        self.judge_opt.zero_grad()
        loss.backward()
        self.judge_opt.step()
        return loss.item()

    def fit_pilot(self, obs):
        move, logp = self.pilot.act(obs)
        loss = (0.05 * logp - self.judge(obs, move)).mean()
        self.pilot_opt.zero_grad()
        loss.backward()
        self.pilot_opt.step()


agent = Agent()
for step in range(200):
    obs = torch.randn(64, 3)
    td = agent.fit_judge(obs)
    agent.fit_pilot(obs)
    if step % 40 == 39:
        with torch.no_grad():
            r = reward(obs, agent.pilot.act(obs)[0]).mean()
        print(f"{step + 1} judge {td:.4f} reward {r.item():.4f}")
