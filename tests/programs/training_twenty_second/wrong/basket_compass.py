"""Next-item model for shopping sessions (SASRec-like, one file)."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def make_sessions(n, length, n_items, gen):
    """Shoppers move by a stride that stays the same within a session, with a few random clicks."""
    start = torch.randint(0, n_items, (n, 1), generator=gen)
    stride = torch.randint(1, 6, (n, 1), generator=gen)
    items = (start + stride * torch.arange(length)) % n_items
    noise = torch.rand(n, length, generator=gen) < 0.05
    random_items = torch.randint(0, n_items, (n, length), generator=gen)
    return torch.where(noise, random_items, items)


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x, mask):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(y.transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = SelfAttention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x, mask):
        x = x + self.attn(self.norm1(x), mask)
        return x + self.mlp(self.norm2(x))


class SessionModel(nn.Module):
    def __init__(self, n_items, length, dim=48, heads=2, depth=2):
        super().__init__()
        self.item = nn.Embedding(n_items, dim)
        self.position = nn.Embedding(length, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, n_items)
        causal = torch.triu(torch.ones(length, length, dtype=torch.bool), diagonal=1)
        self.register_buffer("causal", causal, persistent=False)

    def forward(self, items):
        t = items.shape[1]
        x = self.item(items) + self.position.weight[:t]
        for block in self.blocks:
            x = block(x, self.causal[:t, :t])
        return self.head(self.norm(x))


@torch.no_grad()
def hit_rate(model, sessions, k):
    model.eval()
    scores = model(sessions[:, :-1])[:, -1]
    hits = (scores.topk(k, dim=-1).indices == sessions[:, -1:]).any(dim=-1)
    model.train()
    return hits.float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=40)
    parser.add_argument("--length", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=3e-3)
    args = parser.parse_args([])

    torch.manual_seed(11)
    gen = torch.Generator().manual_seed(5)
    train = make_sessions(1536, args.length, args.items, gen)
    test = make_sessions(512, args.length, args.items, gen)

    model = SessionModel(args.items, args.length - 1)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
    for epoch in range(args.epochs):
        total = 0.0
        for rows in torch.randperm(len(train)).split(args.batch_size):
            batch = train[rows]
            logits = model(batch[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(rows)
        print(f"epoch {epoch}: loss {total / len(train):.3f}  hit@1 {hit_rate(model, test, 1):.3f}  "
              f"hit@5 {hit_rate(model, test, 5):.3f}")
    return model, test


if __name__ == "__main__":
    model, test = main()
