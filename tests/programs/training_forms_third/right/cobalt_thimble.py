from itertools import count

import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(3)
torch.manual_seed(3)

TAGS = ["vegan", "spicy", "baked", "grilled", "quick", "sweet", "cheap", "festive", "raw", "soup"]
EFFECT = dict(zip(sorted(TAGS), [1.6, -0.4, 0.8, -1.1, 0.3, 0.9, -0.7, 0.2, -0.5, 0.6]))


def write_recipes(n):
    recipes = []
    for _ in range(n):
        tags = list(rng.permutation(TAGS)[: rng.integers(2, 7)])
        score = float(np.mean([EFFECT[t] for t in tags])) + 0.05 * rng.normal()
        recipes.append((tags, score))
    return recipes


class Codebook:
    def __init__(self, recipes):
        seen = sorted({tag for tags, _ in recipes for tag in tags})
        self.code = dict(zip(seen, count(1)))

    def table(self, recipes, width=6):
        grid = np.zeros((len(recipes), width), dtype=np.int64)
        for row, (tags, _) in zip(grid, recipes):
            row[: len(tags)] = [self.code[t] for t in tags]
        return torch.from_numpy(grid)


class Rater(nn.Module):
    def __init__(self, n_tags, dim=5):
        super().__init__()
        self.bag = nn.EmbeddingBag(n_tags + 1, dim, mode="mean", padding_idx=0)
        self.out = nn.Linear(dim, 1)

    def forward(self, grid):
        return self.out(self.bag(grid)).flatten()


recipes = write_recipes(400)
book = Codebook(recipes)
grid = book.table(recipes)
target = torch.tensor([score for _, score in recipes])
rater = Rater(len(book.code))
optimizer = torch.optim.RMSprop(rater.parameters(), lr=0.01)

for epoch in range(15):
    for picks in torch.randperm(len(recipes)).chunk(8):
        loss = nn.functional.l1_loss(rater(grid[picks]), target[picks])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1:2d}  mae {loss.item():.4f}")

with torch.inference_mode():
    print("mean absolute error", (rater(grid) - target).abs().mean().item())
