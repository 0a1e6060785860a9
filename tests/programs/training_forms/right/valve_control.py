import torch
from torch import nn
from torch.distributions import Normal
from torch.func import functional_call

torch.manual_seed(31)


class Valve(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
        self.spread = nn.Parameter(torch.full((2,), -0.5))

    def forward(self, flow):
        return self.mean(flow), self.spread.exp().expand(len(flow), 2)


def log_prob(outputs, moves):
    return Normal(*outputs).log_prob(moves).sum(-1)


def plant(flow, moves):
    wanted = torch.stack([flow[:, 0] - flow[:, 1], 0.5 * flow[:, 2] * flow[:, 3]], -1)
    return -(moves - wanted).pow(2).sum(-1)


def surrogate(new, old, gain, width=0.2):
    ratio = (new - old).exp()
    return -torch.minimum(ratio * gain, ratio.clamp(1 - width, 1 + width) * gain).mean()


policy = Valve()
opt = torch.optim.Adam(policy.parameters(), lr=1e-2)

for cycle in range(12):
    behaviour = {name: p.detach().clone() for name, p in policy.named_parameters()}
    with torch.no_grad():
        flow = torch.randn(256, 4)
        moves = Normal(*policy(flow)).sample()
        reward = plant(flow, moves)
        gain = (reward - reward.mean()) / reward.std()
    for sweep in range(4):
        for pick in torch.randperm(256).split(64):
            with torch.no_grad():
                old = log_prob(functional_call(policy, behaviour, (flow[pick],)), moves[pick])
            new = log_prob(policy(flow[pick]), moves[pick])
            loss = surrogate(new, old, gain[pick])
            opt.zero_grad()
            loss.backward()
            opt.step()
    if cycle % 3 == 2:
        print(f"cycle {cycle} reward {reward.mean().item():.4f} spread {policy.spread.exp().mean().item():.4f}")
