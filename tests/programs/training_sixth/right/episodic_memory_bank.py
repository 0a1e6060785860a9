"""Metric learning with a cross-batch memory; entries are constants and are written without a graph."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class CrossBatchMemory:
    def __init__(self, size, dim):
        self.feats = torch.zeros(size, dim)
        self.labels = torch.full((size,), -1, dtype=torch.long)
        self.cursor = 0
        self.full = False

    @torch.no_grad()
    def push(self, feats, labels):
        n = feats.size(0)
        slots = (torch.arange(n) + self.cursor) % self.feats.size(0)
        self.feats.index_copy_(0, slots, feats)
        self.labels[slots] = labels
        self.full = self.full or self.cursor + n >= self.feats.size(0)
        self.cursor = (self.cursor + n) % self.feats.size(0)

    def get(self):
        end = self.feats.size(0) if self.full else self.cursor
        return self.feats[:end], self.labels[:end]


class Embedder(nn.Module):
    def __init__(self, in_dim=40, hidden=64, dim=12):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(in_dim, hidden), nn.ReLU(), nn.Linear(hidden, dim))

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


def contrastive(query, query_y, key, key_y, margin=0.4, exclude_self=False):
    sim = query @ key.t()
    same = query_y[:, None] == key_y[None]
    positive = same.clone()
    if exclude_self:
        positive.fill_diagonal_(False)
    pos = ((1 - sim) * positive).sum() / positive.sum().clamp(min=1)
    hard = ~same & (sim > margin)
    neg = ((sim - margin) * hard).sum() / hard.sum().clamp(min=1)
    return pos + neg


def recall_at_1(model, x, y):
    model.eval()
    with torch.no_grad():
        z = model(x)
    model.train()
    sim = (z @ z.t()).fill_diagonal_(-2)
    return (y[sim.argmax(1)] == y).float().mean().item()


torch.manual_seed(16)
centers = torch.randn(20, 8)
lift = torch.randn(8, 40)
nuisance = torch.randn(10, 40)


def sample(n, classes):
    y = classes[torch.randint(0, classes.numel(), (n,))]
    x = (centers[y] + 0.3 * torch.randn(n, 8)) @ lift
    return x + 1.5 * torch.randn(n, 10) @ nuisance, y


train_x, train_y = sample(1500, torch.arange(0, 14))
test_x, test_y = sample(400, torch.arange(14, 20))
model = Embedder()
memory = CrossBatchMemory(512, 12)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
start_memory = 50
for step in range(400):
    idx = torch.randint(0, train_x.size(0), (48,))
    z, y = model(train_x[idx]), train_y[idx]
    loss = contrastive(z, y, z, y, exclude_self=True)
    if step >= start_memory:
        keys, key_y = memory.get()
        loss = loss + contrastive(z, y, keys.clone(), key_y)
    memory.push(z.detach(), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        print(f"step {step} loss {loss.item():.3f} recall@1 {recall_at_1(model, test_x, test_y):.3f}")
