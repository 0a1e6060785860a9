"""Rating prediction with large id tables (sparse gradients) and a dense tower; micro-batches are summed into one update."""
import torch
import torch.nn as nn
import torch.nn.functional as F

USERS, ITEMS, DIM = 300, 200, 12


def ratings(n, gen):
    u = torch.randint(0, USERS, (n,), generator=gen)
    i = torch.randint(0, ITEMS, (n,), generator=gen)
    pu = torch.randn(USERS, 3, generator=torch.Generator().manual_seed(101))
    qi = torch.randn(ITEMS, 3, generator=torch.Generator().manual_seed(102))
    bias = torch.randn(ITEMS, generator=torch.Generator().manual_seed(103))
    r = (pu[u] * qi[i]).sum(1) / 3 ** 0.5 + 0.5 * bias[i] + 0.2 * torch.randn(n, generator=gen)
    return u, i, r


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.user = nn.Embedding(USERS, DIM, sparse=True)
        self.item = nn.Embedding(ITEMS, DIM, sparse=True)
        for table in (self.user, self.item):
            nn.init.normal_(table.weight, std=0.3)
        self.tower = nn.Sequential(nn.Linear(3 * DIM, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, u, i):
        a, b = self.user(u), self.item(i)
        return self.tower(torch.cat([a, b, a * b], dim=1)).squeeze(1)


class Updater:
    """Adds gradients of `parts` micro-batches and then steps the two optimizers together."""

    def __init__(self, model, parts=4):
        tables = [model.user.weight, model.item.weight]
        self.model = model
        self.parts = parts
        self.sparse = torch.optim.SparseAdam(tables, lr=1e-2)
        self.dense = torch.optim.Adam(model.tower.parameters(), lr=4e-3)
        self.seen = 0
        self.updates = 0

    def feed(self, u, i, r):
        loss = F.mse_loss(self.model(u, i), r)
        (loss / self.parts).backward()
        self.seen += 1
        if self.seen % self.parts == 0:
            self.sparse.step()
            self.dense.step()
            self.sparse.zero_grad()
            self.dense.zero_grad()
            self.updates += 1
        return loss.item()


@torch.no_grad()
def rmse(model, u, i, r):
    return F.mse_loss(model(u, i), r).sqrt().item()


def main():
    torch.manual_seed(21)
    gen = torch.Generator().manual_seed(21)
    train = ratings(8192, gen)
    held = ratings(1024, gen)
    model = Recommender()
    updater = Updater(model)
    print(f"start rmse {rmse(model, *held):.3f}")
    for epoch in range(12):
        total = 0.0
        batches = torch.randperm(len(train[0]), generator=gen).split(64)
        for idx in batches:
            total += updater.feed(*(column[idx] for column in train))
        if epoch % 3 == 2:
            print(f"epoch {epoch} mse {total / len(batches):.3f} updates {updater.updates}")
    final = rmse(model, *held)
    print(f"held-out rmse {final:.3f} (spread of ratings {held[2].std():.3f})")
    return model, final


if __name__ == "__main__":
    model, final = main()
