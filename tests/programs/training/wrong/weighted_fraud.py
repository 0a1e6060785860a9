"""Fraud detection with one weight per transaction."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def transactions(n):
    x = torch.randn(n, 10)
    score = x[:, 0] * 1.5 + x[:, 1] * x[:, 2] - 2.2
    y = (score + 0.3 * torch.randn(n) > 0).long()
    amount = torch.exp(0.5 * torch.randn(n))
    weight = torch.where(y == 1, 6.0 * amount, amount)
    return x, y, weight.unsqueeze(1)


class FraudNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2))

    def forward(self, x):
        return self.layers(x)


def weighted_loss(logits, target, weight):
    per_sample = F.cross_entropy(logits, target, reduction="none")
    return (per_sample * weight).mean()


def recall(model, x, y):
    model.eval()
    with torch.no_grad():
        pred = model(x).argmax(1)
    model.train()
    return (pred[y == 1] == 1).float().mean().item()


def main():
    torch.manual_seed(53)
    x, y, w = transactions(768)
    w = w / w.mean()
    x_val, y_val, _ = transactions(400)
    loader = DataLoader(TensorDataset(x, y, w), batch_size=64, shuffle=True)
    model = FraudNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(8):
        total = 0.0
        for xb, yb, wb in loader:
            loss = weighted_loss(model(xb), yb, wb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(loader):.4f} fraud recall {recall(model, x_val, y_val):.3f}")
    return model


if __name__ == "__main__":
    main()
