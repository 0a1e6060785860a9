import io
import math

import torch
from torch import nn


class Coupling(nn.Module):
    def __init__(self, dim, width):
        super().__init__()
        self.half = dim // 2
        self.net = nn.Sequential(nn.Linear(self.half, width), nn.ReLU(), nn.Linear(width, 2 * (dim - self.half)))

    def forward(self, x):
        a, b = x[:, :self.half], x[:, self.half:]
        s, t = self.net(a).chunk(2, 1)
        s = torch.tanh(s)
        return torch.cat([a, b * s.exp() + t], 1), s.sum(1)


class Flow(nn.Module):
    def __init__(self, dim=8, depth=4, width=32):
        super().__init__()
        self.dim = dim
        self.blocks = nn.ModuleList(Coupling(dim, width) for _ in range(depth))
        self.routes = [torch.argsort(torch.rand(dim)) for _ in range(depth)]

    def log_density(self, x):
        total = torch.zeros(len(x))
        for block, route in zip(self.blocks, self.routes):
            x, volume = block(x[:, route])
            total = total + volume
        return total - 0.5 * x.square().sum(1) - 0.5 * self.dim * math.log(2 * math.pi)


def detector_hits(n, dim=8):
    z = torch.randn(n, dim)
    z[:, 1::2] = 0.3 * z[:, 1::2] + z[:, ::2].square() - 1
    return z


def train(flow, data, steps, tag):
    optimizer = torch.optim.NAdam(flow.parameters(), lr=4e-3)
    for step in range(steps):
        batch = data[torch.randint(len(data), (128,))]
        nll = -flow.log_density(batch).mean()
        optimizer.zero_grad()
        nll.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"{tag} step {step:3d} nll {nll.item():.3f}")
    return flow


def save(flow):
    blob = io.BytesIO()
    torch.save(flow.state_dict(), blob)
    blob.seek(0)
    return blob


def restore(blob):
    flow = Flow()
    flow.load_state_dict(torch.load(blob))
    return flow


if __name__ == "__main__":
    torch.manual_seed(21)
    data = detector_hits(3000)
    blob = save(train(Flow(), data, 150, "first"))
    flow = train(restore(blob), data, 100, "second")
    with torch.no_grad():
        print(f"final nll {-flow.log_density(detector_hits(1000)).mean().item():.3f}")
