import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class CachedAttention(nn.Module):
    def __init__(self, dim, max_len):
        super().__init__()
        self.dim, self.max_len = dim, max_len
        self.q, self.k, self.v = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.out = nn.Linear(dim, dim)

    def reset(self, batch):
        self.k_cache, self.v_cache = [], []

    def append(self, x):
        self.k_cache.append(self.k(x))
        self.v_cache.append(self.v(x))
        return torch.stack(self.k_cache, dim=1), torch.stack(self.v_cache, dim=1)

    def forward(self, x):
        keys, values = self.append(x)
        scores = torch.einsum("bd,btd->bt", self.q(x), keys) / math.sqrt(self.dim)
        context = torch.einsum("bt,btd->bd", F.softmax(scores, dim=-1), values)
        return self.out(context)


class Decoder(nn.Module):
    def __init__(self, vocab=10, dim=24, max_len=12, layers=2):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(max_len, dim)
        self.attn = nn.ModuleList(CachedAttention(dim, max_len) for _ in range(layers))
        self.norm = nn.ModuleList(nn.LayerNorm(dim) for _ in range(layers))
        self.head = nn.Linear(dim, vocab)

    def reset(self, batch):
        for layer in self.attn:
            layer.reset(batch)

    def step(self, token, position):
        h = self.tok(token) + self.pos.weight[position]
        for attn, norm in zip(self.attn, self.norm):
            h = h + attn(norm(h))
        return self.head(h)

    def unroll(self, prompt, length, teacher, mix):
        self.reset(prompt.shape[0])
        token, outputs = prompt, []
        for t in range(length):
            logits = self.step(token, t)
            outputs.append(logits)
            use_teacher = torch.rand(token.shape[0]) < mix
            token = torch.where(use_teacher, teacher[:, t], logits.argmax(-1))
        return torch.stack(outputs, dim=1)


def batch(n=32, length=10, vocab=10):
    start = torch.randint(0, vocab, (n, 1))
    stride = torch.randint(1, 3, (n, 1))
    return (start + stride * torch.arange(length + 1)) % vocab


def main():
    torch.manual_seed(14)
    model = Decoder()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for it in range(15):
        seq = batch()
        logits = model.unroll(seq[:, 0], 10, seq[:, 1:], mix=max(0.5, 1.0 - 0.03 * it))
        loss = F.cross_entropy(logits.flatten(0, 1), seq[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if it % 3 == 0:
            print(f"it {it:2d} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
