"""MADE (Germain et al., 2015): an autoregressive density model of tiny binary images of bars."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(5)

SIDE, HIDDEN, FLIP = 4, 96, 0.08
DIM = SIDE * SIDE


def bars(n):
    """Every row (or, for half of the images, every column) is on or off; then some pixels flip."""
    lines = (torch.rand(n, SIDE, 1) < 0.5).float().expand(n, SIDE, SIDE)
    upright = (torch.rand(n, 1, 1) < 0.5)
    image = torch.where(upright, lines.transpose(1, 2), lines)
    flips = (torch.rand(n, SIDE, SIDE) < FLIP).float()
    return (image - flips).abs().reshape(n, DIM)


class MaskedLinear(nn.Linear):
    """A linear layer with only the connections of the mask: others start at zero and receive no gradient."""

    def __init__(self, degrees_in, degrees_out, strict=False):
        super().__init__(len(degrees_in), len(degrees_out))
        if strict:
            mask = degrees_out[:, None] > degrees_in[None, :]
        else:
            mask = degrees_out[:, None] >= degrees_in[None, :]
        self.register_buffer("mask", mask.float())
        with torch.no_grad():
            self.weight.mul_(self.mask)
        self.weight.register_hook(lambda grad: grad * self.mask)


class MADE(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        order = torch.arange(1, dim + 1)
        middle = [torch.randint(1, dim, (hidden,)) for _ in range(2)]
        self.fc1 = MaskedLinear(order, middle[0])
        self.fc2 = MaskedLinear(middle[0], middle[1])
        self.out = MaskedLinear(middle[1], order, strict=True)

    def forward(self, x):
        h = F.relu(self.fc1(x))
        h = F.relu(self.fc2(h))
        return self.out(h)

    def nll(self, x):
        return F.binary_cross_entropy_with_logits(self(x), x, reduction="none").sum(dim=1)

    @torch.no_grad()
    def sample(self, n):
        x = torch.zeros(n, DIM)
        for i in range(DIM):
            x[:, i] = torch.bernoulli(torch.sigmoid(self(x)[:, i]))
        return x


def init_weights(m):
    if isinstance(m, nn.Linear):
        nn.init.kaiming_uniform_(m.weight, nonlinearity="relu")
        nn.init.zeros_(m.bias)


def bar_score(x):
    """Share of pixels that agree with the nearest pattern of bars, in rows or in columns."""
    image = x.reshape(-1, SIDE, SIDE)
    agree = []
    for axis in (1, 2):
        ones = image.sum(dim=axis)
        agree.append(torch.maximum(ones, SIDE - ones).sum(dim=1) / DIM)
    return torch.maximum(*agree).mean().item()


train, test = bars(4000), bars(1000)
model = MADE(DIM, HIDDEN)
model.apply(init_weights)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=24)

for epoch in range(24):
    total = 0.0
    for batch in train[torch.randperm(len(train))].split(100):
        loss = model.nll(batch).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(batch)
    scheduler.step()
    if epoch % 8 == 7:
        print(f"epoch {epoch + 1:2d}  train nll {total / len(train):.3f} nats")

model.eval()
with torch.no_grad():
    test_nll = model.nll(test).mean().item()
samples = model.sample(1000)
print(f"test nll {test_nll:.3f} nats, {test_nll / DIM / math.log(2):.3f} bits per pixel")
print(f"agreement with bars: samples {bar_score(samples):.3f}, test images {bar_score(test):.3f}")
