import torch
import torch.nn.functional as F
from torch import nn


class MatrixFactorization(nn.Module):
    def __init__(self, users, items, rank):
        super().__init__()
        self.user = nn.Embedding(users, rank)
        self.item = nn.Embedding(items, rank)
        self.user_bias = nn.Embedding(users, 1)
        self.item_bias = nn.Embedding(items, 1)
        for table in (self.user, self.item):
            nn.init.normal_(table.weight, std=0.1)
        for table in (self.user_bias, self.item_bias):
            nn.init.zeros_(table.weight)

    def forward(self, u, i):
        dot = (self.user(u) * self.item(i)).sum(-1)
        return dot + self.user_bias(u).squeeze(-1) + self.item_bias(i).squeeze(-1)


class EarlyStopping:
    def __init__(self, patience):
        self.patience = patience
        self.best = float("inf")
        self.waited = 0
        self.weights = None

    def update(self, value, model):
        if value < self.best:
            self.best, self.waited = value, 0
            self.weights = model.state_dict()
        else:
            self.waited += 1
        return self.waited >= self.patience

    def restore(self, model):
        model.load_state_dict(self.weights)


def ratings(users, items, count, noise=0.6):
    p, q = torch.randn(users, 3), torch.randn(items, 3)
    u, i = torch.randint(0, users, (count,)), torch.randint(0, items, (count,))
    return u, i, (p[u] * q[i]).sum(-1) + noise * torch.randn(count)


def rmse(model, u, i, r):
    with torch.no_grad():
        return F.mse_loss(model(u, i), r).sqrt().item()


def main():
    torch.manual_seed(3)
    users, items = 40, 30
    u, i, r = ratings(users, items, 700)
    train, valid = slice(0, 550), slice(550, 700)
    model = MatrixFactorization(users, items, rank=12)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    stopper = EarlyStopping(patience=6)
    for epoch in range(60):
        for idx in torch.randperm(550).split(110):
            optimizer.zero_grad()
            loss = F.mse_loss(model(u[train][idx], i[train][idx]), r[train][idx])
            loss.backward()
            optimizer.step()
        score = rmse(model, u[valid], i[valid], r[valid])
        if epoch % 5 == 0:
            print(f"epoch {epoch} train {loss.item():.4f} valid rmse {score:.4f}")
        if stopper.update(score, model):
            break
    stopper.restore(model)
    final = rmse(model, u[valid], i[valid], r[valid])
    print(f"stopped after epoch {epoch}, model restored")
    return model, stopper, final


if __name__ == "__main__":
    model, stopper, final = main()
