import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(33)


class HeatMap(nn.Module):
    def __init__(self, knots=40):
        super().__init__()
        self.values = nn.ParameterDict({
            "field": nn.Parameter(torch.randn(knots) * 0.1),
            "drift": nn.Parameter(torch.zeros(knots)),
        })

    def forward(self, place, time):
        spot = place * (self.values["field"].numel() - 1)
        low = spot.floor().long().clamp(max=self.values["field"].numel() - 2)
        part = spot - low
        field, drift = (torch.lerp(v[low], v[low + 1], part) for v in (self.values["field"], self.values["drift"]))
        return field + drift * time

    def roughness(self):
        bends = [torch.diff(v, n=2).square().sum() for v in self.values.values()]
        return torch.stack(bends).sum()


def readings(n, noise):
    place, time = torch.rand(n), torch.rand(n)
    truth = torch.sin(6 * place) + time * torch.cos(4 * place)
    return place, time, truth + noise * torch.randn(n)


def fit(heat, data, strength, rounds):
    opt = torch.optim.SGD(heat.parameters(), lr=0.5, momentum=0.9)
    place, time, seen = data
    for r in range(1, rounds + 1):
        miss = F.mse_loss(heat(place, time), seen)
        rough = heat.roughness()
        loss = miss + strength * rough
        opt.zero_grad()
        loss.backward()
        opt.step()
        if r % 40 == 0:
            print(f"round {r} loss {loss.item():.4f} fit {miss.item():.4f} roughness {rough.item():.4f}")


heat = HeatMap()
fit(heat, readings(150, 0.4), strength=0.02, rounds=160)
place, time, truth = readings(500, 0.0)
print(f"error against the truth {F.mse_loss(heat(place, time), truth).item():.4f}")
