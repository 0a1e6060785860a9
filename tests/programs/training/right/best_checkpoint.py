"""Regression with early stopping and the best weights restored."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class BestKeeper:
    def __init__(self, patience):
        self.patience = patience
        self.loss = float("inf")
        self.state = None
        self.waited = 0

    def step(self, loss, model):
        if loss < self.loss:
            self.loss, self.waited = loss, 0
            self.state = copy.deepcopy(model.state_dict())
        else:
            self.waited += 1
        return self.waited >= self.patience


def sample(n, w):
    x = torch.randn(n, 10)
    return x, (torch.sin(x @ w) + 0.3 * torch.randn(n)).unsqueeze(1)


def validate(model, x, y):
    model.eval()
    with torch.no_grad():
        loss = F.mse_loss(model(x), y).item()
    model.train()
    return loss


def main():
    torch.manual_seed(35)
    w = torch.randn(10) / 3
    train, val, test = sample(160, w), sample(200, w), sample(200, w)
    loader = DataLoader(TensorDataset(*train), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 1))
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    keeper = BestKeeper(patience=6)
    for epoch in range(40):
        for xb, yb in loader:
            loss = F.mse_loss(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if keeper.step(validate(model, *val), model):
            break
    model.load_state_dict(keeper.state)
    print(f"epochs run {epoch + 1} best val {keeper.loss:.4f} restored {validate(model, *val):.4f}")
    print(f"test {validate(model, *test):.4f}")


if __name__ == "__main__":
    main()
