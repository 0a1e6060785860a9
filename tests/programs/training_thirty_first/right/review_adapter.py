"""Adapts a text scorer trained on one shop to another with low-rank updates of its frozen layers."""
import math

import torch
from torch import nn
import torch.nn.functional as F

WORDS = 60
GRADES = 3


class LowRankLinear(nn.Module):
    """Hu et al. 2021: the frozen layer plus a product of two thin matrices."""

    def __init__(self, layer, rank=4, alpha=8.0):
        super().__init__()
        self.layer = layer
        self.layer.requires_grad_(False)
        self.down = nn.Parameter(torch.empty(rank, layer.in_features))
        self.up = nn.Parameter(torch.zeros(layer.out_features, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))
        self.scale = alpha / rank

    def forward(self, x):
        return self.layer(x) + self.scale * F.linear(F.linear(x, self.down), self.up)

    @torch.no_grad()
    def merge(self):
        self.layer.weight.data += self.scale * self.up @ self.down
        return self.layer


class Scorer(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.words = nn.EmbeddingBag(WORDS, width, mode="mean")
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.grade = nn.Linear(width, GRADES)

    def forward(self, texts):
        x = F.gelu(self.first(self.words(texts)))
        return self.grade(self.norm(x + F.gelu(self.second(x))))


def make_reviews(count, tone):
    texts = torch.randint(0, WORDS, (count, 12))
    mood = tone[texts].mean(dim=1)
    return texts, (mood > -0.15).long() + (mood > 0.15).long()


def accuracy(model, texts, grades):
    with torch.no_grad():
        return (model(texts).argmax(dim=1) == grades).float().mean().item()


def fit(model, texts, grades, steps, lr):
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=lr, weight_decay=0.01)
    for step in range(steps):
        rows = torch.randint(0, len(texts), (64,))
        loss = F.cross_entropy(model(texts[rows]), grades[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(13)
    book_tone = torch.randn(WORDS)
    tool_tone = book_tone + 0.8 * torch.randn(WORDS)
    books, tools = make_reviews(1500, book_tone), make_reviews(600, tool_tone)
    tools_test = make_reviews(400, tool_tone)

    model = Scorer()
    loss = fit(model, *books, steps=150, lr=5e-3)
    print(f"books: loss {loss:.4f}  accuracy {accuracy(model, *books):.3f}")
    print(f"tools before: accuracy {accuracy(model, *tools_test):.3f}")

    model.requires_grad_(False)
    model.first = LowRankLinear(model.first)
    model.second = LowRankLinear(model.second)
    model.grade.requires_grad_(True)
    model.zero_grad(set_to_none=True)
    frozen = {name: p.clone() for name, p in model.named_parameters() if not p.requires_grad}
    count = sum(p.numel() for p in model.parameters() if p.requires_grad)
    loss = fit(model, *tools, steps=150, lr=1e-2)
    print(f"tools after: loss {loss:.4f}  accuracy {accuracy(model, *tools_test):.3f}  with {count} weights")
    unchanged = all(torch.equal(p, frozen[name]) for name, p in model.named_parameters() if name in frozen)
    print(f"frozen weights unchanged: {unchanged}")

    with torch.no_grad():
        adapted = model(tools_test[0])
        model.first = model.first.merge()
        model.second = model.second.merge()
        gap = (model(tools_test[0]) - adapted).abs().max().item()
    print(f"largest difference after merging {gap:.1e}")


if __name__ == "__main__":
    main()
