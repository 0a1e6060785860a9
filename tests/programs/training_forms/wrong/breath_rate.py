import math
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(9)


class Stem(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.kernel = nn.ParameterDict({
            "first": nn.Parameter(torch.randn(width, 2, 7) / math.sqrt(14)),
            "second": nn.Parameter(torch.randn(width, width, 5) / math.sqrt(5 * width)),
        })

    def forward(self, x):
        x = F.relu(F.conv1d(x, self.kernel["first"], stride=3, padding=3))
        return F.relu(F.conv1d(x, self.kernel["second"], stride=2, padding=2))


class BreathRate(nn.Module):
    def __init__(self, width=14, hidden=20):
        super().__init__()
        self.stem = Stem(width)
        self.memory = nn.LSTM(width, hidden, batch_first=True)
        self.rate = nn.Linear(hidden, 1)

    def forward(self, belts):
        maps = self.stem(belts)
        frames = maps.view(maps.size(0), -1, maps.size(1))
        _, (last, _) = self.memory(frames)
        return self.rate(last.squeeze(0)).squeeze(1)


def recordings(n):
    rate = torch.rand(n) * 3 + 1
    t = torch.linspace(0, 2 * math.pi, 120)
    phase = torch.rand(n, 1) * 2 * math.pi
    chest = torch.sin(rate[:, None] * t + phase)
    belly = torch.sin(rate[:, None] * t + phase + 0.7)
    return torch.stack([chest, belly], dim=1) + 0.1 * torch.randn(n, 2, 120), rate


x, y = recordings(320)
x_val, y_val = recordings(96)
net = BreathRate()
opt = torch.optim.Rprop(net.parameters(), lr=1e-3)
for it in range(36):
    opt.zero_grad()
    loss = F.huber_loss(net(x), y)
    loss.backward()
    opt.step()
    if it % 12 == 11:
        with torch.no_grad():
            val = F.l1_loss(net(x_val), y_val).item()
        print(f"iteration {it + 1} loss {loss.item():.4f} validation error {val:.4f}")
