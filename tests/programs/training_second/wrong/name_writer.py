import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class CausalAttention(nn.Module):
    def __init__(self, dim, heads, context):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(dim, dim, bias=False)
        self.key = nn.Linear(dim, dim, bias=False)
        self.value = nn.Linear(dim, dim, bias=False)
        self.proj = nn.Linear(dim, dim)
        self.register_buffer("mask", torch.tril(torch.ones(context, context)))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (f(x).view(b, t, self.heads, -1).transpose(1, 2) for f in (self.query, self.key, self.value))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.heads)
        scores = scores.masked_fill(self.mask[:t, :t] == 0, 1e-9)
        out = scores.softmax(dim=-1) @ v
        return self.proj(out.transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, dim, heads, context):
        super().__init__()
        self.attention = CausalAttention(dim, heads, context)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Writer(nn.Module):
    def __init__(self, vocab, dim=24, heads=2, depth=2, context=16):
        super().__init__()
        self.context = context
        self.tokens = nn.Embedding(vocab, dim)
        self.places = nn.Embedding(context, dim)
        self.blocks = nn.Sequential(*(Block(dim, heads, context) for _ in range(depth)))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        return self.head(self.norm(self.blocks(x)))

    @torch.no_grad()
    def write(self, ids, length):
        for _ in range(length):
            logits = self(ids[:, -self.context :])[:, -1]
            ids = torch.cat([ids, torch.multinomial(logits.softmax(-1), 1)], dim=1)
        return ids


NAMES = "anna bella carla daniel erika felix greta hanna isabel jonas karla lena marta nils oskar paula".split()

torch.manual_seed(19)
text = " ".join(NAMES[i] for i in torch.randint(0, len(NAMES), (300,)))
chars = sorted(set(text))
data = torch.tensor([chars.index(c) for c in text])
model = Writer(len(chars))
optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3)
for step in range(60):
    starts = torch.randint(0, len(data) - 17, (12,))
    chunk = data[starts[:, None] + torch.arange(17)]
    logits = model(chunk[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), chunk[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        print(f"step {step + 1} loss {loss.item():.4f}")
sample = model.write(data[:1][None], 30)[0]
print("".join(chars[i] for i in sample.tolist()))
