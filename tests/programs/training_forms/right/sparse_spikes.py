import torch
from functools import reduce
from torch import nn
from torch.nn import functional as F

torch.manual_seed(79)


class Activity:
    def __init__(self, blocks):
        self.levels = []
        self.handles = [block.register_forward_hook(self.note) for block in blocks]

    def note(self, block, inputs, output):
        self.levels.append(output.abs().mean())

    def collect(self):
        total = sum(self.levels)
        self.levels = []
        return total


class SpikeSorter(nn.Module):
    def __init__(self, samples=32, units=5, width=48):
        super().__init__()
        sizes = [samples, width, width]
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(a, b), nn.ReLU()) for a, b in zip(sizes, sizes[1:])
        )
        self.out = nn.Linear(width, units)

    def forward(self, wave):
        hidden = reduce(lambda h, block: block(h), self.blocks, wave)
        return self.out(hidden)


def spikes(n):
    t = torch.linspace(0, 1, 32)
    width = torch.tensor([0.05, 0.1, 0.15, 0.2, 0.3])
    unit = torch.randint(0, 5, (n,))
    shape = torch.exp(-(((t - 0.4) / width[unit, None]) ** 2))
    return shape - 0.4 * shape.roll(6, 1) + 0.15 * torch.randn(n, 32), unit


wave, unit = spikes(700)
sorter = SpikeSorter()
activity = Activity(sorter.blocks)
opt = torch.optim.Adam(sorter.parameters(), lr=3e-3)
for epoch in range(8):
    for w, u in zip(wave.split(70), unit.split(70)):
        logits = sorter(w)
        loss = F.cross_entropy(logits, u) + 0.5 * activity.collect()
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        first = sorter.blocks[0][0]
        silent = (F.linear(wave, first.weight, first.bias) <= 0).float().mean().item()
    print(f"epoch {epoch} loss {loss.item():.4f} share of silent cells {silent:.3f}")
