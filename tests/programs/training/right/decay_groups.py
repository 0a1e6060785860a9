"""One-block transformer with weight decay on matrices only."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(out.transpose(1, 2).reshape(b, t, d))


class Model(nn.Module):
    def __init__(self, vocab=12, dim=24, length=9):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(0.3 * torch.randn(length, dim))
        self.ln1 = nn.LayerNorm(dim)
        self.attn = Attention(dim, 4)
        self.ln2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.head = nn.Linear(dim, vocab)

    def forward(self, tokens):
        x = self.tok(tokens) + self.pos[: tokens.shape[1]]
        x = x + self.attn(self.ln1(x))
        x = x + self.mlp(self.ln2(x))
        return self.head(x)


def param_groups(model, decay):
    matrices = [p for n, p in model.named_parameters() if p.ndim >= 2 and n != "pos"]
    others = [p for n, p in model.named_parameters() if p.ndim < 2 or n == "pos"]
    assert len(matrices) + len(others) == len(list(model.parameters()))
    return [{"params": matrices, "weight_decay": decay}, {"params": others, "weight_decay": 0.0}]


def copies(n, gen):
    half = torch.randint(12, (n, 5), generator=gen)
    return torch.cat([half, half], dim=1)


def main():
    torch.manual_seed(16)
    gen = torch.Generator().manual_seed(17)
    model = Model()
    opt = torch.optim.AdamW(param_groups(model, 0.05), lr=1e-2)
    for step in range(120):
        seq = copies(64, gen)
        logits = model(seq[:, :-1])
        loss = F.cross_entropy(logits[:, 4:].reshape(-1, 12), seq[:, 5:].reshape(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 30 == 29:
            acc = (logits[:, 4:].argmax(-1) == seq[:, 5:]).float().mean().item()
            print(f"step {step}: loss {loss.item():.4f} acc {acc:.3f}")


if __name__ == "__main__":
    main()
