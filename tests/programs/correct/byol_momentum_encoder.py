"""Two views, an online network with a predictor, and a momentum encoder inside the same module."""

import torch
import torch.nn.functional as F
from torch import nn


class Learner(nn.Module):
    def __init__(self):
        super().__init__()
        self.online = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 4))
        self.momentum = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 4))
        self.momentum.load_state_dict(self.online.state_dict())
        self.predictor = nn.Linear(4, 4)

    def forward(self, one, two):
        with torch.no_grad():
            goal = F.normalize(self.momentum(two), dim=-1)
        return 2 - 2 * (F.normalize(self.predictor(self.online(one)), dim=-1) * goal).sum(-1).mean()

    @torch.no_grad()
    def follow(self, rate=0.9):
        for slow, fast in zip(self.momentum.parameters(), self.online.parameters()):
            slow.data = slow.data * rate + fast.data * (1 - rate)


torch.manual_seed(6)
learner = Learner()
optimizer = torch.optim.SGD(learner.parameters(), lr=0.1, momentum=0.9)
for step in range(3):
    images = torch.randn(16, 6)
    one, two = images + 0.1 * torch.randn(16, 6), images + 0.1 * torch.randn(16, 6)
    loss = 0.5 * (learner(one, two) + learner(two, one))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    learner.follow()
    print(step, round(loss.item(), 3))
