import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class FeatureQueue(nn.Module):
    def __init__(self, dim, size):
        super().__init__()
        self.register_buffer("bank", F.normalize(torch.randn(size, dim), dim=1))
        self.ptr = 0

    def negatives(self):
        return self.bank.detach().t()

    @torch.no_grad()
    def push(self, keys):
        n = keys.shape[0]
        self.bank[self.ptr : self.ptr + n] = keys
        self.ptr = (self.ptr + n) % self.bank.shape[0]


class MoCo(nn.Module):
    def __init__(self, n_in=12, dim=8, size=128, momentum=0.95, temperature=0.2):
        super().__init__()
        self.query = nn.Sequential(nn.Linear(n_in, 32), nn.ReLU(), nn.Linear(32, dim))
        self.key = copy.deepcopy(self.query).requires_grad_(False)
        self.queue = FeatureQueue(dim, size)
        self.momentum = momentum
        self.temperature = temperature

    @torch.no_grad()
    def update_key(self):
        for k, q in zip(self.key.parameters(), self.query.parameters()):
            k.lerp_(q, 1 - self.momentum)

    def forward(self, view_q, view_k):
        q = F.normalize(self.query(view_q), dim=1)
        with torch.no_grad():
            self.update_key()
            k = F.normalize(self.key(view_k), dim=1)
        pos = (q * k).sum(1, keepdim=True)
        neg = q @ self.queue.negatives()
        logits = torch.cat([pos, neg], dim=1) / self.temperature
        self.queue.push(k)
        return logits


def augment(x):
    return x + 0.2 * torch.randn_like(x)


def loader(steps, batch, dim, gen):
    centers = torch.randn(10, dim, generator=gen)
    for _ in range(steps):
        idx = torch.randint(0, 10, (batch,), generator=gen)
        yield 2 * centers[idx] + torch.randn(batch, dim, generator=gen)


def train(steps=40):
    torch.manual_seed(13)
    model = MoCo()
    opt = torch.optim.SGD(model.query.parameters(), lr=0.1, momentum=0.9)
    gen = torch.Generator().manual_seed(2)
    labels = torch.zeros(32, dtype=torch.long)
    for step, x in enumerate(loader(steps, 32, 12, gen)):
        logits = model(augment(x), augment(x))
        loss = F.cross_entropy(logits, labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 8 == 7:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    train()
