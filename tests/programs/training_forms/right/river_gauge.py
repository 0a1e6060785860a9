import math
from dataclasses import dataclass, replace
from copy import deepcopy
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(4)


@dataclass(frozen=True)
class Record:
    score: float = math.inf
    round: int = -1
    net: nn.Module = None


def discharge(n):
    rain = torch.rand(n, 6)
    flow = 2.0 * rain[:, :2].sum(1) + torch.sin(5 * rain[:, 3]) + 0.6 * torch.randn(n)
    return rain, flow


class Forecaster:
    def __init__(self, width=96):
        self.net = nn.Sequential(nn.Linear(6, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
        self.opt = torch.optim.Adam(self.net.parameters(), lr=8e-3)
        self.record = Record()

    def one_round(self, rain, flow):
        self.net.train()
        for idx in torch.randperm(len(rain)).split(12):
            loss = F.mse_loss(self.net(rain[idx]).squeeze(1), flow[idx])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

    def score(self, net, rain, flow):
        net.eval()
        with torch.no_grad():
            return F.mse_loss(net(rain).squeeze(1), flow).item()

    def consider(self, number, value):
        if value < self.record.score:
            self.record = replace(self.record, score=value, round=number, net=deepcopy(self.net))

    def fit(self, train, valid, rounds=60):
        for number in range(rounds):
            self.one_round(*train)
            self.consider(number, self.score(self.net, *valid))
        return self.record


train, valid, test = discharge(48), discharge(200), discharge(400)
job = Forecaster()
chosen = job.fit(train, valid)
print(f"round {chosen.round}  valid {chosen.score:.4f}  test {job.score(chosen.net, *test):.4f}")
