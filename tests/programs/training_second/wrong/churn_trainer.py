import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class ChurnNet(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(features, 32, bias=False),
            nn.BatchNorm1d(32),
            nn.ReLU(),
            nn.Dropout(0.3),
            nn.Linear(32, 16),
            nn.ReLU(),
            nn.Dropout(0.3),
            nn.Linear(16, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)


class Trainer:
    def __init__(self, model, train_set, valid_set, lr=5e-3, batch=32):
        self.model = model
        self.train_loader = DataLoader(train_set, batch_size=batch, shuffle=True, drop_last=True)
        self.valid_loader = DataLoader(valid_set, batch_size=64)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=1e-3)

    def train_epoch(self):
        total = 0.0
        for x, y in self.train_loader:
            self.optimizer.zero_grad()
            loss = F.binary_cross_entropy_with_logits(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(self.train_loader)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        losses, hits, count = 0.0, 0, 0
        for x, y in self.valid_loader:
            logits = self.model(x)
            losses += F.binary_cross_entropy_with_logits(logits, y, reduction="sum").item()
            hits += ((logits > 0) == (y > 0.5)).sum().item()
            count += len(y)
        return losses / count, hits / count

    def fit(self, epochs):
        self.model.train()
        for epoch in range(1, epochs + 1):
            train_loss = self.train_epoch()
            valid_loss, accuracy = self.validate()
            print(f"{epoch:2d} train {train_loss:.4f} valid {valid_loss:.4f} acc {accuracy:.3f}")


def customers(n=320, features=10):
    x = torch.randn(n, features) * torch.linspace(0.5, 3, features) + 1.0
    score = 0.8 * x[:, 0] - 0.4 * x[:, 3] + 0.3 * x[:, 5] * (x[:, 1] > 1)
    return TensorDataset(x, (score + 0.3 * torch.randn(n) > score.median()).float())


if __name__ == "__main__":
    torch.manual_seed(0)
    train_set, valid_set = random_split(customers(), [256, 64])
    trainer = Trainer(ChurnNet(10), train_set, valid_set)
    trainer.fit(6)
