"""MoCo-style contrastive learning on rock spectra, with shuffled key batches (He et al., 2020, section 3.3)."""
import copy
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

BANDS, KINDS = 32, 6


@dataclass
class Settings:
    dim: int = 16
    queue: int = 512
    momentum: float = 0.98
    temperature: float = 0.2
    groups: int = 4  # batch norm sees one group at a time, as it would on several devices
    batch: int = 64
    epochs: int = 10
    lr: float = 0.05


class Encoder(nn.Module):
    def __init__(self, dim, groups):
        super().__init__()
        self.groups = groups
        self.trunk = nn.Sequential(nn.Linear(BANDS, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, dim))

    def forward(self, x):
        parts = [self.head(self.trunk(part)) for part in x.chunk(self.groups)]
        return F.normalize(torch.cat(parts), dim=1)


class MoCo(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.s = s
        self.query = Encoder(s.dim, s.groups)
        self.key = copy.deepcopy(self.query).requires_grad_(False)
        self.register_buffer("queue", F.normalize(torch.randn(s.queue, s.dim), dim=1))
        self.register_buffer("pointer", torch.zeros((), dtype=torch.long))

    @torch.no_grad()
    def update_key(self):
        for k, q in zip(self.key.parameters(), self.query.parameters()):
            k.lerp_(q, 1 - self.s.momentum)

    @torch.no_grad()
    def encode_keys(self, x):
        order = torch.randperm(len(x))
        return self.key(x[order])[order.argsort()]

    @torch.no_grad()
    def enqueue(self, keys):
        slots = (self.pointer + torch.arange(len(keys))) % len(self.queue)
        self.queue[slots] = keys
        self.pointer.fill_(int(slots[-1] + 1) % len(self.queue))

    def forward(self, a, b):
        q = self.query(a)
        self.update_key()
        k = self.encode_keys(b)
        positive = (q * k).sum(dim=1, keepdim=True)
        negative = q @ self.queue.clone().t()
        logits = torch.cat([positive, negative], dim=1) / self.s.temperature
        target = torch.zeros(len(q), dtype=torch.long)
        loss = F.cross_entropy(logits, target)
        self.enqueue(k)
        return loss, (logits.argmax(dim=1) == target).float().mean()


def spectra(n, g):
    kind = torch.randint(0, KINDS, (n,), generator=g)
    wave = torch.linspace(0, 6.28, BANDS)
    shape = torch.sin((1 + kind[:, None] % 3) * wave + 1.5 * (kind[:, None] // 3))
    return shape + 1.2 * torch.randn(n, BANDS, generator=g), kind


def augment(x):
    gain = 0.7 + 0.6 * torch.rand(len(x), 1)
    return gain * x * (torch.rand_like(x) > 0.15) + 0.6 * torch.randn_like(x)


@torch.no_grad()
def knn_accuracy(encoder, train, test, k=15):
    encoder.eval()
    bank, found = encoder.trunk(train[0]), encoder.trunk(test[0])
    votes = train[1][torch.cdist(found, bank).topk(k, largest=False).indices]
    encoder.train()
    return (votes.mode(dim=1).values == test[1]).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(17)
    g = torch.Generator().manual_seed(18)
    settings, train, test = Settings(), spectra(2048, g), spectra(500, g)
    model = MoCo(settings)
    optimizer = torch.optim.SGD(model.query.parameters(), lr=settings.lr, momentum=0.9, weight_decay=1e-4)
    start = knn_accuracy(model.query, train, test)
    for epoch in range(settings.epochs):
        for idx in torch.randperm(len(train[0])).split(settings.batch):
            loss, top1 = model(augment(train[0][idx]), augment(train[0][idx]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch:2d}  loss {loss.item():.3f}  top-1 {top1.item():.2f}")
    end = knn_accuracy(model.query, train, test)
    print(f"kNN accuracy: random encoder {start:.3f}, trained {end:.3f}")
