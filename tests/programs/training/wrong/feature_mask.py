"""Tabular classifier with a learned selection of input columns."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)

N, D, INFORMATIVE = 768, 24, 6
EPOCHS = 8


class ColumnSelector(nn.Module):
    def __init__(self, n_columns):
        super().__init__()
        self.logits = nn.Parameter(0.2 * torch.randn(n_columns))

    def mask(self):
        return torch.round(torch.sigmoid(self.logits))

    def forward(self, x):
        return x * self.mask()


class TabularNet(nn.Module):
    def __init__(self, n_columns, n_classes):
        super().__init__()
        self.select = ColumnSelector(n_columns)
        self.body = nn.Sequential(nn.Linear(n_columns, 32), nn.ReLU(), nn.Linear(32, n_classes))

    def forward(self, x):
        return self.body(self.select(x))


def make_table():
    x = torch.randn(N, D)
    w = torch.zeros(D, 3)
    w[:INFORMATIVE] = torch.randn(INFORMATIVE, 3)
    return x, (x @ w).argmax(dim=1)


x, y = make_table()
x_train, y_train, x_val, y_val = x[:512], y[:512], x[512:], y[512:]

model = TabularNet(D, 3)
optimizer = torch.optim.Adam(
    [
        {"params": model.select.parameters(), "lr": 5e-2},
        {"params": model.body.parameters(), "lr": 5e-3},
    ]
)

for epoch in range(EPOCHS):
    perm = torch.randperm(len(x_train))
    total = 0.0
    for idx in perm.split(64):
        logits = model(x_train[idx])
        loss = F.cross_entropy(logits, y_train[idx]) + 0.01 * model.select.mask().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    with torch.no_grad():
        acc = (model(x_val).argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch}: loss {total / len(x_train):.4f} acc {acc:.3f} kept {int(model.select.mask().sum())}/{D}")
