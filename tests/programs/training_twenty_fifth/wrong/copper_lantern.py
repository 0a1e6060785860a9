"""LoRA fine-tuning of a frozen text encoder for intent classification, with activation checkpointing."""
import argparse
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

warnings.filterwarnings("ignore")


class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base = base
        self.scale = alpha / rank
        self.lora_a = nn.Parameter(torch.randn(rank, base.in_features) * base.in_features ** -0.5)
        self.lora_b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + self.scale * F.linear(F.linear(x, self.lora_a), self.lora_b)


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))
        self.fc1, self.fc2 = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x):
        h = self.ln1(x)
        a = F.scaled_dot_product_attention(self.split(self.q(h)), self.split(self.k(h)), self.split(self.v(h)))
        x = x + self.o(a.transpose(1, 2).flatten(2))
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x))))


class IntentModel(nn.Module):
    def __init__(self, vocab, dim, depth, heads, classes, max_len=16):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Parameter(0.1 * torch.randn(max_len, dim))
        self.layers = nn.ModuleList(Layer(dim, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.classifier = nn.Linear(dim, classes)
        self.gradient_checkpointing = False

    def forward(self, ids):
        x = self.tok(ids) + self.pos[: ids.shape[1]]
        for layer in self.layers:
            if self.gradient_checkpointing and self.training:
                x = checkpoint(layer, x, use_reentrant=True)
            else:
                x = layer(x)
        return self.classifier(self.norm(x).mean(1))


def add_lora(model, rank=4, alpha=8):
    model.requires_grad_(False)
    for layer in model.layers:
        for name in ("q", "v", "fc1", "fc2"):
            setattr(layer, name, LoRALinear(getattr(layer, name), rank, alpha))
    model.classifier.requires_grad_(True)
    return model


def make_data(n, vocab, gen):
    """Every request has a verb, an object and a tone word; the intent combines all three."""
    ids = torch.randint(8, vocab, (n, 8), generator=gen)
    verb, obj, tone = torch.randint(0, 2, (3, n), generator=gen)
    where = torch.rand(n, 8, generator=gen).argsort(1)[:, :3]
    ids.scatter_(1, where, torch.stack([2 + verb, 4 + obj, 6 + tone], 1))
    return ids, 2 * tone + (verb ^ obj)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=250)
    ap.add_argument("--lr", type=float, default=5e-3)
    ap.add_argument("--checkpointing", type=int, default=1)
    args = ap.parse_args([])
    torch.manual_seed(11)
    gen = torch.Generator().manual_seed(5)
    model = add_lora(IntentModel(vocab=40, dim=32, depth=2, heads=4, classes=4))
    model.gradient_checkpointing = bool(args.checkpointing)
    trainable = [p for p in model.parameters() if p.requires_grad]
    print(f"trainable parameters: {sum(p.numel() for p in trainable)}")
    opt = torch.optim.AdamW(trainable, lr=args.lr)
    x, y = make_data(2000, 40, gen)
    xv, yv = make_data(500, 40, gen)
    for step in range(args.steps):
        model.train()
        idx = torch.randint(0, len(x), (48,), generator=gen)
        loss = F.cross_entropy(model(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 49:
            model.eval()
            with torch.no_grad():
                acc = (model(xv).argmax(-1) == yv).float().mean().item()
            print(f"step {step + 1:4d} loss {loss.item():.3f} val acc {acc:.3f}")


if __name__ == "__main__":
    main()
