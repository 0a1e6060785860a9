"""Assignment 2: a transformer encoder from scratch that encrypts text with a Caesar cipher.

The first token of a line is the key, the rest is plain text; the model tags every position with the encrypted letter.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

LETTERS = 10
KEY_OFFSET = LETTERS          # tokens 10..19 are the keys
LINE = 16                     # key + 15 letters
DIM, HEADS, LAYERS = 48, 4, 2


def sample_lines(n, gen):
    key = torch.randint(0, LETTERS, (n, 1), generator=gen)
    text = torch.randint(0, LETTERS, (n, LINE - 1), generator=gen)
    cipher = (text + key) % LETTERS
    tokens = torch.cat([key + KEY_OFFSET, text], dim=1)
    tags = torch.cat([torch.full_like(key, -100), cipher], dim=1)  # nothing to predict for the key itself
    return tokens, tags


class MultiHeadAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        assert dim % heads == 0
        self.heads, self.head_dim = heads, dim // heads
        self.to_q = nn.Linear(dim, dim)
        self.to_k = nn.Linear(dim, dim)
        self.to_v = nn.Linear(dim, dim)
        self.out = nn.Linear(dim, dim)

    def split(self, x):
        # (batch, time, dim) -> (batch, heads, time, head_dim)
        return x.view(x.size(0), self.heads, -1, self.head_dim)

    def merge(self, x):
        return x.reshape(x.size(0), -1, self.heads * self.head_dim)

    def forward(self, x):
        q, k, v = self.split(self.to_q(x)), self.split(self.to_k(x)), self.split(self.to_v(x))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)
        return self.out(self.merge(scores.softmax(dim=-1) @ v))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = MultiHeadAttention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class CipherTagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(2 * LETTERS, DIM)
        self.position = nn.Parameter(0.02 * torch.randn(LINE, DIM))
        self.blocks = nn.Sequential(*[Block(DIM, HEADS) for _ in range(LAYERS)])
        self.head = nn.Sequential(nn.LayerNorm(DIM), nn.Linear(DIM, LETTERS))

    def forward(self, tokens):
        return self.head(self.blocks(self.token(tokens) + self.position))


@torch.no_grad()
def tag_accuracy(model, tokens, tags):
    model.eval()
    keep = tags != -100
    hits = (model(tokens).argmax(-1) == tags)[keep].float().mean().item()
    model.train()
    return hits


def main(steps=200, batch=32):
    torch.manual_seed(21)
    gen = torch.Generator().manual_seed(22)
    model = CipherTagger()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 30))
    dev_tokens, dev_tags = sample_lines(400, gen)
    accuracy = 0.0
    for step in range(1, steps + 1):
        tokens, tags = sample_lines(batch, gen)
        loss = F.cross_entropy(model(tokens).flatten(0, 1), tags.flatten(), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            accuracy = tag_accuracy(model, dev_tokens, dev_tags)
            print(f"step {step:3d}  loss {loss.item():.3f}  dev accuracy {accuracy:.3f}")
    return model, accuracy


if __name__ == "__main__":
    model, accuracy = main()
