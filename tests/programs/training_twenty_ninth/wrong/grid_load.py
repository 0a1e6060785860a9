"""Day-ahead load forecast for a small grid: a GRU reads a day and a half of hourly load and predicts the next six hours."""
import math

import torch
from torch import nn


class LoadSeries:
    """Synthetic hourly load with a daily cycle, a weekly cycle and occasional outages and surges."""

    def __init__(self, hours, seed):
        g = torch.Generator().manual_seed(seed)
        t = torch.arange(hours, dtype=torch.float32)
        load = torch.sin(2 * math.pi * t / 24) + 0.4 * torch.sin(2 * math.pi * t / 168)
        load = load + 0.1 * torch.randn(hours, generator=g)
        surges = torch.rand(hours, generator=g) < 0.004
        self.load = load + surges * 60.0 * torch.randn(hours, generator=g)
        self.hour = (t % 24).long()

    def windows(self, size, horizon):
        starts = torch.arange(0, len(self.load) - size - horizon)
        idx = starts[:, None] + torch.arange(size)
        out = starts[:, None] + size + torch.arange(horizon)
        return self.load[idx], self.hour[idx], self.load[out]


class LoadForecaster(nn.Module):
    def __init__(self, hidden=24, horizon=6):
        super().__init__()
        angle = torch.arange(24) * (2 * math.pi / 24)
        clock = torch.stack([angle.sin(), angle.cos()], dim=1)
        self.clock = nn.Embedding.from_pretrained(clock, freeze=True)
        self.rnn = nn.GRU(3, hidden, batch_first=True)
        self.head = nn.Linear(hidden, horizon)

    def forward(self, load, hour):
        seq = torch.cat([load.unsqueeze(-1), self.clock(hour)], dim=-1)
        out, _ = self.rnn(seq)
        return self.head(out[:, -1])


class Callback:
    def on_epoch_end(self, trainer, logs):
        pass


class ConsoleLogger(Callback):
    def on_epoch_end(self, trainer, logs):
        print(f"epoch {logs['epoch']}  train {logs['train']:.3f}  median val error {logs['val']:.3f}")


class History(Callback):
    def __init__(self):
        self.rows = []

    def on_epoch_end(self, trainer, logs):
        self.rows.append(dict(logs))


class Trainer:
    def __init__(self, model, lr=0.05, momentum=0.9, max_norm=0.5, batch_size=32, callbacks=()):
        self.model = model
        self.max_norm = max_norm
        self.batch_size = batch_size
        self.callbacks = list(callbacks)
        self.criterion = nn.MSELoss()
        # the clock table is fixed, so it stays out of the optimizer
        self.trainable = filter(lambda p: p.requires_grad, model.parameters())
        self.optimizer = torch.optim.SGD(self.trainable, lr=lr, momentum=momentum)

    def training_step(self, batch):
        load, hour, target = batch
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(load, hour), target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.trainable, self.max_norm)
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def validate(self, data):
        self.model.eval()
        load, hour, target = data
        error = (self.model(load, hour) - target).abs().median().item()
        self.model.train()
        return error

    def fit(self, train, val, epochs):
        n = len(train[0])
        for epoch in range(epochs):
            order = torch.randperm(n)[: 16 * self.batch_size]
            total = 0.0
            batches = order.split(self.batch_size)
            for idx in batches:
                total += self.training_step([part[idx] for part in train])
            logs = {"epoch": epoch, "train": total / len(batches), "val": self.validate(val)}
            for callback in self.callbacks:
                callback.on_epoch_end(self, logs)


def main():
    torch.manual_seed(11)
    train = LoadSeries(1500, seed=1).windows(36, 6)
    val = LoadSeries(300, seed=2).windows(36, 6)
    history = History()
    trainer = Trainer(LoadForecaster(), callbacks=[ConsoleLogger(), history])
    trainer.fit(train, val, epochs=6)
    print(f"best median validation error {min(row['val'] for row in history.rows):.3f}")
    return trainer, history


if __name__ == "__main__":
    trainer, history = main()
