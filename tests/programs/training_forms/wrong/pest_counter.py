from functools import partial

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

torch.manual_seed(66)


def traps(n):
    x = torch.randn(n, 15)
    scores = torch.stack([x[:, :5].sum(1), x[:, 5:10].sum(1), x[:, 10:].sum(1)], 1)
    return x, (scores + 0.5 * torch.randn(n, 3)).argmax(1)


class Callback:
    def __init__(self, opt, build):
        self.plan = build(opt)
        self.log = []

    def on_epoch_end(self, report):
        self.log.append(report)
        self.plan.step(report["accuracy"])


def measure(net, x, y):
    with torch.no_grad():
        out = net(x)
    return {
        "loss": F.cross_entropy(out, y).item(),
        "accuracy": torch.mean((out.argmax(1) == y).float()).item(),
    }


def train(net, data, epochs, callbacks, opt):
    (x, y), (xv, yv) = data
    for e in range(epochs):
        for rows in torch.randperm(len(x)).split(50):
            opt.zero_grad()
            F.cross_entropy(net(x[rows]), y[rows]).backward()
            opt.step()
        report = measure(net, xv, yv)
        for c in callbacks:
            c.on_epoch_end(report)
        rate = opt.param_groups[0]["lr"]
        print(f"epoch {e}: " + ", ".join(f"{k} {v:.3f}" for k, v in report.items()), f"rate {rate:.4f}")


net = nn.Sequential(nn.Linear(15, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.5)
halve = partial(ReduceLROnPlateau, factor=0.5, patience=2)
train(net, (traps(400), traps(300)), 14, [Callback(opt, halve)], opt)
