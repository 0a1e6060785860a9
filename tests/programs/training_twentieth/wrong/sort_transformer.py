"""A transformer encoder written from scratch that learns to sort short digit sequences.

Training follows "Attention Is All You Need": Adam with betas (0.9, 0.98) and the warm-up / inverse-square-root rate.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 5
VOCAB, LENGTH = 10, 8
D_MODEL, HEADS, LAYERS = 48, 4, 2
STEPS, BATCH, WARMUP = 200, 64, 100

torch.manual_seed(SEED)


class SelfAttention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        b, t, d = x.shape
        qkv = self.qkv(x).view(b, t, 3, self.heads, d // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        att = (q @ k.transpose(-2, -1)) / math.sqrt(d // self.heads)
        out = att.softmax(dim=-1) @ v
        return self.proj(out.transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attn = SelfAttention(d_model, heads)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.ff(self.norm2(x))


class Sorter(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, D_MODEL)
        self.positions = nn.Parameter(0.02 * torch.randn(LENGTH, D_MODEL))
        self.blocks = nn.Sequential(*[Block(D_MODEL, HEADS) for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(D_MODEL)
        self.out = nn.Linear(D_MODEL, VOCAB)

    def forward(self, ids):
        return self.out(self.norm(self.blocks(self.tokens(ids) + self.positions)))


def noam_rate(step):
    step = max(step, 1)
    return D_MODEL ** -0.5 * min(step ** -0.5, step * WARMUP ** -1.5)


def make_batch(n):
    ids = torch.randint(0, VOCAB, (n, LENGTH))
    return ids, ids.sort(dim=1).values


@torch.no_grad()
def evaluate(model, n=500):
    model.eval()
    ids, target = make_batch(n)
    pred = model(ids).argmax(dim=-1)
    model.train()
    return (pred == target).float().mean().item(), (pred == target).all(dim=1).float().mean().item()


model = Sorter()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-9)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=noam_rate)

for step in range(1, STEPS + 1):
    ids, target = make_batch(BATCH)
    loss = F.cross_entropy(model(ids).flatten(0, 1), target.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 50 == 0:
        print(f"step {step}: loss {loss.item():.3f}")

token_acc, seq_acc = evaluate(model)
print(f"token accuracy {token_acc:.3f}, whole sequences right {seq_acc:.3f}")
