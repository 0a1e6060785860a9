"""Daily training of a recommender whose catalog grows: every day brings clicks and a few new items."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Shop:
    users: int = 300
    first_items: int = 120
    new_per_day: int = 30
    days: int = 5
    clicks_per_day: int = 6000
    batch: int = 128
    dim: int = 16
    lr: float = 0.01


class World:
    """Hidden tastes; decides whether a user clicks on an item that is on the shelf."""

    def __init__(self, shop, gen):
        total = shop.first_items + shop.days * shop.new_per_day
        self.gen = gen
        self.user = torch.randn(shop.users, 4, generator=gen)
        self.item = torch.randn(total, 4, generator=gen)
        self.appeal = 0.5 * torch.randn(total, generator=gen)

    def impressions(self, n, first, stop):
        u = torch.randint(0, len(self.user), (n,), generator=self.gen)
        i = torch.randint(first, stop, (n,), generator=self.gen)
        p = torch.sigmoid(1.5 * (self.user[u] * self.item[i]).sum(-1) + self.appeal[i])
        return u, i, torch.bernoulli(p, generator=self.gen)


class Factors(nn.Module):
    def __init__(self, shop):
        super().__init__()
        self.user = nn.Embedding(shop.users, shop.dim)
        self.item = nn.Embedding(shop.first_items, shop.dim)
        self.item_bias = nn.Embedding(shop.first_items, 1)
        for table in (self.user, self.item):
            nn.init.normal_(table.weight, std=0.3)
        nn.init.zeros_(self.item_bias.weight)

    def forward(self, u, i):
        return (self.user(u) * self.item(i)).sum(-1) + self.item_bias(i).squeeze(-1)


def grow(table, extra, optimizer, std):
    """Appends rows to an embedding that is in training, and carries its optimizer state over."""
    old = table.weight
    rows = std * torch.randn(extra, old.shape[1])
    new = nn.Parameter(torch.cat([old.detach(), rows]))
    state = optimizer.state.pop(old, {})
    for group in optimizer.param_groups:
        group["params"] = [new if p is old else p for p in group["params"]]
    if state:
        optimizer.state[new] = {
            key: torch.cat([value, value.new_zeros(rows.shape)]) if value.shape == old.shape else value
            for key, value in state.items()
        }
    table.weight = new
    table.num_embeddings += extra


def train_day(model, optimizer, u, i, clicked, batch):
    losses = []
    for _ in range(2):
        for rows in torch.randperm(len(u)).split(batch):
            loss = F.binary_cross_entropy_with_logits(model(u[rows], i[rows]), clicked[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return sum(losses) / len(losses)


@torch.no_grad()
def auc(model, u, i, clicked):
    ranks = model(u, i).argsort().argsort().double() + 1
    positive = clicked.bool()
    n, m = positive.sum(), (~positive).sum()
    return ((ranks[positive].sum() - n * (n + 1) / 2) / (n * m)).item()


def main():
    shop = Shop()
    torch.manual_seed(23)
    world = World(shop, torch.Generator().manual_seed(12))
    model = Factors(shop)
    optimizer = torch.optim.Adam(model.parameters(), lr=shop.lr)
    on_shelf, newest = shop.first_items, 0
    for day in range(shop.days):
        if day > 0:
            grow(model.item, shop.new_per_day, optimizer, std=0.3)
            grow(model.item_bias, shop.new_per_day, optimizer, std=0.0)
            newest, on_shelf = on_shelf, on_shelf + shop.new_per_day
        loss = train_day(model, optimizer, *world.impressions(shop.clicks_per_day, 0, on_shelf), shop.batch)
        everything = auc(model, *world.impressions(3000, 0, on_shelf))
        fresh = auc(model, *world.impressions(3000, newest, on_shelf))
        print(f"day {day}: {on_shelf} items  loss {loss:.3f}  AUC {everything:.3f}  AUC on the newest items {fresh:.3f}")
    return model, optimizer


if __name__ == "__main__":
    model, optimizer = main()
