"""SimCLR-style pretraining on accelerometer snippets, followed by a linear probe for the activity."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

LENGTH, AXES, ACTIVITIES = 96, 3, 5


def record(n, generator):
    """Gait cycles: the activity sets harmonics per axis, the wearer sets offset, scale and phase."""
    shape = torch.Generator().manual_seed(77)
    harmonics = 0.7 * torch.randn(ACTIVITIES, AXES, 3, generator=shape)
    label = torch.randint(ACTIVITIES, (n,), generator=generator)
    t = torch.arange(LENGTH) / LENGTH * 2 * math.pi
    phase = 2 * math.pi * torch.rand(n, 1, 1, 1, generator=generator)
    order = torch.arange(1, 4).view(1, 1, 3, 1)
    own = harmonics[label] + 0.25 * torch.randn(n, AXES, 3, generator=generator)
    wave = (own.unsqueeze(-1) * torch.sin(order * (2 * t + phase))).sum(2)
    scale = 0.6 + 0.8 * torch.rand(n, AXES, 1, generator=generator)
    offset = 0.8 * torch.randn(n, AXES, 1, generator=generator)
    return scale * wave + offset + 0.2 * torch.randn(n, AXES, LENGTH, generator=generator), label


class Augment:
    """Random shift in time, gain, mounting offset and sensor noise; reproducible for a given sample and epoch."""

    def __init__(self, seed):
        self.seed, self.epoch = seed, 0

    def __call__(self, x, index):
        g = torch.Generator().manual_seed(self.seed + 100_003 * self.epoch + index)
        shift = int(torch.randint(LENGTH, (1,), generator=g))
        gain = 0.7 + 0.6 * torch.rand(AXES, 1, generator=g)
        offset = 0.8 * torch.randn(AXES, 1, generator=g)
        noise = 0.2 * torch.randn(AXES, LENGTH, generator=g)
        return gain * torch.roll(x, shift, dims=-1) + offset + noise


class TwinViews(Dataset):
    def __init__(self, wave, augment):
        self.wave, self.augment = wave, augment

    def __len__(self):
        return len(self.wave)

    def __getitem__(self, i):
        return self.augment(self.wave[i], i), self.augment(self.wave[i], i)


class Encoder(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv1d(AXES, width, 9, stride=2, padding=4), nn.ReLU(),
            nn.Conv1d(width, width, 9, stride=2, padding=4), nn.ReLU(),
        )
        self.project = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 16))

    def features(self, x):
        return self.trunk(x).mean(-1)

    def forward(self, x):
        return F.normalize(self.project(self.features(x)), dim=1)


def nt_xent(a, b, temperature=0.2):
    z = torch.cat([a, b])
    n = len(a)
    logits = z @ z.T / temperature
    logits = logits.masked_fill(torch.eye(2 * n, dtype=torch.bool), float("-inf"))
    partner = torch.arange(2 * n).roll(n)
    return F.cross_entropy(logits, partner)


def probe(encoder, train, test, steps=150):
    with torch.no_grad():
        f_train, f_test = encoder.features(train[0]), encoder.features(test[0])
    head = nn.Linear(f_train.shape[1], ACTIVITIES)
    opt = torch.optim.Adam(head.parameters(), lr=0.03)
    for _ in range(steps):
        opt.zero_grad()
        F.cross_entropy(head(f_train), train[1]).backward()
        opt.step()
    return head(f_test).argmax(1).eq(test[1]).float().mean().item()


torch.manual_seed(0)
data_gen = torch.Generator().manual_seed(42)
unlabeled, _ = record(640, data_gen)
few, held_out = record(60, data_gen), record(500, data_gen)
twins = TwinViews(unlabeled, Augment(seed=9))
loader = DataLoader(twins, batch_size=64, shuffle=True, drop_last=True)
encoder = Encoder()
optimizer = torch.optim.Adam(encoder.parameters(), lr=2e-3)
for epoch in range(14):
    twins.augment.epoch = epoch
    losses = []
    for first, second in loader:
        loss = nt_xent(encoder(first), encoder(second))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if epoch % 4 == 1:
        print(f"epoch {epoch:2d}  contrastive loss {sum(losses) / len(losses):.3f}")
score = probe(encoder, few, held_out)
print(f"linear probe accuracy {score:.3f}")
