"""Churn prediction with early stopping on validation loss."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class EarlyStopping:
    def __init__(self, patience=6):
        self.patience = patience
        self.best_loss = float("inf")
        self.best_state = None
        self.bad_epochs = 0

    def update(self, loss, model):
        if loss < self.best_loss:
            self.best_loss = loss
            self.best_state = model.state_dict()
            self.bad_epochs = 0
        else:
            self.bad_epochs += 1
        return self.bad_epochs >= self.patience


def customers(n):
    x = torch.randn(n, 12)
    p = torch.sigmoid(1.5 * x[:, 0] - x[:, 1] + 0.8 * x[:, 2] * x[:, 3])
    return x, (torch.rand(n) < p).float()


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        return F.binary_cross_entropy_with_logits(model(x).squeeze(1), y).item()


def main():
    torch.manual_seed(89)
    x, y = customers(120)
    x_val, y_val = customers(300)
    x_test, y_test = customers(300)
    loader = DataLoader(TensorDataset(x, y), batch_size=30, shuffle=True)
    model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    stopper = EarlyStopping()
    for epoch in range(40):
        model.train()
        for xb, yb in loader:
            loss = F.binary_cross_entropy_with_logits(model(xb).squeeze(1), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        val = evaluate(model, x_val, y_val)
        if stopper.update(val, model):
            break
    model.load_state_dict(stopper.best_state)
    print(f"stopped after epoch {epoch}, best val {stopper.best_loss:.4f}")
    print(f"test loss {evaluate(model, x_test, y_test):.4f}")
    return model, stopper, x_val, y_val


if __name__ == "__main__":
    main()
