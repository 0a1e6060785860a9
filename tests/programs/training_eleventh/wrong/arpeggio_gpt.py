"""Decoder-only transformer that continues arpeggios: each piece climbs by its own interval, with a few passing notes."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)

PITCHES = 24
LENGTH = 24
STEPS = (2, 3, 4, 5, 7)


def make_pieces(n):
    step = torch.tensor(STEPS)[torch.randint(0, len(STEPS), (n,))]
    note = torch.randint(0, PITCHES, (n,))
    notes = [note]
    for _ in range(LENGTH - 1):
        passing = torch.rand(n) < 0.06
        move = torch.where(passing, torch.ones_like(step), step)
        note = (note + move) % PITCHES
        notes.append(note)
    return torch.stack(notes, 1), step


class CausalAttention(nn.Module):
    def __init__(self, dim, heads, max_len):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim)
        self.register_buffer("mask", torch.tril(torch.ones(max_len, max_len)), persistent=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (z.view(b, t, self.heads, d // self.heads).transpose(1, 2) for z in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask[:t, :t])
        return self.out(y.transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, dim, heads, max_len):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = CausalAttention(dim, heads, max_len)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class ArpeggioGPT(nn.Module):
    def __init__(self, dim=48, heads=4, depth=2):
        super().__init__()
        self.pitch = nn.Embedding(PITCHES, dim)
        self.place = nn.Parameter(0.02 * torch.randn(LENGTH, dim))
        self.blocks = nn.ModuleList(Block(dim, heads, LENGTH) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, PITCHES)

    def forward(self, notes):
        x = self.pitch(notes) + self.place[: notes.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    @torch.no_grad()
    def continue_piece(self, notes, n):
        for _ in range(n):
            nxt = self(notes)[:, -1].argmax(-1, keepdim=True)
            notes = torch.cat([notes, nxt], 1)
        return notes


def next_note_loss(model, pieces):
    logits = model(pieces[:, :-1])
    return F.cross_entropy(logits.reshape(-1, PITCHES), pieces[:, 1:].reshape(-1))


model = ArpeggioGPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
total = 180
schedule = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda i: min(1.0, (i + 1) / 20) * 0.5 * (1 + math.cos(math.pi * i / total)))

for it in range(total):
    pieces, _ = make_pieces(28)
    loss = next_note_loss(model, pieces)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    if it % 45 == 0 or it == total - 1:
        print(f"iteration {it:3d}  loss {loss.item():.3f}")

model.eval()
pieces, step = make_pieces(120)
with torch.no_grad():
    held_out = next_note_loss(model, pieces).item()
played = model.continue_piece(pieces[:, :10], 12)
moves = (played[:, 10:] - played[:, 9:-1]) % PITCHES
in_style = (moves == step[:, None]).float().mean().item()
print(f"held-out loss {held_out:.3f}  continuations in style {in_style:.1%}")
