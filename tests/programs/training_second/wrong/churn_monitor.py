import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_customers(n, seed):
    g = torch.Generator().manual_seed(seed)
    usage = torch.randn(n, 10, generator=g)
    risk = usage[:, 0] - 1.5 * usage[:, 3] * (usage[:, 5] > 0) + 0.3 * torch.randn(n, generator=g)
    return TensorDataset(usage, (risk > 0).float())


class ChurnNet(nn.Sequential):
    def __init__(self, features, hidden):
        super().__init__(
            nn.Linear(features, hidden),
            nn.Tanh(),
            nn.Linear(hidden, hidden),
            nn.Tanh(),
            nn.Linear(hidden, 1),
            nn.Flatten(0),
        )


class Trainer:
    def __init__(self, model, train_set, val_set, lr=4e-3, batch_size=32, patience=6):
        self.model = model
        self.criterion = nn.BCEWithLogitsLoss()
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        gen = torch.Generator().manual_seed(0)
        self.train_loader = DataLoader(train_set, batch_size, shuffle=True, generator=gen)
        self.val_loader = DataLoader(val_set, batch_size=64)
        self.patience = patience
        self.val_curve = []

    def train_epoch(self):
        self.model.train()
        seen, total = 0, 0.0
        for x, y in self.train_loader:
            loss = self.criterion(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(x)
            seen += len(x)
        return total / seen

    def validate(self):
        self.model.eval()
        losses = [self.criterion(self.model(x), y) for x, y in self.val_loader]
        self.val_curve.append(torch.stack(losses).mean())
        return self.val_curve[-1]

    def should_stop(self):
        best = min(range(len(self.val_curve)), key=lambda i: self.val_curve[i])
        return len(self.val_curve) - 1 - best >= self.patience

    def fit(self, epochs):
        for epoch in range(epochs):
            train = self.train_epoch()
            val = self.validate()
            print(f"epoch {epoch:2d} train {train:.4f} val {val:.4f}")
            if self.should_stop():
                break


torch.manual_seed(5)
trainer = Trainer(ChurnNet(10, 32), make_customers(384, 1), make_customers(192, 2))
trainer.fit(12)
print(f"best {min(trainer.val_curve):.4f}")
