"""Deep residual MLP that recomputes its blocks to save memory."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


class Mixer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 2 * dim)
        self.down = nn.Linear(2 * dim, dim)

    def forward(self, x):
        return self.down(F.gelu(self.up(self.norm(x))))


class Stack(nn.Module):
    def __init__(self, vocab=25, dim=16, depth=3, classes=4):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(Mixer(dim) for _ in range(depth))
        self.head = nn.Linear(dim, classes)

    def forward(self, tokens):
        hidden = self.embed(tokens).mean(dim=1)
        for block in self.blocks:
            change = checkpoint(block, hidden, use_reentrant=False)
            hidden = hidden + change
        return self.head(hidden)


def main():
    torch.manual_seed(21)
    model = Stack()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(2):
        tokens, labels = torch.randint(0, 25, (6, 5)), torch.randint(0, 4, (6,))
        loss = F.cross_entropy(model(tokens), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())


if __name__ == "__main__":
    main()
