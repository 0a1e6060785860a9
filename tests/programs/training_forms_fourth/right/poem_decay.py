import re

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(47)
LETTERS, SPAN, WIDTH = 28, 20, 32
SPARED = re.compile(r"bias|LayerNorm|layer_norm|\.g$")


class Scale(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.g = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.g * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class Verse(nn.Module):
    def __init__(self):
        super().__init__()
        self.pre, self.mid = Scale(WIDTH), Scale(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 64, bias=False), nn.Linear(64, WIDTH, bias=False)

    def forward(self, x):
        q, k, v = self.qkv(self.pre(x)).chunk(3, -1)
        x = x + F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.down(F.silu(self.up(self.mid(x))))


class Poet(nn.Module):
    def __init__(self, depth=2):
        super().__init__()
        self.letter, self.place = nn.Embedding(LETTERS, WIDTH), nn.Embedding(SPAN, WIDTH)
        self.verses = nn.Sequential(*(Verse() for _ in range(depth)))
        self.last = Scale(WIDTH)
        self.say = nn.Linear(WIDTH, LETTERS, bias=False)

    def forward(self, ids):
        h = self.letter(ids) + self.place(torch.arange(ids.size(1)))
        return self.say(self.last(self.verses(h)))


def groups(model, decay):
    spared, decayed = [], []
    for name, p in model.named_parameters():
        (spared if SPARED.search(name) else decayed).append(p)
    return [{"params": decayed, "weight_decay": decay}, {"params": spared, "weight_decay": 0.0}]


def lines(n):
    start, stride = torch.randint(0, LETTERS, (n, 1)), torch.randint(1, 4, (n, 1))
    return (start + stride * torch.arange(SPAN + 1)) % LETTERS


poet = Poet()
opt = torch.optim.AdamW(groups(poet, decay=0.3), lr=1e-2)
for step in range(80):
    text = lines(48)
    loss = F.cross_entropy(poet(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 20 == 19:
        print(f"step {step + 1} loss {loss.item():.4f} last gain {poet.last.g.mean().item():.4f}")
