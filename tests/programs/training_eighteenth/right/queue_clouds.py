"""Momentum contrast (He et al. 2020) in small: features of point clouds without labels, from a slowly moving key encoder."""
import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
KINDS, POINTS, FEATURES, QUEUE, BATCH, STEPS = 5, 40, 32, 512, 64, 180
MOMENTUM, TEMPERATURE = 0.98, 0.1


def clouds(n):
    """Rings, boxes, crosses, spirals and balls of random proportions."""
    kind = torch.randint(KINDS, (n,))
    u, v = torch.rand(n, POINTS), 2 * torch.rand(n, POINTS) - 1
    angle = 6.2832 * u
    ring = torch.stack([torch.cos(angle), torch.sin(angle), 0 * u], -1)
    box = (2 * torch.rand(n, POINTS, 3) - 1).sign() * torch.tensor([0.8, 0.8, 0.8])
    arm = F.one_hot(torch.randint(3, (n, POINTS)), 3).float()
    cross = arm * v[..., None]
    spiral = torch.stack([u * torch.cos(2 * angle), u * torch.sin(2 * angle), 2 * u - 1], -1)
    ball = F.normalize(torch.randn(n, POINTS, 3), dim=-1) * u[..., None] ** (1 / 3)
    shape = torch.stack([ring, box, cross, spiral, ball], 1)[torch.arange(n), kind]
    return shape * (0.7 + 0.6 * torch.rand(n, 1, 3)), kind


def augment(x):
    """Turn about the vertical axis, jitter, and a random third of the points."""
    a = 6.2832 * torch.rand(len(x))
    c, s, z, o = torch.cos(a), torch.sin(a), torch.zeros_like(a), torch.ones_like(a)
    turn = torch.stack([c, -s, z, s, c, z, z, z, o], -1).view(-1, 3, 3)
    keep = torch.rand(x.shape[:2]).argsort(dim=1)[:, : POINTS // 3]
    x = x.gather(1, keep[..., None].expand(-1, -1, 3))
    return x @ turn + 0.1 * torch.randn_like(x)


class PointEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.point = nn.Sequential(nn.Linear(3, 48), nn.ReLU(), nn.Linear(48, 64), nn.LayerNorm(64), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, FEATURES))

    def embed(self, x):
        h = self.point(x)
        return torch.cat([h.amax(dim=1), h.mean(dim=1)], dim=-1)

    def forward(self, x):
        return F.normalize(self.head(self.embed(x)), dim=-1)


class MoCo(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = PointEncoder()
        self.key = copy.deepcopy(self.query).requires_grad_(False)
        self.register_buffer("queue", F.normalize(torch.randn(QUEUE, FEATURES), dim=-1))
        self.head = 0

    @torch.no_grad()
    def follow(self):
        for k, q in zip(self.key.parameters(), self.query.parameters()):
            k.lerp_(q, 1 - MOMENTUM)

    @torch.no_grad()
    def enqueue(self, keys):
        self.queue[self.head:self.head + len(keys)] = keys
        self.head = (self.head + len(keys)) % QUEUE

    def loss(self, a, b):
        q = self.query(a)
        with torch.no_grad():
            self.follow()
            k = self.key(b)
        positive = (q * k).sum(-1, keepdim=True)
        negative = q @ self.queue.clone().T
        logits = torch.cat([positive, negative], dim=1) / TEMPERATURE
        loss = F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long))
        self.enqueue(k)
        return loss


@torch.no_grad()
def neighbour_accuracy(encoder, bank, test):
    a = F.normalize(encoder.embed(augment(bank[0])), dim=-1)
    b = F.normalize(encoder.embed(augment(test[0])), dim=-1)
    return (bank[1][(b @ a.T).argmax(1)] == test[1]).float().mean().item()


def main():
    bank, test = clouds(25), clouds(1000)
    model = MoCo()
    before = neighbour_accuracy(model.query, bank, test)
    opt = torch.optim.AdamW(model.query.parameters(), lr=2e-3, weight_decay=1e-4)
    for step in range(STEPS):
        x, _ = clouds(BATCH)
        loss = model.loss(augment(x), augment(x))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 45 == 0:
            print(f"step {step:4d}  loss {loss.item():.3f}")
    after = neighbour_accuracy(model.query, bank, test)
    print(f"nearest-neighbour accuracy: random encoder {before:.3f}, trained {after:.3f}")
    return model, before, after


if __name__ == "__main__":
    model, before, after = main()
