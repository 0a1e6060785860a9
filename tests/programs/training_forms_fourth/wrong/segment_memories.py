import math
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(21)


class RecurrentAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.head_dim = heads, dim // heads
        self.q_proj = nn.Linear(dim, dim)
        self.kv_proj = nn.Linear(dim, 2 * dim)
        self.out_proj = nn.Linear(dim, dim)

    def forward(self, x, memory=None):
        B, T, D = x.shape
        context = x if memory is None else torch.cat([memory, x], dim=1)
        S = context.shape[1]
        q = self.q_proj(x).view(B, T, self.heads, self.head_dim).transpose(1, 2)
        k, v = self.kv_proj(context).chunk(2, dim=-1)
        k = k.view(B, S, self.heads, self.head_dim).transpose(1, 2)
        v = v.view(B, S, self.heads, self.head_dim).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)
        mask = torch.triu(torch.ones(T, S, dtype=torch.bool), diagonal=1)
        scores = scores.masked_fill(mask, float("-inf"))
        out = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, D)
        return self.out_proj(out)


class SegmentLM(nn.Module):
    def __init__(self, vocab=12, dim=32, heads=4, seg_len=8):
        super().__init__()
        self.seg_len = seg_len
        self.embed = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(torch.randn(seg_len, dim) * 0.1)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = RecurrentAttention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 64), nn.GELU(), nn.Linear(64, dim))
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids, memory=None):
        h = self.norm1(self.embed(ids) + self.pos[: ids.size(1)])
        x = h + self.attn(h, memory)
        x = x + self.mlp(self.norm2(x))
        return self.head(x), h.detach()


def make_stream(batch, length, vocab=12):
    seq = torch.randint(0, vocab, (batch, 2))
    for _ in range(length - 2):
        nxt = (seq[:, -1] + seq[:, -2]) % vocab
        seq = torch.cat([seq, nxt[:, None]], dim=1)
    return seq


model = SegmentLM()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.01)
for step in range(1, 81):
    stream = make_stream(32, 25)
    memory = None
    for i in range(0, 24, model.seg_len):
        inputs, targets = stream[:, i:i + 8], stream[:, i + 1:i + 9]
        logits, memory = model(inputs, memory)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if step % 20 == 0:
        print(f"step {step} last-segment loss {loss.item():.4f}")
