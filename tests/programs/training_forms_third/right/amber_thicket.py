import math
from functools import partial

import torch
from torch import nn

torch.manual_seed(11)


def share(energy, axis):
    e = torch.exp(energy - energy.amax(dim=axis, keepdim=True))
    return torch.div(e, e.sum(dim=axis, keepdim=True))


class FramePooling(nn.Module):
    def __init__(self, width, hidden, axis):
        super().__init__()
        self.key = nn.Linear(width, hidden)
        self.query = nn.Parameter(torch.randn(hidden, 1) / math.sqrt(hidden))
        self.normalise = partial(share, axis=axis)

    def forward(self, frames):
        energy = torch.tanh(self.key(frames)) @ self.query
        alpha = self.normalise(energy)
        centre = (alpha * frames).sum(dim=1)
        return centre


class Recogniser(nn.Module):
    def __init__(self, mels=20, width=32, speakers=6):
        super().__init__()
        self.front = nn.Sequential(nn.Linear(mels, width), nn.GELU(), nn.Linear(width, width))
        self.pool = FramePooling(width, 16, axis=1)
        self.out = nn.Linear(width, speakers)

    def forward(self, x):
        return self.out(self.pool(self.front(x)))


def utterances(count, steps, generator):
    voice = torch.randn(6, 20, generator=torch.Generator().manual_seed(5))
    who = torch.randint(6, (count,), generator=generator)
    x = torch.randn(count, steps, 20, generator=generator)
    where = torch.rand(count, steps, 1, generator=generator) < 0.2
    return torch.where(where, x + 1.5 * voice[who].unsqueeze(1), x), who


gen = torch.Generator().manual_seed(3)
net = Recogniser()
opt = torch.optim.RMSprop(net.parameters(), lr=1e-3)
for it in range(120):
    x, who = utterances(24, 30, gen)
    loss = nn.functional.cross_entropy(net(x), who)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 30 == 29:
        print(f"iteration {it + 1}: loss {loss.item():.4f}")
with torch.no_grad():
    x, who = utterances(200, 30, gen)
    print("accuracy", (net(x).argmax(1) == who).float().mean().item())
