import torch
from torch import nn
import torch.nn.functional as F


class TrendNet(nn.Module):
    def __init__(self, length=16, width=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(length, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, x):
        return self.body(x).squeeze(-1)


class SmoothedMeter:
    def __init__(self, momentum=0.95):
        self.momentum = momentum
        self.value = None

    def add(self, x):
        self.value = x if self.value is None else self.momentum * self.value + (1 - self.momentum) * x

    def __str__(self):
        return f"{float(self.value.detach()):.4f}"


class Monitor:
    def __init__(self, keys):
        self.meters = {k: SmoothedMeter() for k in keys}

    def record(self, **values):
        for k, v in values.items():
            self.meters[k].add(v)

    def line(self):
        return " ".join(f"{k} {m}" for k, m in self.meters.items())


def walks(n, length, g):
    drift = torch.randn(n, 1, generator=g) * 0.2
    path = torch.cumsum(drift + 0.3 * torch.randn(n, length, generator=g), dim=1)
    return path, path[:, -1] + drift[:, 0]


def fit(model, x, y, epochs=6, batch=32):
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    monitor = Monitor(["loss", "smooth", "slack"])
    for epoch in range(epochs):
        for xb, yb in zip(x.split(batch), y.split(batch)):
            out = model(xb)
            smooth = F.huber_loss(out, yb)
            slack = (out - yb).abs().amax()
            loss = smooth + 0.01 * slack
            opt.zero_grad()
            loss.backward()
            opt.step()
            monitor.record(loss=loss, smooth=smooth, slack=slack)
        print(f"epoch {epoch} {monitor.line()}")
    return monitor


if __name__ == "__main__":
    torch.manual_seed(0)
    x, y = walks(320, 16, torch.Generator().manual_seed(2))
    model = TrendNet()
    monitor = fit(model, x, y)
