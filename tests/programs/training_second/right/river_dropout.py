from functools import partial

import torch
from torch import nn

torch.manual_seed(181)


def block(inputs, outputs, rate):
    return nn.Sequential(nn.Linear(inputs, outputs), nn.SiLU(), nn.Dropout(rate))


class RiverLevel(nn.Module):
    def __init__(self, inputs, hidden=48, rate=0.1):
        super().__init__()
        layer = partial(block, rate=rate)
        self.net = nn.Sequential(layer(inputs, hidden), layer(hidden, hidden), nn.Linear(hidden, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


def switch_dropout(model, active):
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.train(active)


@torch.no_grad()
def predictive(model, x, draws=30):
    model.eval()
    switch_dropout(model, True)
    samples = torch.stack([model(x) for _ in range(draws)])
    switch_dropout(model, False)
    return samples.mean(0), samples.std(0)


def gauges(n, low=-1.0, high=1.0):
    x = torch.rand(n, 3) * (high - low) + low
    level = torch.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2]
    return x, level + 0.05 * torch.randn(n)


x, y = gauges(400)
model = RiverLevel(3)
optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3, weight_decay=1e-4)
for epoch in range(10):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x)).split(40):
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    if epoch % 3 == 0:
        print(f"epoch {epoch} loss {total / len(x):.4f}")

near, level = gauges(100)
far, _ = gauges(100, low=2.0, high=3.0)
mean, spread = predictive(model, near)
_, far_spread = predictive(model, far)
print(f"rmse {(mean - level).square().mean().sqrt():.4f} spread {spread.mean():.4f} far away {far_spread.mean():.4f}")
