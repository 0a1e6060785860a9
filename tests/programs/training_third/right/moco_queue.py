import copy

import torch
from torch import nn
import torch.nn.functional as F


class ContrastiveQueue(nn.Module):
    def __init__(self, inputs=16, dim=8, size=128, momentum=0.95, temperature=0.2):
        super().__init__()
        self.query = nn.Sequential(nn.Linear(inputs, 32), nn.ReLU(), nn.Linear(32, dim))
        self.key = copy.deepcopy(self.query).requires_grad_(False)
        self.momentum, self.temperature = momentum, temperature
        self.register_buffer("queue", F.normalize(torch.randn(size, dim), dim=-1))
        self.cursor = 0

    @torch.no_grad()
    def follow(self):
        for k, q in zip(self.key.parameters(), self.query.parameters()):
            k.data = k.data * self.momentum + q.data * (1 - self.momentum)

    @torch.no_grad()
    def encode_keys(self, view):
        return F.normalize(self.key(view), dim=-1)

    @torch.no_grad()
    def push(self, keys):
        slots = (self.cursor + torch.arange(len(keys))) % len(self.queue)
        self.queue[slots] = keys
        self.cursor = (self.cursor + len(keys)) % len(self.queue)

    def forward(self, a, b):
        q = F.normalize(self.query(a), dim=-1)
        self.follow()
        k = self.encode_keys(b)
        positive = (q * k).sum(-1, keepdim=True)
        negative = q @ self.queue.clone().t()
        self.push(k)
        logits = torch.cat([positive, negative], 1) / self.temperature
        return F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long))


def views(x, g):
    return tuple(x + 0.3 * torch.randn(x.shape, generator=g) for _ in range(2))


def pretrain(model, data, epochs=5):
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    g = torch.Generator().manual_seed(4)
    for epoch in range(epochs):
        for idx in torch.randperm(len(data), generator=g).split(32):
            loss = model(*views(data[idx], g))
            opt.zero_grad()
            loss.backward()
            opt.step()
        gap = sum((k - q).norm().item() for k, q in zip(model.key.parameters(), model.query.parameters()))
        print(f"epoch {epoch} loss {loss.item():.4f} key distance {gap:.3f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    data = torch.randn(12, 16)[torch.randint(0, 12, (384,))] + 0.3 * torch.randn(384, 16)
    pretrain(ContrastiveQueue(), data)
