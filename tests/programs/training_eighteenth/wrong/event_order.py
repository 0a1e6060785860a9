"""Which event came first? A small transformer with parameter groups, on synthetic event logs.

Each log has 10 events from 20 kinds; events A and B both occur once. Label: A happened before B.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

KINDS, LENGTH, A, B = 20, 10, 0, 1


def logs(n, gen):
    x = torch.randint(2, KINDS, (n, LENGTH), generator=gen)
    where = torch.rand(n, LENGTH, generator=gen).argsort(1)[:, :2]
    rows = torch.arange(n)
    x[rows, where[:, 0]] = A
    x[rows, where[:, 1]] = B
    return x, (where[:, 0] < where[:, 1]).long()


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        n, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        att = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, t, d)
        x = x + self.out(att)
        return x + self.mlp(self.norm2(x))


class EventModel(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.token = nn.Embedding(KINDS, dim)
        self.position = nn.Parameter(torch.zeros(1, LENGTH, dim))
        self.blocks = nn.Sequential(Block(dim, 4))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, 2)

    def forward(self, x):
        h = self.blocks(self.token(x) + self.position)
        return self.head(self.norm(h).mean(1))


def param_groups(model, lr, weight_decay):
    """Weight matrices decay; embeddings, norms and biases don't."""
    decay, plain = [], []
    for module in model.modules():
        if isinstance(module, nn.Linear):
            decay.append(module.weight)
            plain.append(module.bias)
        elif isinstance(module, (nn.LayerNorm, nn.Embedding)):
            plain.extend(module.parameters(recurse=False))
    return [
        {"params": decay, "lr": lr, "weight_decay": weight_decay},
        {"params": plain, "lr": lr, "weight_decay": 0.0},
    ]


class Trainer:
    def __init__(self, model, lr=3e-3, weight_decay=0.02, epochs=10, batch=50):
        self.model, self.epochs, self.batch = model, epochs, batch
        self.optimizer = torch.optim.AdamW(param_groups(model, lr, weight_decay))

    def fit(self, x, y):
        total = self.epochs * math.ceil(len(x) / self.batch)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, [g["lr"] for g in self.optimizer.param_groups], total_steps=total)
        for epoch in range(self.epochs):
            self.model.train()
            running = 0.0
            for idx in torch.randperm(len(x)).split(self.batch):
                loss = F.cross_entropy(self.model(x[idx]), y[idx])
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                schedule.step()
                running += loss.item() * len(idx)
            if epoch % 2:
                print(f"epoch {epoch + 1}: loss {running / len(x):.4f}")

    @torch.no_grad()
    def score(self, x, y):
        self.model.eval()
        return (self.model(x).argmax(1) == y).float().mean().item()


torch.manual_seed(11)
gen = torch.Generator().manual_seed(5)
train, test = logs(2000, gen), logs(1000, gen)
trainer = Trainer(EventModel())
print("parameters:", sum(p.numel() for p in trainer.model.parameters()))
trainer.fit(*train)
print(f"test accuracy {trainer.score(*test):.3f}")
