import torch
from torch import nn
import torch.nn.functional as F


class RainNet(nn.Module):
    def __init__(self, stations=9, width=24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(stations, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


class Accumulator:
    def __init__(self, params, opt, every):
        self.params, self.opt, self.every = list(params), opt, every
        self.pending, self.count = 0, 0
        self.updates = 0

    def add(self, summed, n):
        summed.backward()
        self.pending += 1
        self.count += n
        if self.pending == self.every:
            self.flush()

    def flush(self):
        if not self.pending:
            return
        for p in self.params:
            if p.grad is not None:
                p.grad.div_(self.count)
        nn.utils.clip_grad_norm_(self.params, 5.0)
        self.opt.step()
        self.opt.zero_grad()
        self.pending = self.count = 0
        self.updates += 1


def rainfall(n, g):
    x = torch.randn(n, 9, generator=g)
    return x, F.softplus(x[:, 0] + x[:, 1] * x[:, 2]) + 0.1 * torch.randn(n, generator=g)


def train(model, x, y, epochs=6, micro=15, every=4):
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    acc = Accumulator(model.parameters(), opt, every)
    g = torch.Generator().manual_seed(2)
    for epoch in range(epochs):
        seen = 0.0
        for rows in torch.randperm(len(x), generator=g).split(micro):
            summed = F.mse_loss(model(x[rows]), y[rows], reduction="sum")
            acc.add(summed, len(rows))
            seen += summed.item()
        acc.flush()
        print(f"epoch {epoch} loss {seen / len(x):.4f} updates {acc.updates}")
    return acc


if __name__ == "__main__":
    torch.manual_seed(0)
    x, y = rainfall(250, torch.Generator().manual_seed(3))
    model = RainNet()
    acc = train(model, x, y)
