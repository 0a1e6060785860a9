import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

warnings.filterwarnings("ignore", category=UserWarning)


class LoRALinear(nn.Module):
    def __init__(self, base, rank=4, alpha=8.0):
        super().__init__()
        self.base = base
        self.down = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features ** 0.5)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scaling = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scaling * F.linear(F.linear(x, self.down), self.up)


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.fc = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        att = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(att)
        return x + self.fc(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self, vocab=40, dim=32, depth=3, length=16):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(0.02 * torch.randn(length, dim))
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab)
        self.gradient_checkpointing = False

    def forward(self, ids):
        h = self.tok(ids) + self.pos[: ids.shape[1]]
        for block in self.blocks:
            if self.gradient_checkpointing and self.training:
                h = checkpoint(block, h, use_reentrant=True)
            else:
                h = block(h)
        return self.head(self.norm(h))


def prepare_for_tuning(model, targets=("qkv", "proj"), full=("head", "norm")):
    model.requires_grad_(False)
    for block in model.blocks:
        for name in targets:
            setattr(block, name, LoRALinear(getattr(block, name)))
    for name in full:
        getattr(model, name).requires_grad_(True)
    model.gradient_checkpointing = True
    return model


def batches(steps, size=8, length=16, vocab=40):
    start = torch.randint(0, vocab, (steps, size, 1))
    stride = torch.randint(1, 4, (steps, size, 1))
    return (start + stride * torch.arange(length + 1)) % vocab


def main():
    torch.manual_seed(0)
    model = prepare_for_tuning(Decoder()).train()
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=3e-3)
    for step, seq in enumerate(batches(30)):
        logits = model(seq[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), seq[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step:3d} loss {loss.item():.4f}")
    return model


if __name__ == "__main__":
    model = main()
