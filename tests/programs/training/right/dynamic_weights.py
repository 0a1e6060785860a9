"""Two tasks balanced by the recent speed of each loss."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(31)


class TwoTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(12, 40), nn.ReLU())
        self.classify = nn.Linear(40, 3)
        self.regress = nn.Linear(40, 1)

    def forward(self, x):
        h = self.shared(x)
        return self.classify(h), self.regress(h).squeeze(1)


def balance(history, temperature=2.0):
    if len(history) < 2:
        return 1.0, 1.0
    ratios = [now / before for now, before in zip(history[-1], history[-2])]
    exps = [math.exp(r / temperature) for r in ratios]
    return tuple(len(exps) * e / sum(exps) for e in exps)


x = torch.randn(640, 12)
labels = (x[:, :3] + 0.5 * x[:, 3:6] ** 2).argmax(dim=1)
values = torch.sin(x[:, 6]) + x[:, 7] * x[:, 8]

model = TwoTask()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
history = []
for epoch in range(10):
    w_cls, w_reg = balance(history)
    sums = [0.0, 0.0]
    batches = torch.randperm(len(x)).split(64)
    for idx in batches:
        logits, pred = model(x[idx])
        loss_cls = F.cross_entropy(logits, labels[idx])
        loss_reg = F.mse_loss(pred, values[idx])
        opt.zero_grad()
        (w_cls * loss_cls + w_reg * loss_reg).backward()
        opt.step()
        sums[0] += loss_cls.item()
        sums[1] += loss_reg.item()
    history.append([s / len(batches) for s in sums])
    print(f"epoch {epoch}: class {history[-1][0]:.4f} value {history[-1][1]:.4f} weights {w_cls:.3f} {w_reg:.3f}")
