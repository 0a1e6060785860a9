import math

import torch
from torch import nn
from torch.autograd import Function

torch.manual_seed(14)


class FusedSwish(Function):
    @staticmethod
    def forward(ctx, x):
        gate = torch.sigmoid(x)
        ctx.save_for_backward(x, gate)
        return x * gate

    @staticmethod
    def backward(ctx, grad_output):
        x, gate = ctx.saved_tensors
        return gate * (1 + x * (1 - gate))


class Swish(nn.Module):
    def forward(self, x):
        return FusedSwish.apply(x)


class DragNet(nn.Module):
    def __init__(self, inputs, hidden=32):
        super().__init__()
        self.stem = nn.Linear(inputs, hidden)
        self.block = nn.Sequential(nn.LayerNorm(hidden), nn.Linear(hidden, hidden), Swish())
        self.head = nn.Linear(hidden, 1)
        self.act = Swish()

    def forward(self, x):
        h = self.act(self.stem(x))
        h = h + self.block(h)
        return self.head(h).squeeze(-1)


def hulls(n):
    x = torch.rand(n, 5) * 2 - 1
    drag = torch.exp(1.2 * x[:, 0]) - x[:, 1] * x[:, 2] + 0.4 * torch.cos(3 * x[:, 3])
    return x, drag + 0.02 * torch.randn(n)


train_x, train_y = hulls(400)
test_x, test_y = hulls(200)
mean, std = train_y.mean(), train_y.std()
train_y = (train_y - mean) / std
model = DragNet(5)
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-4)
epochs, batch = 12, 40

for epoch in range(epochs):
    for group in optimizer.param_groups:
        group["lr"] = 4e-3 * 0.5 * (1 + math.cos(math.pi * epoch / epochs))
    permutation = torch.randperm(len(train_x))
    total = 0.0
    for rows in permutation.split(batch):
        residual = model(train_x[rows]) - train_y[rows]
        loss = residual.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    if epoch % 3 == 0 or epoch == epochs - 1:
        print(f"epoch {epoch:2d} mse {total / len(train_x):.4f}")

with torch.no_grad():
    estimate = model(test_x) * std + mean
print(f"test r2 {1 - (estimate - test_y).square().mean() / test_y.var():.4f}")
