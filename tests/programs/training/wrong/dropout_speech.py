"""Keyword classifier with dropout and batch norm, validated after every epoch."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class KeywordNet(nn.Module):
    def __init__(self, bands=20, classes=5):
        super().__init__()
        self.conv = nn.Conv1d(bands, 24, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm1d(24)
        self.drop = nn.Dropout(0.4)
        self.fc = nn.Linear(24, classes)

    def forward(self, x):
        h = F.relu(self.norm(self.conv(x)))
        return self.fc(self.drop(h.mean(dim=2)))


def utterances(n, bands=20, frames=16, classes=5):
    y = torch.randint(classes, (n,))
    pattern = torch.sin(torch.arange(bands).float()[None] * (0.3 + 0.2 * torch.arange(classes)[:, None]))
    x = pattern[y].unsqueeze(-1) * torch.rand(n, 1, frames) + torch.randn(n, bands, frames)
    return x, y


class Runner:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer

    def train_epoch(self, x, y):
        total = 0.0
        for idx in torch.randperm(len(x)).split(48):
            loss = F.cross_entropy(self.model(x[idx]), y[idx])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(idx)
        return total / len(x)

    @torch.no_grad()
    def validate(self, x, y):
        self.model.eval()
        logits = self.model(x)
        return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()

    def fit(self, train, val, epochs):
        self.model.train()
        for epoch in range(epochs):
            loss = self.train_epoch(*train)
            val_loss, acc = self.validate(*val)
            print(f"epoch {epoch}: train {loss:.4f} val {val_loss:.4f} acc {acc:.3f}")


def main():
    torch.manual_seed(109)
    model = KeywordNet()
    runner = Runner(model, torch.optim.Adam(model.parameters(), lr=5e-3))
    runner.fit(utterances(480), utterances(160), epochs=6)
    return model


if __name__ == "__main__":
    main()
