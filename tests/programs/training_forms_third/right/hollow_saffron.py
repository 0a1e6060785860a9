from itertools import pairwise

import torch
from torch import nn

torch.manual_seed(21)


class Detector(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        self.last = len(self.layers) - 1

    def forward(self, row):
        for place, layer in enumerate(self.layers):
            row = layer(row)
            if place < self.last:
                row = row.clamp(min=0)
        return row.squeeze(-1)


class Ledger:
    def __init__(self, count):
        self.rows = torch.randn(count, 12)
        risk = self.rows[:, 0] * self.rows[:, 3] + self.rows[:, 5] - 0.8
        self.fraud = (risk + 0.3 * torch.randn(count) > 0).float()

    def __iter__(self):
        for pick in torch.randperm(len(self.rows)).split(64):
            yield self.rows[pick], self.fraud[pick]


data = Ledger(1024)
share = data.fraud.mean()
net = Detector([12, 64, 32, 1])
measure = nn.BCEWithLogitsLoss(pos_weight=(1 - share) / share)
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
for epoch in range(8):
    seen = []
    for rows, fraud in data:
        loss = measure(net(rows), fraud)
        opt.zero_grad()
        loss.backward()
        opt.step()
        seen.append(loss.item())
    print(f"epoch {epoch} loss {sum(seen) / len(seen):.4f}")
with torch.no_grad():
    chance = net(data.rows).sigmoid()
    print("mean chance of the clean", chance[data.fraud == 0].mean().item())
