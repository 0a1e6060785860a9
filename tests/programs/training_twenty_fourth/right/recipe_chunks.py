"""Recipe-to-photo retrieval with a contrastive loss over a large batch, encoded in small pieces to save memory."""
from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH, PIECE = 256, 32


def make_pairs(n, g):
    """A dish (latent) is seen once as a bag of ingredients and once as a photo descriptor."""
    world = torch.Generator().manual_seed(31)
    to_recipe = torch.randn(12, 40, generator=world)
    to_photo = torch.randn(12, 64, generator=world)
    dish = torch.randn(n, 12, generator=g)
    recipe = (dish @ to_recipe + torch.randn(n, 40, generator=g) > 2.5).float()
    photo = torch.tanh(dish @ to_photo / 3) + 0.4 * torch.randn(n, 64, generator=g)
    return recipe, photo


class Tower(nn.Module):
    def __init__(self, n_in, n_out=24, width=96):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_in, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, n_out))

    def forward(self, x):
        return F.normalize(self.net(x), dim=-1)


class ClipLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, a, b):
        logits = self.log_scale.exp() * a @ b.T
        truth = torch.arange(len(a))
        return 0.5 * (F.cross_entropy(logits, truth) + F.cross_entropy(logits.T, truth))


class PiecewiseStep:
    """Runs one training step; the graph of only one piece is alive at any time."""

    def __init__(self, towers, criterion, piece):
        self.towers, self.criterion, self.piece = towers, criterion, piece

    def __call__(self, *inputs):
        with torch.no_grad():
            codes = [
                torch.cat([tower(part) for part in x.split(self.piece)])
                for tower, x in zip(self.towers, inputs)
            ]
        codes = [code.requires_grad_() for code in codes]
        loss = self.criterion(*codes)
        loss.backward()
        for tower, x, code in zip(self.towers, inputs, codes):
            for part, slope in zip(x.split(self.piece), code.grad.split(self.piece)):
                surrogate = (tower(part) * slope).sum()
                surrogate.backward()
        return loss.detach()


@torch.no_grad()
def recall_at_1(recipe_tower, photo_tower, recipe, photo):
    best = (recipe_tower(recipe) @ photo_tower(photo).T).argmax(1)
    return best.eq(torch.arange(len(recipe))).float().mean().item()


def main(epochs=10):
    torch.manual_seed(2)
    g = torch.Generator().manual_seed(2)
    recipe, photo = make_pairs(2560, g)
    test_recipe, test_photo = make_pairs(300, g)
    recipe_tower, photo_tower = Tower(recipe.shape[1]), Tower(photo.shape[1])
    criterion = ClipLoss()
    step = PiecewiseStep((recipe_tower, photo_tower), criterion, PIECE)
    modules = nn.ModuleList([recipe_tower, photo_tower, criterion])
    optimizer = torch.optim.AdamW(modules.parameters(), lr=2e-3, weight_decay=1e-3)
    score = partial(recall_at_1, recipe_tower, photo_tower, test_recipe, test_photo)
    print(f"before: recall@1 {score():.3f}")
    for epoch in range(epochs):
        total = 0.0
        for idx in torch.randperm(len(recipe), generator=g).split(BATCH):
            optimizer.zero_grad()
            total += step(recipe[idx], photo[idx]).item()
            optimizer.step()
        print(f"epoch {epoch}  loss {total / (len(recipe) // BATCH):.3f}  recall@1 {score():.3f}")
    return recipe_tower, photo_tower, criterion, step, recipe, photo


if __name__ == "__main__":
    recipe_tower, photo_tower, criterion, step, recipe, photo = main()
