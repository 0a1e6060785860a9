import torch
from torch import nn
from torch.func import functional_call, grad_and_value

torch.manual_seed(33)


class Quote(nn.Module):
    def __init__(self, stations=10, dim=4):
        super().__init__()
        self.station = nn.Embedding(stations, dim)
        self.day = nn.Linear(3, dim)
        self.level = nn.Parameter(torch.zeros(1))

    def forward(self, station, day):
        match = torch.mul(self.station(station), self.day(day))
        return match.sum(-1, keepdim=True) + self.level


station_effect = torch.randn(10)


def quotes(n=32):
    station, day = torch.randint(10, (n,)), torch.randn(n, 3)
    price = 1.5 + station_effect[station] * day[:, 0] + 0.1 * torch.randn(n)
    return station, day, price


def pinball(forecast, price, level=0.6):
    miss = torch.sub(price, forecast)
    return torch.maximum(level * miss, (level - 1) * miss).mean()


def objective(params, net, batch):
    station, day, price = batch
    forecast = functional_call(net, params, (station, day))
    return pinball(forecast, price)


net = Quote()
params = {name: p.detach().clone() for name, p in net.named_parameters()}
speed = {name: torch.zeros_like(p) for name, p in params.items()}
slope = grad_and_value(objective)
for step in range(300):
    grads, value = slope(params, net, quotes())
    for name, g in grads.items():
        speed[name].mul_(0.9).add_(g)
    params = {name: p - 0.05 * speed[name] for name, p in params.items()}
    if step % 60 == 59:
        print(f"step {step + 1}  pinball {value.item():.4f}")

station, day, price = quotes(400)
forecast = functional_call(net, params, (station, day)).flatten()
print(f"mean miss {(forecast - price).abs().mean():.4f}")
