"""Low-rank adapters on a frozen language model with recomputed blocks."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


class AdaptedLinear(nn.Module):
    def __init__(self, dim, rank=2):
        super().__init__()
        self.base = nn.Linear(dim, dim)
        self.base.requires_grad_(False)
        self.down = nn.Linear(dim, rank, bias=False)
        self.up = nn.Linear(rank, dim, bias=False)
        nn.init.normal_(self.up.weight, std=0.02)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim).requires_grad_(False)
        self.mix = AdaptedLinear(dim)

    def forward(self, x):
        return x + F.gelu(self.mix(self.norm(x)))


class FrozenLM(nn.Module):
    def __init__(self, vocab=30, dim=16, depth=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim).requires_grad_(False)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))
        self.lm_head = nn.Linear(dim, vocab, bias=False).requires_grad_(False)

    def forward(self, tokens):
        h = self.embed(tokens)
        for block in self.blocks:
            h = checkpoint(block, h, use_reentrant=False)
        return self.lm_head(h)


def main():
    torch.manual_seed(33)
    model = FrozenLM()
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=1e-3)
    tokens = torch.randint(0, 30, (2, 9))
    for _ in range(2):
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())


if __name__ == "__main__":
    main()
