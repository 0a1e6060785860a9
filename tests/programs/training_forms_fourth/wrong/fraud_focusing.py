import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(37)
COLUMNS = 16


def payments(n):
    x = torch.randn(n, COLUMNS)
    odd = x[:, 0] * x[:, 1] + 0.8 * x[:, 2] - 0.5 * x[:, 3].abs()
    label = (odd + 0.4 * torch.randn(n) > 1.9).long()
    return x, label


class Focus:
    def __init__(self, power=2.0):
        self.power = power

    def __call__(self, scores, label):
        logp = scores.log_softmax(dim=-1)
        surprise = F.nll_loss(logp, label)
        focus = torch.expm1(-surprise).neg().pow(self.power)
        return focus * surprise


class Gate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.value, self.gate = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, h):
        return h + self.value(h) * torch.sigmoid(self.gate(h))


def average_precision(score, label):
    order = score.argsort(descending=True)
    hits = label[order].float()
    precision = hits.cumsum(0) / torch.arange(1, len(hits) + 1)
    return (precision * hits).sum().item() / hits.sum().item()


class Desk:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(COLUMNS, 32), Gate(32), nn.Mish(), Gate(32), nn.Linear(32, 2))
        self.objective = Focus()
        self.opt = torch.optim.Adam(self.model.parameters(), lr=3e-3)

    def day(self, rows):
        x, label = payments(rows)
        total = 0.0
        for xb, yb in zip(x.split(100), label.split(100)):
            loss = self.objective(self.model(xb), yb)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss.item() * len(xb)
        return total / rows

    def review(self):
        x, label = payments(3000)
        with torch.no_grad():
            chance = self.model(x).softmax(-1)[:, 1]
        return average_precision(chance, label), chance.mean().item(), label.float().mean().item()


desk = Desk()
for day in range(6):
    loss = desk.day(2000)
    ap, said, real = desk.review()
    print(f"day {day + 1} loss {loss:.5f} ap {ap:.4f} mean chance {said:.4f} share {real:.4f}")
