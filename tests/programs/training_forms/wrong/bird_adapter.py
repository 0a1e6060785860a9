import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(89)


class Adapted(nn.Module):
    def __init__(self, layer, rank=4):
        super().__init__()
        self.layer = layer
        self.down = nn.Parameter(torch.randn(rank, layer.in_features) * 0.1)
        self.up = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        return self.layer(x) + F.linear(F.linear(x, self.down), self.up)


def extend(trunk):
    for name, child in list(trunk.named_children()):
        if isinstance(child, nn.Linear):
            setattr(trunk, name, Adapted(child))


def calls(n, species, shift):
    label = torch.randint(0, species, (n,))
    tone = torch.linspace(-2, 2, species)[label] + shift
    axis = torch.linspace(-3, 3, 30)
    call = torch.exp(-((axis - tone[:, None]) ** 2)) + 0.3 * torch.cos(axis * (label[:, None] + 1) + shift)
    return call + 0.35 * torch.randn(n, 30), label


def fit(net, data, opt, epochs, name):
    for epoch in range(epochs):
        for x, y in zip(*(t.split(50) for t in data)):
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
    rate = (net(data[0]).argmax(1) == data[1]).float().mean()
    print(f"{name} loss {loss.item():.4f} accuracy {rate.item():.3f}")


trunk = nn.Sequential(nn.Linear(30, 32), nn.Tanh(), nn.Linear(32, 16), nn.Tanh())
first = nn.Sequential(trunk, nn.Linear(16, 3))
fit(first, calls(300, 3, 0.0), torch.optim.Adam(first.parameters(), lr=5e-3), 4, "source")

extend(trunk)
trunk.requires_grad_(False)
second = nn.Sequential(trunk, nn.Linear(16, 8))
tuner = torch.optim.AdamW(second.parameters(), lr=5e-3)
data = calls(500, 8, 0.7)
for round_ in range(3):
    fit(second, data, tuner, 4, f"target round {round_}")
print(f"size of the adapters {sum(p.norm().item() for n, p in second.named_parameters() if n.endswith('up')):.4f}")
