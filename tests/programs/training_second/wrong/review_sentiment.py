import math

import torch
import torch.nn.functional as F
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(dim, dim, bias=False)
        self.key = nn.Linear(dim, dim, bias=False)
        self.value = nn.Linear(dim, dim, bias=False)
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (m(x).view(b, t, self.heads, -1).transpose(1, 2) for m in (self.query, self.key, self.value))
        y = F.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = SelfAttention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class Encoder(nn.Module):
    def __init__(self, vocab=50, dim=32, depth=2, classes=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.blocks = nn.Sequential(*[Block(dim, 4) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.classifier = nn.Linear(dim, classes)

    def forward(self, ids):
        return self.classifier(self.norm(self.blocks(self.embed(ids))).mean(1))


class LoRALinear(nn.Module):
    def __init__(self, base, rank=4, alpha=8):
        super().__init__()
        self.base = base
        self.lora_a = nn.Parameter(torch.randn(rank, base.in_features) / math.sqrt(base.in_features))
        self.lora_b = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scale * F.linear(F.linear(x, self.lora_a), self.lora_b)


def add_lora(model, rank):
    for block in model.blocks:
        block.attn.query = LoRALinear(block.attn.query, rank)
        block.attn.value = LoRALinear(block.attn.value, rank)


def prepare(model, rank=4):
    add_lora(model, rank)
    for param in model.parameters():
        param.requires_grad = False
    for param in model.classifier.parameters():
        param.requires_grad = True


def train(model, ids, labels, lr, epochs, name):
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=lr)
    for epoch in range(epochs):
        for chunk in torch.randperm(len(ids)).split(32):
            loss = F.cross_entropy(model(ids[chunk]), labels[chunk])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"{name} epoch {epoch} loss {loss.item():.4f}")


def main():
    torch.manual_seed(0)
    ids = torch.randint(0, 50, (128, 12))
    general = ((ids < 25).float().mean(1) > 0.5).long()
    domain = ((ids % 3 == 0).float().mean(1) > 0.3).long()
    model = Encoder()
    train(model, ids, general, 3e-3, 3, "pretrain")
    prepare(model)
    train(model, ids, domain, 3e-3, 4, "adapt")
    with torch.no_grad():
        accuracy = (model(ids).argmax(1) == domain).float().mean()
    print(f"accuracy {accuracy.item():.3f}")


if __name__ == "__main__":
    main()
