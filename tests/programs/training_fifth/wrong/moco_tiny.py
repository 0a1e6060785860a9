"""MoCo on toy 'views' of spectra: query encoder, momentum encoder and a queue of negatives."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(12)

CLASSES, BINS = 6, 40
templates = torch.randn(CLASSES, BINS)


def spectra(n):
    label = torch.randint(CLASSES, (n,))
    return templates[label] + 0.6 * torch.randn(n, BINS), label


def augment(x):
    gain = 1 + 0.3 * torch.randn(len(x), 1)
    drop = (torch.rand_like(x) > 0.3).float()
    return gain * x * drop + 0.4 * torch.randn_like(x)


class Encoder(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(BINS, 64), nn.ReLU(), nn.Linear(64, dim))

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


class MoCo:
    def __init__(self, dim=16, size=256, momentum=0.98, temperature=0.1):
        self.query = Encoder(dim)
        self.key = copy.deepcopy(self.query)
        for p in self.key.parameters():
            p.requires_grad_(False)
        self.queue = F.normalize(torch.randn(size, dim), dim=1)
        self.ptr = 0
        self.m = momentum
        self.t = temperature

    @torch.no_grad()
    def update_key(self):
        for k, q in zip(self.key.parameters(), self.query.parameters()):
            k = self.m * k + (1 - self.m) * q

    @torch.no_grad()
    def enqueue(self, keys):
        n = len(keys)
        self.queue[self.ptr:self.ptr + n] = keys
        self.ptr = (self.ptr + n) % len(self.queue)

    def loss(self, x):
        q = self.query(augment(x))
        with torch.no_grad():
            k = self.key(augment(x))
        positive = (q * k).sum(1, keepdim=True)
        negative = q @ self.queue.clone().t()
        logits = torch.cat([positive, negative], dim=1) / self.t
        loss = F.cross_entropy(logits, torch.zeros(len(x), dtype=torch.long))
        self.enqueue(k)
        return loss


def probe(encoder, steps=60):
    (x, y), (xt, yt) = spectra(300), spectra(600)
    with torch.no_grad():
        z, zt = encoder(x), encoder(xt)
    head = nn.Linear(z.shape[1], CLASSES)
    opt = torch.optim.Adam(head.parameters(), lr=0.05)
    for _ in range(steps):
        opt.zero_grad()
        F.cross_entropy(head(z), y).backward()
        opt.step()
    return (head(zt).argmax(1) == yt).float().mean().item()


moco = MoCo()
optimizer = torch.optim.SGD(moco.query.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
for step in range(400):
    x, _ = spectra(64)
    loss = moco.loss(x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    moco.update_key()
    if (step + 1) % 100 == 0:
        print(f"step {step + 1}  loss {loss.item():.3f}")

with torch.no_grad():
    sample, _ = spectra(500)
    agreement = (moco.query(sample) * moco.key(sample)).sum(1).mean().item()
print(f"query/key agreement {agreement:.3f}")
print(f"linear probe: query {probe(moco.query):.3f}, key {probe(moco.key):.3f}")
