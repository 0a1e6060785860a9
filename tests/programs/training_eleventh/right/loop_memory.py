"""Transformer with segment memory on endless drum loops: a loop is longer than the segment that is read at once."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(9)

SOUNDS, PERIOD, SEGMENT, MEMORY, STREAMS = 10, 12, 8, 16, 32


class DrumStream:
    """Endless loops, one per row; now and then a hit of the loop is replaced for good."""

    def __init__(self, rows, change=0.03):
        self.loop, self.change, self.at = torch.randint(0, SOUNDS, (rows, PERIOD)), change, 0

    def take(self, n):
        out = []
        for _ in range(n):
            k = self.at % PERIOD
            new = torch.rand(len(self.loop)) < self.change
            self.loop[:, k] = torch.where(new, torch.randint(0, SOUNDS, new.shape), self.loop[:, k])
            out.append(self.loop[:, k].clone())
            self.at += 1
        return torch.stack(out, 1)


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.q, self.kv, self.out = nn.Linear(dim, dim), nn.Linear(dim, 2 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.distance = nn.Parameter(torch.zeros(heads, SEGMENT + MEMORY))

    def forward(self, x, memory):
        b, t, d = x.shape
        h = self.norm1(torch.cat([memory, x], 1))
        s = h.shape[1]
        q = self.q(h[:, -t:]).view(b, t, self.heads, -1).transpose(1, 2)
        k, v = (z.view(b, s, self.heads, -1).transpose(1, 2) for z in self.kv(h).chunk(2, -1))
        gap = torch.arange(s - t, s)[:, None] - torch.arange(s)[None]
        bias = self.distance[:, gap.clamp(min=0)].masked_fill(gap < 0, float("-inf"))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.unsqueeze(0))
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.norm2(x))


class LoopModel(nn.Module):
    def __init__(self, dim=32, heads=4, depth=2):
        super().__init__()
        self.dim = dim
        self.sound = nn.Embedding(SOUNDS, dim)
        nn.init.normal_(self.sound.weight, std=dim ** -0.5)
        self.layers = nn.ModuleList(Layer(dim, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, SOUNDS)
        self.head.weight = self.sound.weight

    def blank(self, rows):
        return [torch.zeros(rows, 0, self.dim) for _ in self.layers]

    def forward(self, tokens, memory):
        x, kept = self.sound(tokens) * self.dim ** 0.5, []
        for layer, old in zip(self.layers, memory):
            kept.append(torch.cat([old, x], 1)[:, -MEMORY:].detach())
            x = layer(x, old)
        return self.head(self.norm(x)), kept


def score(logits, target):
    return F.cross_entropy(logits.flatten(0, 1), target.flatten())


model = LoopModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.0)
stream, memory = DrumStream(STREAMS), model.blank(STREAMS)
last = stream.take(1)
for it in range(260):
    piece = torch.cat([last, stream.take(SEGMENT)], 1)
    logits, memory = model(piece[:, :-1], memory)       # the memory goes on: the next segment follows this one
    loss = score(logits, piece[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    last = piece[:, -1:]
    if it % 65 == 0 or it == 259:
        print(f"segment {it:3d}  loss {loss.item():.3f}")

model.eval()
with torch.no_grad():
    test = DrumStream(100).take(20 * SEGMENT + 1)
    for name, carry in (("with", True), ("without", False)):
        memory, losses = model.blank(100), []
        for a in range(0, 20 * SEGMENT, SEGMENT):
            logits, new = model(test[:, a:a + SEGMENT], memory)
            memory = new if carry else memory
            losses.append(score(logits, test[:, a + 1:a + SEGMENT + 1]))
        print(f"test loss {name} memory {torch.stack(losses[4:]).mean().item():.3f}")
