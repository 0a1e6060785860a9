import torch
from torch import nn


class ActNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.log_scale = nn.Parameter(torch.empty(dim))
        self.shift = nn.Parameter(torch.empty(dim))
        self.register_buffer("ready", torch.tensor(False))

    @torch.no_grad()
    def fill(self, x):
        self.log_scale.data = -x.std(0).clamp(min=1e-3).log()
        self.shift.data = -x.mean(0)
        self.ready.fill_(True)

    def forward(self, x):
        if not self.ready:
            self.fill(x)
        return (x + self.shift) * self.log_scale.exp(), self.log_scale.sum()


class Coupling(nn.Module):
    def __init__(self, dim, width=24):
        super().__init__()
        self.half = dim // 2
        self.net = nn.Sequential(nn.Linear(self.half, width), nn.Tanh(), nn.Linear(width, 2 * (dim - self.half)))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        a, b = x[:, : self.half], x[:, self.half :]
        s, t = self.net(a).chunk(2, -1)
        s = torch.tanh(s)
        return torch.cat([a, b * s.exp() + t], -1), s.sum(-1)


class Flow(nn.Module):
    def __init__(self, dim=4, depth=4):
        super().__init__()
        self.dim = dim
        self.steps = []
        for k in range(depth):
            step = (ActNorm(dim), torch.arange(dim).flip(0), Coupling(dim))
            self.add_module(f"norm{k}", step[0])
            self.add_module(f"couple{k}", step[2])
            self.steps.append(step)

    def log_prob(self, x):
        total = 0.0
        for norm, order, couple in self.steps:
            x, a = norm(x)
            x, b = couple(x[:, order])
            total = total + a + b
        return total - 0.5 * x.pow(2).sum(-1) - 0.5 * self.dim * 1.8379


def train(flow, data, steps=80):
    opt = torch.optim.Adam(flow.parameters(), lr=5e-3)
    g = torch.Generator().manual_seed(3)
    for k in range(steps):
        loss = -flow.log_prob(data[torch.randint(0, len(data), (128,), generator=g)]).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if k % 20 == 0:
            print(f"step {k} nll {loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    raw = torch.randn(800, 2)
    data = torch.cat([raw, raw.pow(2) + 0.2 * torch.randn(800, 2)], -1) * 2 + 1
    flow = Flow()
    train(flow, data)
