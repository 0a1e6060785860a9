import torch
from torch import nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.lin = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.relu(self.lin(self.norm(x)))


class Encoder(nn.Module):
    def __init__(self, inputs=12, width=24, depth=4, classes=4):
        super().__init__()
        self.stem = nn.Linear(inputs, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.out = nn.Linear(width, classes)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.out(x)


class DepthwiseRates:
    def __init__(self, model, decay=0.8):
        self.model, self.decay = model, decay

    def factors(self):
        n = len(self.model.blocks)
        for depth, block in enumerate(self.model.blocks):
            yield block, self.decay ** (n - depth - 1)
        yield self.model.stem, self.decay**n

    def start_epoch(self):
        self.model.train()
        for module, factor in self.factors():
            for p in module.parameters():
                p.register_hook(lambda grad, factor=factor: grad * factor)


def flowers(n, g):
    y = torch.randint(0, 4, (n,), generator=g)
    x = torch.randn(n, 12, generator=g)
    x[:, :2] += 2.0 * torch.stack([(y // 2) - 0.5, (y % 2) - 0.5], dim=-1)
    return x, y


def train(model, rates, x, y, epochs=10, lr=0.2):
    opt = torch.optim.SGD(model.parameters(), lr=lr)
    norms = []
    for epoch in range(epochs):
        rates.start_epoch()
        for xb, yb in zip(x.split(40), y.split(40)):
            loss = F.cross_entropy(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        norms.append([m.weight.grad.norm().item() for m in (model.stem, model.out)])
        print(f"epoch {epoch} loss {loss.item():.4f} stem {norms[-1][0]:.5f} out {norms[-1][1]:.5f}")
    return norms


if __name__ == "__main__":
    torch.manual_seed(0)
    x, y = flowers(400, torch.Generator().manual_seed(1))
    model = Encoder()
    norms = train(model, DepthwiseRates(model), x, y)
