import torch
from torch import nn
import torch.nn.functional as F


class TwoTower(nn.Module):
    def __init__(self, users, items, dim=8):
        super().__init__()
        self.user = nn.Embedding(users, dim, sparse=True)
        self.item = nn.Embedding(items, dim, sparse=True)
        self.mix = nn.Sequential(nn.Linear(2 * dim, 24), nn.ReLU(), nn.Linear(24, 1))
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.item.weight, std=0.1)

    def forward(self, u, i):
        a, b = self.user(u), self.item(i)
        return (a * b).sum(-1) + self.mix(torch.cat([a, b], -1)).squeeze(-1)


class Optimizers:
    def __init__(self, model, lr):
        tables = [m.weight for m in model.modules() if isinstance(m, nn.Embedding)]
        ids = {id(p) for p in tables}
        self.dense_params = [p for p in model.parameters() if id(p) not in ids]
        self.sparse = torch.optim.SparseAdam(tables, lr=lr)
        self.dense = torch.optim.AdamW(self.dense_params, lr=lr, weight_decay=0.01)

    def step(self, loss):
        self.sparse.zero_grad()
        self.dense.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.dense_params, 1.0)
        self.sparse.step()
        self.dense.step()


def clicks(n, users, items, g):
    u = torch.randint(0, users, (n,), generator=g)
    i = (torch.rand(n, generator=g) ** 3 * items).long()
    taste = torch.randn(users, 2, generator=g), torch.randn(items, 2, generator=g)
    return u, i, ((taste[0][u] * taste[1][i]).sum(-1) > 0).float()


def fit(model, data, epochs=5):
    opts = Optimizers(model, 0.01)
    g = torch.Generator().manual_seed(6)
    touched = torch.zeros(model.item.num_embeddings, dtype=torch.bool)
    for epoch in range(epochs):
        for rows in torch.randperm(len(data[0]), generator=g).split(64):
            u, i, y = (t[rows] for t in data)
            loss = F.binary_cross_entropy_with_logits(model(u, i), y)
            opts.step(loss)
            touched[i] = True
        print(f"epoch {epoch} loss {loss.item():.4f} items seen {int(touched.sum())}")


if __name__ == "__main__":
    torch.manual_seed(0)
    model = TwoTower(60, 200)
    fit(model, clicks(900, 60, 200, torch.Generator().manual_seed(1)))
