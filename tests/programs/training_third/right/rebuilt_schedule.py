import math

import torch
from torch import nn
import torch.nn.functional as F


class GrowingNet(nn.Module):
    def __init__(self, inputs=10, width=12):
        super().__init__()
        self.inputs = nn.Linear(inputs, width)
        self.layers = nn.ModuleList([nn.Linear(width, width)])
        self.out = nn.Linear(width, 1)

    def grow(self):
        fresh = nn.Linear(self.out.in_features, self.out.in_features)
        nn.init.zeros_(fresh.weight)
        nn.init.zeros_(fresh.bias)
        self.layers.append(fresh)

    def forward(self, x):
        h = torch.tanh(self.inputs(x))
        for layer in self.layers:
            h = h + torch.tanh(layer(h))
        return self.out(h).squeeze(-1)


class Schedule:
    def __init__(self, total, warmup):
        self.total, self.warmup = total, warmup

    def __call__(self, step):
        if step < self.warmup:
            return (step + 1) / self.warmup
        return 0.5 * (1 + math.cos(math.pi * min(1.0, (step - self.warmup) / (self.total - self.warmup))))


class Grower:
    def __init__(self, model, schedule, lr=1e-2):
        self.model, self.schedule, self.lr, self.done = model, schedule, lr, 0
        self.rebuild()

    def rebuild(self):
        start = self.done
        self.opt = torch.optim.Adam(self.model.parameters(), lr=self.lr)
        self.sched = torch.optim.lr_scheduler.LambdaLR(self.opt, lambda k: self.schedule(start + k))

    def step(self, x, y):
        loss = F.mse_loss(self.model(x), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.sched.step()
        self.done += 1
        return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(2)
    x = torch.randn(320, 10, generator=g)
    y = torch.sin(x[:, 0] + x[:, 1]) + x[:, 2] * x[:, 3]
    worker = Grower(GrowingNet(), Schedule(total=90, warmup=10))
    for epoch in range(9):
        if epoch in (3, 6):
            worker.model.grow()
            worker.rebuild()
        for rows in torch.arange(320).split(32):
            loss = worker.step(x[rows], y[rows])
        print(f"epoch {epoch} loss {loss:.4f} lr {worker.opt.param_groups[0]['lr']:.5f} layers {len(worker.model.layers)}")
