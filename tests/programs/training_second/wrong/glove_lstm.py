from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass(frozen=True)
class Settings:
    window: int = 20
    sensors: int = 4
    hidden: int = 24
    gestures: int = 4
    epochs: int = 6
    batch: int = 32
    lr: float = 8e-3


class Gestures(Dataset):
    def __init__(self, n, cfg, seed):
        g = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(0, cfg.gestures, (n,), generator=g)
        t = torch.linspace(0, 1, cfg.window)[None, :, None]
        rate = torch.tensor([1.0, 2.0, 1.0, 2.0])[self.labels][:, None, None]
        trend = torch.tensor([1.0, 1.0, -1.0, -1.0])[self.labels][:, None, None]
        offset = torch.arange(cfg.sensors)[None, None]
        noise = 0.4 * torch.randn(n, cfg.window, cfg.sensors, generator=g)
        self.signals = torch.sin(6.28 * rate * t + offset) + trend * t + noise

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.signals[i], self.labels[i]


class GestureNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.rnn = nn.LSTM(cfg.sensors, cfg.hidden)
        self.out = nn.Linear(cfg.hidden, cfg.gestures)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.out(states[:, -1])


def evaluate(model, loader):
    model.eval()
    hits = seen = 0
    with torch.no_grad():
        for x, y in loader:
            hits += (model(x).argmax(1) == y).sum().item()
            seen += len(y)
    return hits / seen


def main():
    cfg = Settings()
    torch.manual_seed(1)
    loader = DataLoader(Gestures(320, cfg, 0), cfg.batch, shuffle=True, drop_last=True)
    held_out = DataLoader(Gestures(160, cfg, 1), cfg.batch)
    model = GestureNet(cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        model.train()
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f} accuracy {evaluate(model, held_out):.3f}")
    return model


if __name__ == "__main__":
    main()
