"""A from-scratch transformer with ALBERT-style sharing: one block is applied DEPTH times, and the
output layer uses the embedding matrix. Task: print a random sequence of digits in sorted order."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)

VOCAB = 10
LENGTH = 8
DEPTH = 3
STEPS = 320


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (z.view(b, t, self.heads, d // self.heads).transpose(1, 2) for z in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.heads)
        mixed = scores.softmax(dim=-1) @ v
        return self.proj(mixed.transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = SelfAttention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class SharedTransformer(nn.Module):
    def __init__(self, dim=48, heads=4):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.position = nn.Parameter(0.1 * torch.randn(LENGTH, dim))
        self.layers = nn.ModuleList([Block(dim, heads)] * DEPTH)
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, VOCAB, bias=False)
        nn.init.normal_(self.embed.weight, std=dim ** -0.5)
        self.out.weight = self.embed.weight

    def forward(self, tokens):
        x = self.embed(tokens) * math.sqrt(self.embed.embedding_dim) + self.position
        for layer in self.layers:
            x = layer(x)
        return self.out(self.norm(x))


def parameter_groups(model, decay=0.01):
    """Weight decay only for matrices; tied and shared tensors come up once in parameters()."""
    params = list(model.parameters())
    return [
        {"params": [p for p in params if p.dim() >= 2], "weight_decay": decay},
        {"params": [p for p in params if p.dim() < 2], "weight_decay": 0.0},
    ]


def batch(n):
    tokens = torch.randint(VOCAB, (n, LENGTH))
    return tokens, tokens.sort(dim=1).values


model = SharedTransformer()
optimizer = torch.optim.AdamW(parameter_groups(model), lr=2e-3)
print("distinct parameters:", sum(p.numel() for p in model.parameters()))

for step in range(1, STEPS + 1):
    tokens, target = batch(64)
    loss = F.cross_entropy(model(tokens).transpose(1, 2), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 80 == 0:
        print(f"step {step}: loss {loss.item():.4f}")

model.eval()
with torch.no_grad():
    tokens, target = batch(500)
    guess = model(tokens).argmax(-1)
print(f"digit accuracy {(guess == target).float().mean():.3f}, whole rows {(guess == target).all(1).float().mean():.3f}")
