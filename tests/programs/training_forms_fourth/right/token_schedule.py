import math
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)

max_iters = 120
warmup_iters = 30
lr_decay_iters = 120
learning_rate = 4e-3
min_lr = 4e-4
block_size, vocab_size = 16, 20


def get_lr(it):
    if it < warmup_iters:
        return learning_rate * (it / warmup_iters)
    if it > lr_decay_iters:
        return min_lr
    decay_ratio = (it - warmup_iters) / (lr_decay_iters - warmup_iters)
    coeff = 0.5 * (1.0 + math.cos(math.pi * decay_ratio))
    return min_lr + coeff * (learning_rate - min_lr)


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.size(1))
        h = self.ln1(x)
        x = x + self.attn(h, h, h, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.ln2(x))


class TinyGPT(nn.Module):
    def __init__(self, dim=32, layers=2):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, dim)
        self.wpe = nn.Embedding(block_size, dim)
        self.blocks = nn.ModuleList([Block(dim) for _ in range(layers)])
        self.head = nn.Linear(dim, vocab_size)

    def forward(self, idx):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def get_batch(batch_size=16):
    start = torch.randint(0, vocab_size, (batch_size, 1))
    stride = torch.randint(1, 4, (batch_size, 1))
    seq = (start + stride * torch.arange(block_size + 1)) % vocab_size
    return seq[:, :-1], seq[:, 1:]


model = TinyGPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.95))
for it in range(max_iters):
    lr = get_lr(it)
    for group in optimizer.param_groups:
        group["lr"] = lr
    xb, yb = get_batch()
    loss = F.cross_entropy(model(xb).flatten(0, 1), yb.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if it % 20 == 0 or it == max_iters - 1:
        print(f"iter {it}: loss {loss.item():.4f}")
