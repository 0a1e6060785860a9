import copy

import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

torch.manual_seed(71)
SENSORS = 18
drift = torch.randn(SENSORS) * 3
rule = torch.randn(SENSORS, 3)


def plant(n):
    wear = torch.randn(n, SENSORS)
    reading = wear * torch.linspace(0.5, 4, SENSORS) + drift
    return reading, (wear @ rule + 0.3 * torch.randn(n, 3)).argmax(1)


def block(a, b):
    return nn.Sequential(nn.Linear(a, b, bias=False), nn.BatchNorm1d(b), nn.PReLU())


def build():
    return nn.Sequential(nn.BatchNorm1d(SENSORS), block(SENSORS, 40), block(40, 40), nn.Linear(40, 3))


@torch.no_grad()
def follow(calm, net, rate):
    old, new = (parameters_to_vector(m.parameters()) for m in (calm, net))
    vector_to_parameters(torch.lerp(old, new, rate), calm.parameters())


class Watch:
    def __init__(self, rows):
        self.rows = rows

    @torch.inference_mode()
    def judge(self, model):
        was = model.training
        model.eval()
        reading, fault = self.rows
        scores = model(reading)
        model.train(was)
        hit = (scores.argmax(1) == fault).float().mean().item()
        return f"accuracy {hit:.4f} loss {nn.functional.cross_entropy(scores, fault).item():.4f}"


def train(net, calm, watch, steps=250):
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    for step in range(steps):
        reading, fault = plant(64)
        loss = nn.functional.cross_entropy(net(reading), fault)
        opt.zero_grad()
        loss.backward()
        opt.step()
        follow(calm, net, rate=0.05)
        if step % 50 == 49:
            print(f"step {step + 1} train loss {loss.item():.4f}")
            print(f"   net  {watch.judge(net)}")
            print(f"   calm {watch.judge(calm)}")


net = build()
calm = copy.deepcopy(net).eval()
for p in calm.parameters():
    p.requires_grad_(False)
train(net, calm, Watch(plant(1500)))
