"""Predict the wear of control valves from sensor statistics; the trainer goes back to the best state on a plateau."""
import copy
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    features: int = 6
    hidden: int = 48
    lr: float = 0.05
    momentum: float = 0.9
    batch_size: int = 32
    epochs: int = 24
    patience: int = 2
    shrink: float = 0.5


def make_valves(count, features, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(count, features, generator=g)
    wear = torch.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.5 * x[:, 3].abs()
    return x, (wear + 0.2 * torch.randn(count, generator=g)).unsqueeze(1)


def build_model(cfg):
    return nn.Sequential(
        nn.Linear(cfg.features, cfg.hidden),
        nn.Tanh(),
        nn.Linear(cfg.hidden, cfg.hidden),
        nn.Tanh(),
        nn.Linear(cfg.hidden, 1),
    )


class PlateauMonitor:
    """Remembers the best score and tells when there was no better one for `patience` epochs."""

    def __init__(self, patience):
        self.patience = patience
        self.best = float("inf")
        self.waited = 0

    def update(self, score):
        if score < self.best:
            self.best, self.waited = score, 0
            return "improved"
        self.waited += 1
        if self.waited >= self.patience:
            self.waited = 0
            return "plateau"
        return "waiting"


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.model = build_model(cfg)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=cfg.lr, momentum=cfg.momentum)
        self.criterion = nn.MSELoss()
        self.monitor = PlateauMonitor(cfg.patience)
        self.best_model = copy.deepcopy(self.model)
        self.history = []

    def train_epoch(self, loader):
        self.model.train()
        total, seen = 0.0, 0
        for x, y in loader:
            loss = self.criterion(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(x)
            seen += len(x)
        return total / seen

    @torch.no_grad()
    def evaluate(self, data):
        self.model.eval()
        x, y = data
        return self.criterion(self.model(x), y).item()

    def go_back(self):
        """Continue from the best weights with smaller steps."""
        self.model = copy.deepcopy(self.best_model)
        for group in self.optimizer.param_groups:
            group["lr"] *= self.cfg.shrink

    def fit(self, loader, val):
        for epoch in range(self.cfg.epochs):
            train_loss = self.train_epoch(loader)
            val_loss = self.evaluate(val)
            verdict = self.monitor.update(val_loss)
            if verdict == "improved":
                self.best_model = copy.deepcopy(self.model)
            elif verdict == "plateau":
                self.go_back()
            lr = self.optimizer.param_groups[0]["lr"]
            self.history.append((epoch, train_loss, val_loss, verdict))
            print(f"epoch {epoch:2d}  train {train_loss:.4f}  val {val_loss:.4f}  lr {lr:.5f}  {verdict}")
        return self.best_model


def main():
    torch.manual_seed(3)
    cfg = Config()
    x, y = make_valves(600, cfg.features, seed=5)
    loader = DataLoader(TensorDataset(x, y), batch_size=cfg.batch_size, shuffle=True)
    val = make_valves(300, cfg.features, seed=6)
    trainer = Trainer(cfg)
    trainer.fit(loader, val)
    print(f"best validation loss {trainer.monitor.best:.4f}")
    return trainer


if __name__ == "__main__":
    trainer = main()
