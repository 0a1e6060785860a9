import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(27)


class Rescale(nn.Module):
    def __init__(self, eps=1e-4):
        super().__init__()
        self.eps = eps
        self.stats = {}

    def shrink(self, series):
        self.stats["loc"] = series.mean(dim=1, keepdim=True)
        self.stats["scale"] = series.std(dim=1, keepdim=True) + self.eps
        return (series - self.stats["loc"]) / self.stats["scale"]

    def grow(self, series):
        return series * self.stats["scale"] + self.stats["loc"]


class DemandModel(nn.Module):
    def __init__(self, past=24, ahead=6, width=48):
        super().__init__()
        self.rescale = Rescale()
        self.load_net = nn.Linear(past, width)
        self.heat_net = nn.Linear(past, width)
        self.out = nn.Sequential(nn.GELU(), nn.Linear(width, ahead))

    def forward(self, load, heat):
        h = self.load_net(self.rescale.shrink(load))
        h = h + self.heat_net(self.rescale.shrink(heat))
        return self.rescale.grow(self.out(h))


def households(count=400, past=24, ahead=6):
    t = torch.arange(past + ahead).float()
    level = torch.rand(count, 1) * 3 + 1
    phase = torch.rand(count, 1) * 6.28
    heat = 0.5 + 0.3 * torch.sin(6.28 * t / 24 + phase) + 0.05 * torch.randn(count, past + ahead)
    load = level * (1.2 - 0.6 * heat) + 0.1 * torch.randn(count, past + ahead)
    return load[:, :past], heat[:, :past], load[:, past:]


load, heat, future = households()
model = DemandModel()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(12):
    for i in torch.randperm(320).split(32):
        loss = F.l1_loss(model(load[i], heat[i]), future[i])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1} train {loss.item():.4f}")

with torch.no_grad():
    print("test", F.l1_loss(model(load[320:], heat[320:]), future[320:]).item())
