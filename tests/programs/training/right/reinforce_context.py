"""REINFORCE on a contextual bandit with a running baseline."""
import torch
import torch.nn as nn
from torch.distributions import Categorical

torch.manual_seed(9)
CONTEXT, ARMS, BATCH = 6, 4, 64


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(CONTEXT, 32), nn.Tanh(), nn.Linear(32, ARMS))

    def forward(self, context):
        return Categorical(logits=self.net(context))


class Bandit:
    def __init__(self):
        self.weight = torch.randn(CONTEXT, ARMS)

    def contexts(self, n):
        return torch.randn(n, CONTEXT)

    def pull(self, context, arm):
        mean = (context @ self.weight).gather(1, arm.unsqueeze(1)).squeeze(1)
        return mean + 0.1 * torch.randn(len(arm))

    def best(self, context):
        return (context @ self.weight).max(dim=1).values.mean().item()


policy, bandit = Policy(), Bandit()
opt = torch.optim.Adam(policy.parameters(), lr=1e-2)
baseline = 0.0

for step in range(150):
    context = bandit.contexts(BATCH)
    dist = policy(context)
    arm = dist.sample()
    reward = bandit.pull(context, arm)
    advantage = reward - baseline
    loss = -(dist.log_prob(arm) * advantage).mean() - 0.01 * dist.entropy().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    baseline = 0.9 * baseline + 0.1 * reward.mean().item()
    if step % 30 == 29:
        print(f"step {step}: reward {reward.mean().item():.3f} best {bandit.best(context):.3f}")
