import math

import torch
from torch import nn
import torch.nn.functional as F


class Heads(nn.Module):
    def __init__(self, dim, heads, length):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.register_buffer("causal", torch.ones(length, length).tril().bool())

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2)
                   for z in self.qkv(x).chunk(3, dim=-1))
        att = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(d // self.heads)
        att = att.masked_fill(self.causal[:t, :t], torch.finfo(att.dtype).min)
        y = torch.einsum("bhij,bhjd->bhid", att.softmax(-1), v)
        return self.proj(y.transpose(1, 2).flatten(2))


class Composer(nn.Module):
    def __init__(self, notes, length, dim=24):
        super().__init__()
        self.note = nn.Embedding(notes, dim)
        self.place = nn.Parameter(0.02 * torch.randn(length, dim))
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.att = Heads(dim, 3, length)
        self.mlp = nn.Sequential(nn.Linear(dim, 48), nn.GELU(), nn.Linear(48, dim))
        self.out = nn.Linear(dim, notes)

    def forward(self, seq):
        h = self.note(seq) + self.place[:seq.shape[1]]
        h = h + self.att(self.n1(h))
        return self.out(h + self.mlp(self.n2(h)))


def melodies(n, length, notes=14):
    start = torch.randint(0, notes, (n, 1))
    step = torch.randint(1, 5, (n, 1))
    walk = (start + step * torch.arange(length + 1)) % notes
    slip = torch.rand(n, length + 1) < 0.05
    return torch.where(slip, torch.randint(0, notes, walk.shape), walk)


torch.manual_seed(24)
model = Composer(14, 12)
opt = torch.optim.AdamW(model.parameters(), lr=4e-3, betas=(0.9, 0.98))
for it in range(150):
    seq = melodies(32, 12)
    loss = F.cross_entropy(model(seq[:, :-1]).transpose(1, 2), seq[:, 1:])
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 30 == 29:
        print(f"iter {it + 1} loss {loss.item():.4f}")
with torch.no_grad():
    seq = melodies(200, 12)
    last = model(seq[:, :-1])[:, -1].argmax(-1)
    print(f"last note right {(last == seq[:, -1]).float().mean().item():.3f}")
