"""Tiny character GPT on made-up recipe lines, a weekend project.

Written from scratch to understand transformers; attention itself is the fused
scaled_dot_product_attention.
"""
import random

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(5)
random.seed(5)

CONTEXT, DIM, HEADS, LAYERS = 48, 48, 4, 2
STEPS, BATCH = 220, 24

VERBS = ["boil", "chop", "fry", "mix", "bake"]
FOODS = ["rice", "leek", "beans", "egg", "flour", "squash"]
TOOLS = {"boil": "pot", "chop": "knife", "fry": "pan", "mix": "bowl", "bake": "oven"}


def recipe_line():
    verb, food = random.choice(VERBS), random.choice(FOODS)
    minutes = 2 * len(food)
    return f"{verb} the {food} {minutes} min in {TOOLS[verb]}.\n"


text = "".join(recipe_line() for _ in range(1200))
vocab = sorted(set(text))
stoi = {c: i for i, c in enumerate(vocab)}
data = torch.tensor([stoi[c] for c in text])
split = int(0.9 * len(data))


def get_batch(source):
    at = torch.randint(0, len(source) - CONTEXT - 1, (BATCH,))
    x = torch.stack([source[i:i + CONTEXT] for i in at])
    y = torch.stack([source[i + 1:i + CONTEXT + 1] for i in at])
    return x, y


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.proj = nn.Linear(DIM, DIM)
        mask = torch.triu(torch.ones(CONTEXT, CONTEXT, dtype=torch.bool), diagonal=1)
        self.register_buffer("causal_mask", mask, persistent=False)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=self.causal_mask[:t, :t])
        return self.proj(out.transpose(1, 2).reshape(b, t, DIM))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.attn = SelfAttention()
        self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class TinyGPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(len(vocab), DIM)
        self.pos = nn.Embedding(CONTEXT, DIM)
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, len(vocab))

    def forward(self, idx):
        x = self.tok(idx) + self.pos(torch.arange(idx.shape[1]))
        return self.head(self.norm(self.blocks(x)))


@torch.no_grad()
def generate(model, prompt, n):
    idx = torch.tensor([[stoi[c] for c in prompt]])
    for _ in range(n):
        logits = model(idx[:, -CONTEXT:])[:, -1]
        idx = torch.cat([idx, torch.multinomial(logits.softmax(-1), 1)], dim=1)
    return "".join(vocab[i] for i in idx[0].tolist())


model = TinyGPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
for step in range(STEPS):
    x, y = get_batch(data[:split])
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 55 == 0 or step == STEPS - 1:
        with torch.no_grad():
            xv, yv = get_batch(data[split:])
            val = F.cross_entropy(model(xv).flatten(0, 1), yv.flatten()).item()
        print(f"step {step:3d}  loss {loss.item():.4f}  val {val:.4f}")

sample = generate(model, "\n", 300)
words = sample.split()[:-1]
valid = sum(w in set(text.split()) for w in words)
print(f"{valid} of {len(words)} generated words occur in the recipes")
