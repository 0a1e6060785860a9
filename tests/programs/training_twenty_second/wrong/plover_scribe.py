"""HW4: a small decoder-only transformer on a toy language of subject-verb-object sentences."""
import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    vocab: int = 27
    block: int = 24
    dim: int = 48
    heads: int = 4
    layers: int = 2
    lr: float = 3e-3
    steps: int = 160
    batch: int = 32


SUBJECTS = ["plover", "crab", "gull", "seal"]
VERBS = ["sees", "hunts", "dodges", "likes", "minds"]
OBJECTS = ["worms", "tides", "rocks", "foam"]


def make_corpus(n, gen):
    words = []
    for _ in range(n):
        for group in (SUBJECTS, VERBS, OBJECTS):
            words.append(group[torch.randint(len(group), (1,), generator=gen).item()])
    text = " ".join(words)
    return torch.tensor([0 if c == " " else ord(c) - 96 for c in text])


def decode(ids):
    return "".join(" " if i == 0 else chr(i + 96) for i in ids)


class CausalSelfAttention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.heads, self.head_dim = cfg.heads, cfg.dim // cfg.heads
        self.qkv = nn.Linear(cfg.dim, 3 * cfg.dim)
        self.proj = nn.Linear(cfg.dim, cfg.dim)
        self.register_buffer("mask", torch.tril(torch.ones(cfg.block, cfg.block)).bool())

    def forward(self, x):
        B, T, C = x.shape
        # (B, heads, T, head_dim) for each of the three
        q, k, v = [t.reshape(B, self.heads, T, self.head_dim) for t in self.qkv(x).chunk(3, dim=-1)]
        att = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)
        att = att.masked_fill(~self.mask[:T, :T], float("-inf")).softmax(-1)
        y = (att @ v).transpose(1, 2).reshape(B, T, C)
        return self.proj(y)


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(cfg.dim), nn.LayerNorm(cfg.dim)
        self.attn = CausalSelfAttention(cfg)
        self.mlp = nn.Sequential(nn.Linear(cfg.dim, 4 * cfg.dim), nn.GELU(), nn.Linear(4 * cfg.dim, cfg.dim))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class TinyGPT(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tok = nn.Embedding(cfg.vocab, cfg.dim)
        self.pos = nn.Embedding(cfg.block, cfg.dim)
        self.blocks = nn.Sequential(*[Block(cfg) for _ in range(cfg.layers)])
        self.ln = nn.LayerNorm(cfg.dim)
        self.head = nn.Linear(cfg.dim, cfg.vocab)

    def forward(self, idx):
        h = self.tok(idx) + self.pos(torch.arange(idx.shape[1]))
        return self.head(self.ln(self.blocks(h)))


def get_batch(data, cfg, gen):
    start = torch.randint(len(data) - cfg.block - 1, (cfg.batch,), generator=gen)
    window = torch.stack([data[s:s + cfg.block + 1] for s in start])
    return window[:, :-1], window[:, 1:]


torch.manual_seed(7)
gen = torch.Generator().manual_seed(7)
cfg = Config()
train_data, val_data = make_corpus(800, gen), make_corpus(120, gen)
model = TinyGPT(cfg)
opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr)

for step in range(cfg.steps):
    x, y = get_batch(train_data, cfg, gen)
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if step % 40 == 0 or step == cfg.steps - 1:
        with torch.no_grad():
            vx, vy = get_batch(val_data, cfg, gen)
            val = F.cross_entropy(model(vx).flatten(0, 1), vy.flatten())
        print(f"step {step:4d}  train {loss.item():.3f}  val {val.item():.3f}")

print("first target window:", repr(decode(vy[0].tolist())))
print("model's prediction :", repr(decode(model(vx[:1]).argmax(-1)[0].tolist())))
